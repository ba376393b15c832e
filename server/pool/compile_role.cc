#include "server/pool/compile_role.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/base/framing.h"
#include "runtime/base/status_macros.h"
#include "server/pool/last_words.h"
#include "server/process/child_process.h"
#include "server/process/harden.h"
#include "server/process/seccomp.h"

namespace fusiond::server {
namespace {

using internal::v1::CompileJob;
using internal::v1::CompileReady;
using internal::v1::CompileReply;
using internal::v1::CompileSetup;
using internal::v1::ImageJob;
using internal::v1::ImageResult;

// A compile takes some 10 MB in blocks of all sizes and frees them again. What has been given back
// to the kernel costs the next compile a page fault every 4 KB: 2,000 to 2,700 without this, 150 to
// 750 with it (NVRTC 13.0, norm backward).
void KeepFreedMemory() {
  constexpr int kNever = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
  ::mallopt(M_TOP_PAD, 16 << 20);
}

absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> OpenNvrtc(const CompileSetup& setup) {
  if (!setup.nvrtc_refused().empty()) return absl::UnavailableError(setup.nvrtc_refused());
  nvrtc::NvrtcLocation location;
  location.explicit_path = setup.nvrtc_path();
  location.folders.assign(setup.nvrtc_folders().begin(), setup.nvrtc_folders().end());
  location.root_owned_only = setup.nvrtc_root_owned_only();
  return nvrtc::Nvrtc::Open(location);
}

// The first compile of a process costs more than the others, and shows whether NVRTC works inside
// the sandbox. It also looks for the driver and would call cuInit: inside the sandbox it finds
// none.
absl::Status WarmUp(const nvrtc::Nvrtc& nvrtc) {
  const std::string arch = absl::StrCat("sm_", nvrtc.supported_archs().front());
  absl::Status status =
      nvrtc.Compile({"extern \"C\" __global__ void warm_up() {}", "warm_up.cu", arch}).status();
  return absl::Status(status.code(), absl::StrCat("first compile: ", status.message()));
}

ImageResult ToProto(nvrtc::CompileOutput output) {
  ImageResult result;
  result.set_cubin(std::move(output.cubin));
  result.set_ptx(std::move(output.ptx));
  result.set_log(std::move(output.log));
  for (const nvrtc::EntryResources& entry : output.entries) {
    internal::v1::EntryResources* out = result.add_entries();
    out->set_entry(entry.entry);
    out->set_registers(entry.registers);
    out->set_stack_bytes(entry.stack_bytes);
    out->set_spill_store_bytes(entry.spill_store_bytes);
    out->set_spill_load_bytes(entry.spill_load_bytes);
    out->set_static_smem_bytes(entry.static_smem_bytes);
  }
  result.set_compile_ns(absl::ToInt64Nanoseconds(output.compile_time));
  return result;
}

void SetError(const absl::Status& status, CompileReply* reply) {
  reply->clear_result();
  reply->set_code(static_cast<int>(status.code()));
  reply->set_message(std::string(status.message()));
}

// Answers jobs. Single-thread.
class JobRunner {
 public:
  JobRunner(absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc, PlanFunction plan)
      : nvrtc_(std::move(nvrtc)), plan_(std::move(plan)) {}

  // To be called inside the sandbox.
  CompileReady GetReady() {
    if (nvrtc_.ok()) {
      if (absl::Status warm = WarmUp(**nvrtc_); !warm.ok()) nvrtc_ = warm;
    }
    CompileReady ready;
    if (!nvrtc_.ok()) {
      ready.set_nvrtc_missing(std::string(nvrtc_.status().message()));
      return ready;
    }
    internal::v1::NvrtcInfo* info = ready.mutable_nvrtc();
    const nvrtc::Nvrtc& nvrtc = **nvrtc_;
    info->set_path(nvrtc.path());
    info->set_major(nvrtc.version().major);
    info->set_minor(nvrtc.version().minor);
    info->set_identity(nvrtc.identity());
    for (int arch : nvrtc.supported_archs()) info->add_archs(arch);
    return ready;
  }

  void Run(const CompileJob& job, CompileReply* reply) {
    if (job.has_plan()) {
      RunPlan(job.plan(), reply);
    } else if (job.has_image()) {
      RunImage(job.image(), reply);
    } else {
      SetError(absl::InvalidArgumentError("compile job: neither plan nor image"), reply);
    }
  }

