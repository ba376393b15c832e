#include "client/cli/local_run.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cc/local_context.h"
#include "client/cc/local_executable.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/driver.h"

namespace fusiond::cli {

using cuda::CUdeviceptr;

absl::StatusOr<std::vector<HostArray>> RunLocally(const executable::Executable& executable,
                                                  const std::vector<HostArray>& inputs,
                                                  const std::string& driver_path, int repeat,
                                                  RunReport& report) {
  const absl::StatusOr<const cuda::Driver*> opened = cuda::Driver::Open(driver_path);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--local launches in this process, which finds no GPU: ", opened.status().message()));
  }
  const cuda::Driver* driver = *opened;
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::LocalContext> context,
                           client::LocalContext::Open(*driver, executable.arch));
  report.device = context->device().uuid;
  report.local = true;
  FUSIOND_ASSIGN_OR_RETURN(
      std::unique_ptr<client::LocalExecutable> loaded,
      client::LocalExecutable::Load(*driver, executable, context->device().info.sm_count));
  std::vector<executable::TensorArg> input_args, output_args;
  FUSIOND_ASSIGN_OR_RETURN(std::vector<HostArray> outputs, OutputArrays(executable, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool by_value = executable.inputs[i].scalar;
    CUdeviceptr address = 0;
    if (!by_value) {
      FUSIOND_ASSIGN_OR_RETURN(address, context->Upload(inputs[i].data));
    }
    input_args.push_back(ToArg(inputs[i], address, by_value));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    CUdeviceptr address;
    if (executable.outputs[i].alias_input) {
      address = input_args[*executable.outputs[i].alias_input].address;
    } else {
      FUSIOND_ASSIGN_OR_RETURN(address, context->Upload(outputs[i].data));  // poisoned
    }
    output_args.push_back(ToArg(outputs[i], address, false));
  }
  FUSIOND_ASSIGN_OR_RETURN(int64_t workspace_bytes, loaded->WorkspaceBytes(input_args));
  FUSIOND_ASSIGN_OR_RETURN(CUdeviceptr workspace,
                           context->Allocate(static_cast<uint64_t>(workspace_bytes)));
  for (int i = 0; i < repeat; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(absl::Duration time,
                             context->Launch(*loaded, input_args, output_args, workspace));
    report.device_times.push_back(time);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    FUSIOND_RETURN_IF_ERROR(
        context->Download(output_args[i].address, outputs[i].data.size(), outputs[i].data.data()));
  }
  return outputs;
}

}  // namespace fusiond::cli
