// Executable: a compiled fusion as plain, versioned, immutable data, named by the digest of its
// bytes.
//
// Holds all that a launch needs and nothing of how it was compiled: guards (when it may be used),
// kernel images, steps in order, outputs, workspace. A framework with its own runtime can read
// steps and arguments and launch by itself.
//
// Thread-safety: a value. Serialised form: fusiond.v1.Executable (serialise.h).
#ifndef FUSIOND_RUNTIME_EXECUTABLE_EXECUTABLE_H_
#define FUSIOND_RUNTIME_EXECUTABLE_EXECUTABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/formula.h"

namespace fusiond::executable {

inline constexpr uint32_t kExecutableVersion = 1;

using base::ByteSize;
using base::DType;

enum class MemorySpace : uint8_t { kDevice = 0, kHost = 1 };

// What a caller passes for one input.
struct InputSpec {
  DType dtype = DType::kFloat;
  // Passed by value, 8 bytes (i64, f64, or bool as 0/1): a scalar, and on a GPU a tensor in host
  // memory, too.
  bool scalar = false;
  MemorySpace space = MemorySpace::kDevice;
  std::vector<int64_t> shape;  // extents; -1 = given at launch
  std::vector<int64_t>
      strides;  // elements, as compiled for; -1 = any (a remote launch takes row-major)

  uint32_t rank() const { return static_cast<uint32_t>(shape.size()); }
  bool operator==(const InputSpec&) const = default;
};

// One condition on the inputs (and outputs' addresses) of a launch.
struct Guard {
  // The numbers are those of fusiond.v1.Guard.
  enum class Kind : uint8_t {
    kExtentEquals = 1,     // extent of (input, dim) == value
    kExtentDivisible = 2,  // extent of (input, dim) % value == 0
    kExtentAtMost = 3,     // extent of (input, dim) <= value
    kStrideEquals = 4,     // stride of (input, dim) == value, in elements; extents of 0 and 1 pass
    kStrideDivisible = 5,  // stride of (input, dim) % value == 0; extents of 0 and 1 pass
    kAligned = 6,          // address of the input (or output: `output` set) % value == 0
    kNoOverlap = 7,  // output `output` shares no byte with input `input`, unless it aliases it
  };
  Kind kind = Kind::kExtentEquals;
  uint32_t input = 0;
  uint32_t dim = 0;
  std::optional<uint32_t> output;
  int64_t value = 0;
  bool operator==(const Guard&) const = default;
};

struct OutputSpec {
  DType dtype = DType::kFloat;
  std::vector<Formula> shape;
  std::vector<Formula> strides;         // elements
  std::optional<uint32_t> alias_input;  // written into that input's buffer, not returned
  bool operator==(const OutputSpec&) const = default;
};

// One kernel argument, in the order of the kernel's parameters; each is aligned to its own size.
struct KernelArgument {
  // The numbers are those of fusiond.v1.KernelArgument.
  enum class Kind : uint8_t {
    kInput = 1,      // 8-byte pointer of input `index`
    kOutput = 2,     // 8-byte pointer of output `index`
    kWorkspace = 3,  // 8-byte pointer: workspace + offset formula
    kScalar = 4,     // value of scalar input `index`, converted to `dtype`
    kInt32 = 5,      // formula, 4 bytes
    kInt64 = 6,      // formula, 8 bytes
  };
  Kind kind = Kind::kInput;
  uint32_t index = 0;
  DType dtype = DType::kFloat;  // kScalar
  Formula formula;              // kWorkspace, kInt32, kInt64
  bool operator==(const KernelArgument&) const = default;
};

struct KernelStep {
  uint32_t image = 0;  // index into images
  std::string entry;
  Formula grid[3];
  Formula block[3];
  Formula cluster[3];    // 1, 1, 1: no cluster
  Formula dynamic_smem;  // bytes
  bool pdl = false;      // programmatic dependent launch on the step before
  std::vector<KernelArgument> arguments;
  bool operator==(const KernelStep&) const = default;
};

struct MemsetStep {
  std::optional<uint32_t> output;  // else workspace at `offset`
  Formula offset;                  // bytes
  Formula bytes;
  uint8_t value = 0;
  bool operator==(const MemsetStep&) const = default;
};

// CPU device: evaluates the graph as sent.
struct HostEvaluateStep {
  std::string graph;              // serialised fusiond.v1.Graph
  bool double_precision = false;  // every float value in double, float casts unrounded
  bool operator==(const HostEvaluateStep&) const = default;
};

using Step = std::variant<KernelStep, MemsetStep, HostEvaluateStep>;

struct Image {
  base::Digest key;  // image key (server/cache)
  std::string cubin;
  bool operator==(const Image&) const = default;
};

struct Provenance {
  std::string compiler_version;  // SHA-256 of the compiler's sources, hex
  std::string nvrtc_version;
  std::string schedule;  // printed KernelSchedules, one a line
  bool operator==(const Provenance&) const = default;
};

struct Executable {
  uint32_t version = kExecutableVersion;
  std::string arch;
  std::string profile;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<Guard> guards;
  std::vector<Image> images;
  std::vector<Step> steps;
  Formula workspace_bytes;
  int64_t workspace_alignment = 256;
  Provenance provenance;
  bool operator==(const Executable&) const = default;
};

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_EXECUTABLE_H_
