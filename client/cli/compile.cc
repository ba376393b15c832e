// fusionctl compile, warm, explain, artifacts.
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/support.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

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
              << Duration(response.timing().plan_ns()) << ", NVRTC "
              << Duration(response.timing().nvrtc_ns()) << " in " << response.nvrtc_calls()
              << " calls)";
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

void PrintWarmEvent(const v1::WarmEvent& event) {
  if (event.has_item()) {
    const v1::WarmEvent::Item& item = event.item();
    std::cout << (item.code() == 0 ? SourceName(item.source()) : "failed") << "\t" << item.target()
              << "\t" << item.name() << "\t" << Duration(item.total_ns());
    if (item.code() != 0) std::cout << "\t" << item.message();
    std::cout << std::endl;
  } else {
    const v1::WarmEvent::Summary& summary = event.summary();
    std::cout << summary.total() << " items: " << summary.compiled() << " compiled, "
              << summary.cached() << " cached, " << summary.failed() << " failed"
              << (summary.draining() ? "; ended early because the daemon drains, run it again" : "")
              << std::endl;
  }
}

}  // namespace

int Compile(const Common& common, const GraphArguments& arguments, bool include_executable,
            const std::string& output_file) {
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
  if (!loaded.ok()) return FailUsage(loaded.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<client::Fusion> fusion =
      (*client)->Compile(loaded->graph, arguments.target, loaded->layouts, arguments.options);
  if (!fusion.ok()) return Fail(fusion.status());
  if (include_executable) {
    absl::StatusOr<std::string> bytes = (*client)->LeaseBytes(fusion->executable_digest);
    if (!bytes.ok()) return Fail(bytes.status());
    absl::Status written = base::WriteFileAtomically(output_file, *bytes);
    if (!written.ok()) return FailUsage(written);
  }
  if (common.json) {
    PrintJson(fusion->response);
  } else {
    PrintCompile(arguments, fusion->response);
  }
  return kExitOk;
}

int Warm(const Common& common, const std::vector<std::string>& files,
         const std::vector<std::string>& targets,
         const std::map<std::string, std::string>& options) {
  v1::WarmRequest request;
  for (const std::string& file : files) {
    GraphArguments arguments;
    // "file.fir" or "file.fir:2048x8192,8192": extents of the inputs after a colon.
    const size_t colon = file.find(':');
    arguments.file = file.substr(0, colon);
    if (colon != std::string::npos) {
      std::string rest = file.substr(colon + 1);
      for (size_t at = 0; at <= rest.size();) {
        const size_t comma = std::min(rest.find(',', at), rest.size());
        arguments.extents.push_back(rest.substr(at, comma - at));
        at = comma + 1;
      }
    }
    absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
    if (!loaded.ok()) return FailUsage(loaded.status());
    v1::CompileRequest compile =
        client::Client::MakeRequest(loaded->graph, "", loaded->layouts, options);
    v1::WarmItem* item = request.add_items();
    item->set_name(file);
    item->set_graph(std::move(*compile.mutable_graph()));
    item->mutable_inputs()->Swap(compile.mutable_inputs());
    item->mutable_options()->swap(*compile.mutable_options());
  }
  request.mutable_targets()->Assign(targets.begin(), targets.end());
  auto client = Connect(common);
  if (!client.ok()) return Fail(client.status());
  uint32_t failed = 0;
  absl::Status status = (*client)->Warm(request, [&](const v1::WarmEvent& event) {
    if (event.has_summary()) failed = event.summary().failed();
    common.json ? PrintJson(event) : PrintWarmEvent(event);
  });
  if (!status.ok()) return Fail(status);
  return failed == 0 ? kExitOk : kExitFailed;
}

int Explain(const Common& common, const GraphArguments& arguments) {
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
  if (!loaded.ok()) return FailUsage(loaded.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<v1::ExplainResponse> explained = (*client)->Explain(client::Client::MakeRequest(
      loaded->graph, arguments.target, loaded->layouts, arguments.options));
  if (!explained.ok()) return Fail(explained.status());
  if (common.json) {
    PrintJson(*explained);
    return kExitOk;
  }
  std::cout << "key  " << Hex(explained->key()) << "\n";
  for (const v1::ExplainResponse::Field& field : explained->fields()) {
    std::cout << "  " << field.name() << " = " << field.value() << "\n";
  }
  std::cout << (explained->cached() ? absl::StrCat("cached: ", SourceName(explained->source()))
                                    : "not cached")
            << "\n"
            << explained->reason() << "\n";
  for (const std::string& near : explained->nearest()) std::cout << "near: " << near << "\n";
  return kExitOk;
}

int Artifacts(const Common& common, const GraphArguments& arguments,
              const std::vector<std::string>& kinds, const std::string& folder) {
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
  if (!loaded.ok()) return FailUsage(loaded.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(client.status());
  v1::GetArtifactsRequest request;
  *request.mutable_request() = client::Client::MakeRequest(loaded->graph, arguments.target,
                                                           loaded->layouts, arguments.options);
  request.mutable_kinds()->Assign(kinds.begin(), kinds.end());
  absl::StatusOr<v1::GetArtifactsResponse> response = (*client)->GetArtifacts(request);
  if (!response.ok()) return Fail(response.status());
  if (common.json) {
    PrintJson(*response);
    return kExitOk;
  }
  for (const v1::GetArtifactsResponse::Artifact& artifact : response->artifacts()) {
    if (!artifact.missing().empty()) {
      std::cerr << artifact.kind() << ": " << artifact.missing() << "\n";
    } else if (folder.empty()) {
      std::cout << "// ---- " << artifact.kind() << " " << artifact.name() << "\n"
                << artifact.contents() << "\n";
    } else {
      absl::Status status = base::MakeFolders(folder);
      const std::string path = absl::StrCat(folder, "/", artifact.name(), ".", artifact.kind());
      if (status.ok()) status = base::WriteFileAtomically(path, artifact.contents());
      if (!status.ok()) return FailUsage(status);
      std::cout << path << "\n";
    }
  }
  return kExitOk;
}

}  // namespace fusiond::cli
