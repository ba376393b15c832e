// Launching a leased executable in this process's own CUDA context.
#ifndef FUSIOND_CLIENT_CLI_LOCAL_RUN_H_
#define FUSIOND_CLIENT_CLI_LOCAL_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/tensors.h"
#include "runtime/executable/executable.h"

namespace fusiond::cli {

// On the first visible GPU. FAILED_PRECONDITION when there is none, or it is of another arch.
absl::StatusOr<std::vector<HostArray>> RunLocally(const executable::Executable& executable,
                                                  const std::vector<HostArray>& inputs,
                                                  const std::string& driver_path, int repeat,
                                                  RunReport& report);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_LOCAL_RUN_H_
