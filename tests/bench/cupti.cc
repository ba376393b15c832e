#include "tests/bench/cupti.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutex.h"

namespace fusiond::bench {
namespace {

using cupti::KernelRecord;
using cupti::Result;

using GetNextRecord = Result (*)(uint8_t*, size_t, void**);
using BufferRequested = void (*)(uint8_t**, size_t*, size_t*);
using BufferCompleted = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);
using RegisterCallbacks = Result (*)(BufferRequested, BufferCompleted);
using Enable = Result (*)(int);
using FlushAll = Result (*)(uint32_t);

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kBufferAlignment = 8;

// What CUPTI's callbacks fill: they carry no argument.
struct Collected {
  GetNextRecord next = nullptr;
  base::Mutex mutex;
  std::vector<KernelInterval> intervals ABSL_GUARDED_BY(mutex);
};

Collected& TheCollected() {
  static Collected& collected = *new Collected;
  return collected;
}

void OnBufferRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;
}

void OnBufferCompleted(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  Collected& collected = TheCollected();
  base::MutexLock lock(&collected.mutex);
  void* record = nullptr;
  while (collected.next(buffer, valid_bytes, &record) == cupti::kSuccess) {
    const auto* kernel = static_cast<const KernelRecord*>(record);
    if (kernel->kind != cupti::kConcurrentKernel) continue;
    collected.intervals.push_back({kernel->name == nullptr ? "" : kernel->name,
                                   static_cast<int64_t>(kernel->start_ns),
                                   static_cast<int64_t>(kernel->end_ns)});
  }
  std::free(buffer);
}

absl::StatusOr<void*> OpenLibrary(const std::string& path) {
  std::vector<std::string> candidates = {path};
  if (path.empty()) {
    candidates = {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                  "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                  "/usr/local/cuda/lib/libcupti.so"};
  }
  std::string reasons;
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): per thread in glibc
    absl::StrAppend(&reasons, "; ", dlerror());
  }
  return absl::NotFoundError(absl::StrCat("no libcupti", reasons));
}

absl::Status ToStatus(Result result, absl::string_view what) {
  if (result == cupti::kSuccess) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, ": CUPTI error ", result));
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelRecorder>> KernelRecorder::Open(const std::string& path) {
  absl::StatusOr<void*> library = OpenLibrary(path);
  if (!library.ok()) return library.status();
  const auto find = [&](const char* name) { return dlsym(*library, name); };
  auto register_callbacks =
      reinterpret_cast<RegisterCallbacks>(find("cuptiActivityRegisterCallbacks"));
  auto enable = reinterpret_cast<Enable>(find("cuptiActivityEnable"));
  auto flush = reinterpret_cast<FlushAll>(find("cuptiActivityFlushAll"));
  TheCollected().next = reinterpret_cast<GetNextRecord>(find("cuptiActivityGetNextRecord"));
  if (register_callbacks == nullptr || enable == nullptr || flush == nullptr ||
      TheCollected().next == nullptr) {
    return absl::FailedPreconditionError("libcupti lacks the activity API");
  }
  absl::Status status =
      ToStatus(register_callbacks(OnBufferRequested, OnBufferCompleted), "register callbacks");
  if (status.ok()) status = ToStatus(enable(cupti::kConcurrentKernel), "enable kernel records");
  if (!status.ok()) return status;
  return std::unique_ptr<KernelRecorder>(new KernelRecorder(flush));
}

absl::StatusOr<std::vector<KernelInterval>> KernelRecorder::Take() {
  const absl::Status status = ToStatus(flush_(cupti::kFlushForced), "flush records");
  if (!status.ok()) return status;
  std::vector<KernelInterval> intervals;
  {
    Collected& collected = TheCollected();
    base::MutexLock lock(&collected.mutex);
    std::swap(intervals, collected.intervals);
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return intervals;
}

}  // namespace fusiond::bench
