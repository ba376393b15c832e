// What the runner is asked to do and what it answers, as files. Both ends are built from the same
// sources, so the format has no version.
//
// Units: sizes and alignments in bytes.
#ifndef FUSIOND_TESTS_EMULATION_RUNTIME_JOB_H_
#define FUSIOND_TESTS_EMULATION_RUNTIME_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fusiond::emulation {

enum class Order : uint64_t { kAscending, kDescending, kShuffled };

// In which order runnable threads run, and when asynchronous copies land: at once, or as late as
// the kernel lets them.
struct Interleaving {
  Order order = Order::kAscending;
  bool late_copies = true;
  uint64_t seed = 0;
};

struct Argument {
  // ≥ 0: the address `offset` bytes into that tensor. -1: the bytes of `value`.
  int64_t tensor = -1;
  uint64_t offset = 0;
  std::string value{};
};

struct Launch {
  std::string library{};  // path of the compiled text
  std::string entry{};
  uint64_t grid_x = 1, grid_y = 1, threads = 32, cluster = 1;
  uint64_t smem_bytes = 0;
  bool dependent = false;  // may start before the launch in front of it has ended
  std::vector<Argument> arguments{};
};

struct Tensor {
  std::string bytes{};
  uint64_t alignment = 16;
};

struct Job {
  std::vector<Tensor> tensors{};
  std::vector<Launch> chain{};
  std::vector<Interleaving> interleavings{};
  uint64_t resident_ctas = 3;  // of each grid: the machine's SMs
  uint64_t seconds = 60;       // of the processor
};

struct Outcome {
  std::string fault{};  // empty: none
  uint64_t interleavings_run = 0;
  std::vector<std::string> tensors{};  // after the first interleaving; empty if that one failed
};

std::string Encode(const Job& job);
std::string Encode(const Outcome& outcome);
bool Decode(const std::string& bytes, Job* job);
bool Decode(const std::string& bytes, Outcome* outcome);

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUNTIME_JOB_H_
