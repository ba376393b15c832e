// fusionctl artifacts.
#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json.h"
#include "client/cli/support.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

using Artifact = v1::GetArtifactsResponse::Artifact;

void Print(const Artifact& artifact) {
  std::cout << "// ---- " << artifact.kind();
  if (!artifact.missing().empty()) {
    std::cout << ": none: " << artifact.missing() << "\n";
    return;
  }
  std::cout << " " << artifact.name() << "\n" << artifact.contents();
  std::cout << (absl::EndsWith(artifact.contents(), "\n") ? "" : "\n");
}

// One file an artefact; tells where each is, or why it is not.
absl::Status WriteFiles(const Common& common, const v1::GetArtifactsResponse& response,
                        const std::string& folder) {
  FUSIOND_RETURN_IF_ERROR(WrongUsage(base::MakeFolders(folder)));
  std::string json;
  for (const Artifact& artifact : response.artifacts()) {
    std::string path;
    if (artifact.missing().empty()) {
      path = absl::StrCat(folder, "/", artifact.name(), ".", artifact.kind());
      FUSIOND_RETURN_IF_ERROR(WriteOutput(path, artifact.contents()));
    }
    absl::StrAppend(
        &json, json.empty() ? "" : ",", "\n    {\"kind\": ", JsonString(artifact.kind()),
        ", \"file\": ", JsonString(path), ", \"missing\": ", JsonString(artifact.missing()), "}");
    if (common.json) continue;
    if (path.empty()) {
      Print(artifact);
    } else {
      std::cout << path << "\n";
    }
  }
  if (common.json) std::cout << "{\n  \"artifacts\": [" << json << "\n  ]\n}" << std::endl;
  return absl::OkStatus();
}

}  // namespace

int Artifacts(const Common& common, const GraphArguments& arguments,
              const std::vector<std::string>& kinds, const std::string& folder) {
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments);
  if (!loaded.ok()) return Fail(common, loaded.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  v1::GetArtifactsRequest request;
  *request.mutable_request() = client::Client::MakeRequest(loaded->graph, arguments.target,
                                                           loaded->layouts, arguments.options);
  request.mutable_kinds()->Assign(kinds.begin(), kinds.end());
  absl::StatusOr<v1::GetArtifactsResponse> response = (*client)->GetArtifacts(request);
  if (!response.ok()) return Fail(common, response.status());
  if (!folder.empty()) {
    const absl::Status written = WriteFiles(common, *response, folder);
    if (!written.ok()) return Fail(common, written);
  } else if (common.json) {
    PrintJson(*response);
  } else {
    for (const Artifact& artifact : response->artifacts()) Print(artifact);
  }
  // Of everything that is possible something may be missing, but not of what was asked for by name.
  for (const Artifact& artifact : response->artifacts()) {
    if (artifact.missing().empty() || kinds.empty()) continue;
    std::cerr << "fusionctl: " << artifact.kind() << ": none: " << artifact.missing() << std::endl;
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace fusiond::cli
