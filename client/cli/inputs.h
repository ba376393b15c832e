// The inputs that `fusionctl run` launches with: random, or as the command line says.
//
//   --input 3=1e-5          every element (or the scalar) is 1e-5
//   --input 0=@x.npy        a .npy file in C order, of the input's dtype and shape
//   --input 0=@x.bin        its elements, row-major, little-endian, without a header
#ifndef FUSIOND_CLIENT_CLI_INPUTS_H_
#define FUSIOND_CLIENT_CLI_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cc/client.h"
#include "client/cli/tensors.h"
#include "compiler/ir/graph.h"

namespace fusiond::cli {

// One input's values.
struct InputSetting {
  size_t input = 0;
  std::string value;  // a number, true or false
  std::string file;   // read instead, when not empty
};

// "3=1e-5" or "0=@x.npy". INVALID_ARGUMENT quotes what is neither.
absl::StatusOr<InputSetting> ParseInputSetting(absl::string_view text);

// Random where no setting says otherwise; the same seed gives the same numbers whatever is set.
// Tensors: floats are normally distributed, integers in [-8, 8], bools even. One number alone, as
// a scalar or in a tensor of one element, is mostly an epsilon, a scale or a divisor, so that
// floats are in [0.5, 1.5) and integers in [1, 8]: at other values a whole result may be nan, or
// hang on cancelled digits.
//
// Errors: RESOURCE_EXHAUSTED when they are too large for this machine. WrongUsage names the
// input that a setting does not fit, what it takes and what is given, or the file that cannot be
// read.
absl::StatusOr<std::vector<HostArray>> MakeInputs(const ir::Graph& graph,
                                                  const std::vector<client::Layout>& layouts,
                                                  absl::Span<const InputSetting> settings,
                                                  uint64_t seed);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_INPUTS_H_
