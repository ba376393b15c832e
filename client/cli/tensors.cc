#include "client/cli/tensors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/element.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

constexpr char kPoison = '\x7b';

double Unit(base::DType dtype) {
  switch (dtype) {
    case base::DType::kBFloat16:
      return 0x1p-8;
    case base::DType::kHalf:
      return 0x1p-11;
    case base::DType::kFloat:
      return 0x1p-22;  // a few roundings of longer computations
    case base::DType::kDouble:
      return 0x1p-48;
    default:
      return 0;
  }
}

// Elements in row-major order.
std::vector<double> Elements(const HostArray& array) {
  std::vector<double> values;
  ForEachElement(array, [&](size_t at) {
    const char* element = array.data.data() + at;
    values.push_back(base::IsFloatingPoint(array.dtype)
                         ? base::LoadFloat(array.dtype, element)
                         : static_cast<double>(base::LoadInteger(array.dtype, element)));
  });
  return values;
}

}  // namespace

uint64_t HostArray::ScalarBits() const {
  uint64_t bits;
  if (scalar) {
    std::memcpy(&bits, data.data(), sizeof(bits));
    return bits;
  }
  if (base::IsFloatingPoint(dtype))
    return std::bit_cast<uint64_t>(base::LoadFloat(dtype, data.data()));
  return static_cast<uint64_t>(base::LoadInteger(dtype, data.data()));
}

uint64_t Footprint(const HostArray& array) {
  int64_t last = 0;
  for (size_t d = 0; d < array.shape.size(); ++d) {
    if (array.shape[d] == 0) return 0;
    last += (array.shape[d] - 1) * array.strides[d];
  }
  return static_cast<uint64_t>((last + 1) * base::ByteSize(array.dtype));
}

absl::Status MemoryBudget::Add(absl::string_view what, size_t index, uint64_t bytes) {
  const uint64_t machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  struct rlimit ours = {RLIM_INFINITY, RLIM_INFINITY};  // the largest number
  ::getrlimit(RLIMIT_AS, &ours);
  const uint64_t most = std::min<uint64_t>(machine, ours.rlim_cur) / 4;
  if (taken_ <= most && bytes <= most - taken_) {
    taken_ += bytes;
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " ", index, " takes ", bytes, " bytes, the tensors before it ", taken_,
      "; together a run's may take ", most, ", a quarter of what this machine and ulimit -v give"));
}

executable::TensorArg ToArg(const HostArray& array, uint64_t address, bool by_value) {
  executable::TensorArg arg;
  if (by_value) {
    arg.bits = array.ScalarBits();
    return arg;
  }
  arg.address = address;
  arg.shape.assign(array.shape.begin(), array.shape.end());
  arg.strides.assign(array.strides.begin(), array.strides.end());
  return arg;
}

absl::StatusOr<std::vector<HostArray>> OutputArrays(const executable::Executable& executable,
                                                    const std::vector<HostArray>& inputs) {
  std::vector<executable::TensorArg> args;
  for (size_t i = 0; i < inputs.size(); ++i)
    args.push_back(ToArg(inputs[i], 0, executable.inputs[i].scalar));
  FUSIOND_RETURN_IF_ERROR(executable::CheckInputs(executable, args));
  FUSIOND_ASSIGN_OR_RETURN(std::vector<executable::OutputShape> shapes,
                           executable::OutputShapes(executable, args, 1));
  MemoryBudget budget;
  for (size_t i = 0; i < inputs.size(); ++i)
    FUSIOND_RETURN_IF_ERROR(budget.Add("input", i, inputs[i].data.size()));
  for (size_t i = 0; i < shapes.size(); ++i)
    FUSIOND_RETURN_IF_ERROR(budget.Add("output", i, static_cast<uint64_t>(shapes[i].bytes)));
  std::vector<HostArray> outputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HostArray array;
    array.dtype = executable.outputs[i].dtype;
    array.shape.assign(shapes[i].shape.begin(), shapes[i].shape.end());
    array.strides.assign(shapes[i].strides.begin(), shapes[i].strides.end());
    array.data.assign(static_cast<size_t>(shapes[i].bytes), kPoison);
    outputs.push_back(std::move(array));
  }
  return outputs;
}

Comparison Compare(const HostArray& got, const HostArray& expected) {
  const std::vector<double> a = Elements(got), b = Elements(expected);
  Comparison result;
  result.elements = b.size();
  if (a.size() != b.size()) {
    result.off = b.size();
    return result;
  }
  double squares = 0, finite = 0;
  for (double value : b) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  const double rms = finite > 0 ? std::sqrt(squares / finite) : 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double tolerance = 4 * Unit(got.dtype) * (std::fabs(b[i]) + rms);
    const double fraction = std::fabs(a[i] - b[i]) / tolerance;
    if (!(fraction <= 1)) ++result.off;
    result.worst = std::isnan(fraction) ? INFINITY : std::max(result.worst, fraction);
  }
  return result;
}

}  // namespace fusiond::cli
