// The header of a .npy file.
//
// Source: NumPy's format description (numpy.lib.format), versions 1.0 to 3.0.
#ifndef FUSIOND_CLIENT_CLI_NPY_H_
#define FUSIOND_CLIENT_CLI_NPY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/dtype.h"

namespace fusiond::cli {

struct NpyHeader {
  base::DType dtype = base::DType::kFloat;
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes of magic and header
};

bool IsNpy(absl::string_view file);
// bf16 is what ml_dtypes writes: two bytes of no kind (V2). INVALID_ARGUMENT: damaged, in Fortran
// order, or of a dtype that no tensor has.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view file);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_NPY_H_
