// Explanations (proto/fusiond/v1/explanation.proto) for people, and what of them follows from what
// NVRTC reports.
//
// Here, because the compiler's tool prints them and the command line, which sees no compiler, too.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_EXPLANATION_H_
#define FUSIOND_RUNTIME_EXECUTABLE_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/fusiond/v1/explanation.pb.h"
#include "runtime/executable/device_info.h"

namespace fusiond::executable {

// One kernel's use of the machine, as NVRTC reports it. Per thread but static_smem_bytes.
struct KernelResources {
  int64_t registers = 0;
  int64_t spill_bytes = 0;  // stored and loaded
  int64_t stack_bytes = 0;
  int64_t static_smem_bytes = 0;  // of a CTA
};
// Fills kernel.resources, and with it how many CTAs an SM holds.
void SetResources(const KernelResources& resources, const DeviceInfo& device,
                  v1::Explanation::Kernel& kernel);

// The schedule that a segment got; nullptr where the message names none.
const v1::Explanation::Choice* Chosen(const v1::Explanation::Segment& segment);

// Bytes moved and microseconds estimated, of all segments.
struct ExplainedCost {
  int64_t dram_bytes = 0;
  double microseconds = 0;
  int kernels = 0;
};
ExplainedCost CostOf(const v1::Explanation& explanation);

// For reading at a glance; ends with a newline.
std::string Print(const v1::Explanation& explanation);

// One line of that: what it tells of, and what; a name that is empty goes on with the line before.
struct Fact {
  std::string name;
  std::string text;
  bool operator==(const Fact&) const = default;
};
// "schedule    row_column/…".
std::string ToText(const Fact& fact);
// Target, options, inputs, outputs, sums, fallbacks.
std::vector<Fact> Facts(const v1::Explanation& explanation);
std::vector<Fact> Facts(const v1::Explanation::Segment& segment);
// The lines of the graph that the segments name nodes of, without "fir 1".
std::vector<std::string> GraphLines(const v1::Explanation& explanation);
// "33.6 MB".
std::string DecimalBytes(int64_t bytes);

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_EXPLANATION_H_
