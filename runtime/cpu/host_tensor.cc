#include "runtime/cpu/host_tensor.h"

#include "runtime/base/check.h"
#include "runtime/base/element.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/index.h"

namespace fusiond::cpu {
namespace {

using base::LoadFloat;
using base::LoadInteger;
using base::StoreFloat;
using base::StoreInteger;
using ir::DType;

// Calls visit(linear index, byte offset) for every element in row-major order.
template <typename Visit>
absl::Status ForEachElement(const ir::Type& type, absl::Span<const int64_t> strides,
                            const Cancelled& cancelled, Visit visit) {
  const int64_t bytes = ir::ByteSize(type.dtype);
  FUSIOND_CHECK(strides.size() == type.shape.size());
  const std::array<ir::Dims, 1> one = {ir::Dims(strides.begin(), strides.end())};
  return ForEachPoint(type.shape, one, cancelled,
                      [&](size_t i, const auto& at) { visit(i, at[0] * bytes); });
}

}  // namespace

HostTensor FloatScalar(double value, DType dtype) {
  HostTensor tensor;
  tensor.type = ir::ScalarType(dtype);
  tensor.floats = {value};
  return tensor;
}

HostTensor IntegerScalar(int64_t value, DType dtype) {
  HostTensor tensor;
  tensor.type = ir::ScalarType(dtype);
  tensor.integers = {value};
  return tensor;
}

HostTensor ReadBuffer(const ir::Type& type, const void* data, absl::Span<const int64_t> strides) {
  return *ReadBuffer(type, data, strides, {});
}

absl::StatusOr<HostTensor> ReadBuffer(const ir::Type& type, const void* data,
                                      absl::Span<const int64_t> strides,
                                      const Cancelled& cancelled) {
  HostTensor tensor;
  tensor.type = type;
  const auto* bytes = static_cast<const char*>(data);
  const auto count = static_cast<size_t>(ir::ElementCount(type).value_or(0));
  // Memory is touched as elements come, and not all of it before the first look.
  if (ir::IsFloatingPoint(type.dtype)) {
    tensor.floats.reserve(count);
    FUSIOND_RETURN_IF_ERROR(ForEachElement(type, strides, cancelled, [&](size_t, int64_t offset) {
      tensor.floats.push_back(LoadFloat(type.dtype, bytes + offset));
    }));
  } else {
    tensor.integers.reserve(count);
    FUSIOND_RETURN_IF_ERROR(ForEachElement(type, strides, cancelled, [&](size_t, int64_t offset) {
      tensor.integers.push_back(LoadInteger(type.dtype, bytes + offset));
    }));
  }
  return tensor;
}

void WriteBuffer(const HostTensor& tensor, void* data, absl::Span<const int64_t> strides) {
  FUSIOND_CHECK(WriteBuffer(tensor, data, strides, {}).ok());
}

absl::Status WriteBuffer(const HostTensor& tensor, void* data, absl::Span<const int64_t> strides,
                         const Cancelled& cancelled) {
  auto* bytes = static_cast<char*>(data);
  const DType dtype = tensor.type.dtype;
  if (ir::IsFloatingPoint(dtype)) {
    return ForEachElement(tensor.type, strides, cancelled, [&](size_t i, int64_t offset) {
      StoreFloat(dtype, tensor.floats[i], bytes + offset);
    });
  }
  return ForEachElement(tensor.type, strides, cancelled, [&](size_t i, int64_t offset) {
    StoreInteger(dtype, tensor.integers[i], bytes + offset);
  });
}

}  // namespace fusiond::cpu
