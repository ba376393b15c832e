// fusionctl compile, explain.
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/support.h"
#include "runtime/executable/explanation.h"

namespace fusiond::cli {
namespace {

void PrintCompile(const GraphArguments& arguments, const v1::CompileResponse& response) {
  std::cout << "key         " << Hex(response.key()) << "\n"
            << "executable  " << Hex(response.executable_digest()) << " (revision "
            << response.revision() << ")\n"
            << "target      " << arguments.target << " -> " << response.target_arch()
            << ", profile " << response.target_profile() << "\n"
            << "source      " << SourceName(response.source()) << "\n"
            << "time        " << Duration(response.timing().total_ns());
  if (response.source() == v1::COMPILED) {
    std::cout << " (queue " << Duration(response.timing().queue_ns()) << ", plan "
              << Duration(response.timing().plan_ns());
    if (response.nvrtc_calls() > 0) {
      std::cout << ", NVRTC " << Duration(response.timing().nvrtc_ns()) << " in "
                << Counted(response.nvrtc_calls(), "call");
    }
    std::cout << ")";
  }
  std::cout << "\n";
  if (response.source_bytes() > 0)
    std::cout << "CUDA text   " << Bytes(response.source_bytes()) << "\n";
  if (response.cubin_bytes() > 0)
    std::cout << "cubin       " << Bytes(response.cubin_bytes()) << "\n";
  for (absl::string_view line : absl::StrSplit(response.schedule(), '\n', absl::SkipEmpty()))
    std::cout << "schedule    " << line << "\n";
  for (const std::string& note : response.notes()) std::cout << "note        " << note << "\n";
}

void PrintExplained(const v1::ExplainResponse& explained) {
  std::cout << "key  " << Hex(explained.key()) << "\n";
  for (const v1::ExplainResponse::Field& field : explained.fields()) {
    std::cout << "  " << field.name() << " = " << (field.value().empty() ? "(none)" : field.value())
              << "\n";
  }
  std::cout << (explained.cached() ? absl::StrCat("cached: ", SourceName(explained.source()))
                                   : "not cached")
            << "\n"
            << explained.reason() << "\n";
  for (const std::string& near : explained.nearest()) std::cout << "near: " << near << "\n";
}

}  // namespace

int Compile(const Common& common, const GraphArguments& arguments, const std::string& output_file) {
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
  if (!loaded.ok()) return Fail(common, loaded.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  absl::StatusOr<client::Fusion> fusion =
      (*client)->Compile(loaded->graph, arguments.target, loaded->layouts, arguments.options);
  if (!fusion.ok()) return Fail(common, fusion.status());
  if (!output_file.empty()) {
    absl::StatusOr<std::string> bytes = (*client)->LeaseBytes(fusion->executable_digest);
    if (!bytes.ok()) return Fail(common, bytes.status());
    const absl::Status written = WriteOutput(output_file, *bytes);
    if (!written.ok()) return Fail(common, written);
  }
  if (common.json) {
    PrintJson(fusion->response);
  } else {
    PrintCompile(arguments, fusion->response);
    if (!output_file.empty()) std::cout << "written to  " << output_file << "\n";
  }
  return kExitOk;
}

int Explain(const Common& common, const GraphArguments& arguments, bool schedule) {
  absl::StatusOr<v1::ExplainRequest> request = MakeExplainRequest(arguments);
  if (!request.ok()) return Fail(common, request.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  request->set_schedule(schedule);
  absl::StatusOr<v1::ExplainResponse> explained = (*client)->Explain(*request);
  if (!explained.ok()) return Fail(common, explained.status());
  if (common.json) {
    PrintJson(*explained);
  } else if (schedule) {
    std::cout << executable::Print(explained->schedule());
  } else {
    PrintExplained(*explained);
  }
  return kExitOk;
}

}  // namespace fusiond::cli
