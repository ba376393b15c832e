// What emulated kernels ask of the runtime. Stands first in every emulated text, and the runtime
// includes it.
//
// `at` is the caller's place in the generated text; faults are reported with it. Addresses are the
// kernel's own.
extern "C" {

struct fde_index {
  unsigned x, y, z;
};
// Where the running CUDA thread stands.
struct fde_thread {
  fde_index thread, threads, cta, ctas;
};
extern fde_thread* fde_self;

struct fde_site {
  const char* file;
  int line;
};

// Ends the emulation with `what` as its fault.
[[noreturn]] void fde_fail(const char* what, fde_site at);

// Shared memory: the CTA's block at `offset`, made of NaN at its first use.
void* fde_smem(unsigned offset, unsigned long long bytes, unsigned alignment, fde_site at);

// Meetings of a CTA, of a warp (or the lanes of it in `mask`), of a cluster.
void fde_sync(fde_site at);
void fde_sync_named(unsigned id, unsigned threads, bool wait, fde_site at);
void fde_sync_warp(unsigned mask, fde_site at);
unsigned long long fde_shuffle(unsigned long long value, unsigned source, unsigned mask,
                               fde_site at);
unsigned fde_ballot(bool value, unsigned mask, fde_site at);
unsigned fde_cluster_rank();
void fde_cluster_arrive(fde_site at);
void fde_cluster_wait(fde_site at);

// Barriers in shared memory. fde_mbarrier_arrive announces `bytes` first.
void fde_mbarrier_init(void* barrier, unsigned arrivals, fde_site at);
void fde_mbarrier_init_fence();
void fde_mbarrier_arrive(void* barrier, unsigned bytes, fde_site at);
bool fde_mbarrier_ended(void* barrier, unsigned parity, fde_site at);
void fde_mbarrier_wait(void* barrier, unsigned parity, fde_site at);

// Asynchronous copies.
void fde_copy16(void* shared, const void* global, unsigned bytes, fde_site at);
void fde_copy_commit();
void fde_copy_wait(unsigned pending, fde_site at);
void fde_copy_bulk(void* shared, const void* global, unsigned bytes, void* barrier, fde_site at);

// Other CTAs of the cluster.
void* fde_cluster_map(void* shared, unsigned rank, fde_site at);
void fde_store_remote(void* shared, const void* value, unsigned bytes, unsigned rank, void* barrier,
                      fde_site at);

// Dependent launch.
void fde_wait_primary(fde_site at);
void fde_launch_dependents(fde_site at);

}  // extern "C"