 private:
  void RunPlan(const internal::v1::PlanJob& job, CompileReply* reply) {
    absl::StatusOr<internal::v1::PlanResult> result = plan_(job);
    if (result.ok()) {
      *reply->mutable_plan() = *std::move(result);
    } else {
      SetError(result.status(), reply);
      reply->set_verdict(true);
    }
  }

  void RunImage(const ImageJob& job, CompileReply* reply) {
    if (absl::IsUnavailable(nvrtc_.status())) return SetError(nvrtc_.status(), reply);
    if (!nvrtc_.ok())
      return SetError(absl::FailedPreconditionError(nvrtc_.status().message()), reply);
    const nvrtc::Nvrtc& nvrtc = **nvrtc_;
    if (!job.nvrtc_identity().empty() && job.nvrtc_identity() != nvrtc.identity()) {
      return SetError(
          absl::UnavailableError(absl::StrCat("NVRTC has changed: asked for ", job.nvrtc_identity(),
                                              ", this process has ", nvrtc.identity())),
          reply);
    }
    absl::StatusOr<nvrtc::CompileOutput> output =
        nvrtc.Compile({job.source(),
                       job.name(),
                       job.arch(),
                       {job.options().begin(), job.options().end()},
                       job.want_ptx()});
    if (output.ok()) {
      *reply->mutable_image() = ToProto(*std::move(output));
    } else {
      SetError(output.status(), reply);
      reply->set_out_of_memory(absl::IsResourceExhausted(output.status()));
      reply->set_verdict(!reply->out_of_memory());
    }
  }

  absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc_;
  PlanFunction plan_;
};

// One job, with memory that runs out answered instead of thrown.
CompileReply Answer(const std::string& frame, JobRunner& runner) {
  CompileReply reply;
  try {
    CompileJob job;
    if (job.ParseFromString(frame)) {
      runner.Run(job, &reply);
    } else {
      SetError(absl::InternalError("compile job: malformed message"), &reply);
    }
  } catch (const std::bad_alloc&) {
    SetError(absl::ResourceExhaustedError("std::bad_alloc"), &reply);
    reply.set_verdict(false);
    reply.set_out_of_memory(true);
  }
  return reply;
}

// Memory limit and system call filter. Returns the process' size before its first job.
absl::StatusOr<uint64_t> Confine(const MemoryMeter& meter, uint64_t memory_limit_bytes) {
  if (memory_limit_bytes != 0) FUSIOND_RETURN_IF_ERROR(LimitMemory(meter, memory_limit_bytes));
  const uint64_t base_bytes = meter.SizeBytes();
  if (MemoryLimitWorks()) LeaveLastWords(meter, base_bytes);
  FUSIOND_RETURN_IF_ERROR(EnterCompileSandbox());
  return base_bytes;
}

absl::Status Serve(JobRunner& runner, const MemoryMeter& meter, uint64_t base_bytes) {
  while (true) {
    absl::StatusOr<std::string> frame = base::ReadFrame(kChildSocket);
    if (absl::IsOutOfRange(frame.status())) ::_exit(0);
    FUSIOND_RETURN_IF_ERROR(frame.status());
    CompileReply reply = Answer(*frame, runner);
    reply.set_peak_bytes(PeakBeyond(meter, base_bytes));
    FUSIOND_RETURN_IF_ERROR(base::WriteFrame(kChildSocket, reply.SerializeAsString()));
  }
}

}  // namespace

absl::Status RunCompileRole(PlanFunction plan) {
  FUSIOND_RETURN_IF_ERROR(Harden());
  FUSIOND_ASSIGN_OR_RETURN(std::string frame, base::ReadFrame(kChildSocket));
  CompileSetup setup;
  if (!setup.ParseFromString(frame)) return absl::InternalError("malformed setup message");
  KeepFreedMemory();
  JobRunner runner(OpenNvrtc(setup), std::move(plan));
  const absl::StatusOr<MemoryMeter> meter = MemoryMeter::Open();
  const absl::StatusOr<uint64_t> base_bytes =
      meter.ok() ? Confine(*meter, setup.memory_limit_bytes()) : meter.status();
  if (!base_bytes.ok()) {
    CompileReady failed;
    failed.set_failed(std::string(base_bytes.status().message()));
    base::WriteFrame(kChildSocket, failed.SerializeAsString()).IgnoreError();
    return base_bytes.status();
  }
  FUSIOND_RETURN_IF_ERROR(base::WriteFrame(kChildSocket, runner.GetReady().SerializeAsString()));
  return Serve(runner, *meter, *base_bytes);
}

}  // namespace fusiond::server
