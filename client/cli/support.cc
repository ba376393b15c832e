#include "client/cli/support.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/json.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

constexpr char kUsageMark[] = "fusionctl/usage";

// Row-major in the order in which the input's dims are stored.
std::vector<int64_t> Strides(const ir::Graph& graph, ir::ValueId input,
                             const std::vector<int64_t>& shape) {
  const std::vector<int64_t>& order =
      graph.producer(input).attributes.Ints(ir::AttributeKey::kStrideOrder);
  std::vector<int64_t> strides(shape.size());
  const ir::Type& type = graph.type(input);
  int64_t stride = 1;
  for (size_t rank = 0; rank < shape.size(); ++rank) {
    size_t dim = shape.size() - 1 - rank;
    for (size_t d = 0; d < order.size(); ++d) {
      if (order[d] == static_cast<int64_t>(rank)) dim = d;
    }
    if (type.strides[dim] == 0 && shape[dim] != 1) {  // expanded
      strides[dim] = 0;
      continue;
    }
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

absl::StatusOr<std::string> ReadGraphText(const std::string& file) {
  const size_t limit = ir::Limits().max_bytes;
  if (file == "-") {
    // One byte more than a graph may have, so that endless input ends.
    std::string text(limit + 1, '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::cin.gcount()));
    return text;
  }
  absl::StatusOr<std::string> text = base::ReadFile(file, limit);
  // A file that is too large is a graph that is.
  return text.ok() || absl::IsResourceExhausted(text.status()) ? text : WrongUsage(text.status());
}

}  // namespace

absl::Status WrongUsage(absl::Status status) {
  if (!status.ok()) status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

int Fail(const Common& common, const absl::Status& status) {
  const int exit_code = status.GetPayload(kUsageMark) ? kExitUsage
                        : absl::IsUnavailable(status) ? kExitNoDaemon
                                                      : kExitFailed;
  std::cerr << "fusionctl: " << status.ToString(absl::StatusToStringMode::kWithNoExtraData)
            << std::endl;
  if (common.json) {
    std::cout << "{\"error\": {\"code\": " << JsonString(absl::StatusCodeToString(status.code()))
              << ", \"message\": " << JsonString(status.message())
              << ", \"exit_code\": " << exit_code << "}}" << std::endl;
  }
  return exit_code;
}

absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Common& common) {
  if (common.sockets.empty())
    return WrongUsage(absl::InvalidArgumentError("--sockets names no folder"));
  auto client = client::Client::Connect(common.sockets);
  if (absl::IsInvalidArgument(client.status())) return WrongUsage(client.status());
  if (!absl::IsUnavailable(client.status())) return client;
  return absl::UnavailableError(
      absl::StrCat(client.status().message(),
                   "; start fusiond, or name its folder by --sockets or $FUSIOND_SOCKETS"));
}

absl::StatusOr<LoadedGraph> LoadGraph(const GraphArguments& arguments) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, ReadGraphText(arguments.file));
  const std::string file = arguments.file == "-" ? "standard input" : arguments.file;
  ir::ValueNames names;
  absl::StatusOr<ir::Graph> graph = ir::Parse(text, {}, &names);
  if (!graph.ok()) {
    return absl::Status(graph.status().code(), absl::StrCat(file, ":", graph.status().message()));
  }
  absl::StatusOr<std::vector<ir::Dims>> extents = ir::ParseExtents("", *graph);
  if (!extents.ok() || !arguments.extents_if_open)
    extents = ir::ParseExtents(arguments.extents, *graph);
  if (!extents.ok()) {
    return WrongUsage(absl::Status(
        extents.status().code(), absl::StrCat(file, ": --extents: ", extents.status().message())));
  }
  const absl::Status bound = ir::Specialise(*graph, *extents, &names).status();
  if (!bound.ok()) return absl::Status(bound.code(), absl::StrCat(file, ": ", bound.message()));
  LoadedGraph loaded{*std::move(graph), {}};
  for (size_t i = 0; i < extents->size(); ++i) {
    client::Layout layout;
    layout.shape.assign((*extents)[i].begin(), (*extents)[i].end());
    layout.strides = Strides(loaded.graph, loaded.graph.inputs()[i], layout.shape);
    loaded.layouts.push_back(std::move(layout));
  }
  return loaded;
}

GraphArguments SplitExtents(const std::string& file, const std::string& extents) {
  GraphArguments arguments;
  arguments.file = file;
  arguments.extents = extents;
  arguments.extents_if_open = true;
  const size_t colon = file.rfind(':');
  if (colon == std::string::npos || file.find('/', colon) != std::string::npos) return arguments;
  arguments.file = file.substr(0, colon);
  arguments.extents = file.substr(colon + 1);
  arguments.extents_if_open = false;
  return arguments;
}

bool IsKey(const std::string& what) {
  constexpr size_t kFewestDigits = 8, kDigits = 64;
  return what.size() >= kFewestDigits && what.size() <= kDigits &&
         std::all_of(what.begin(), what.end(),
                     [](unsigned char c) { return absl::ascii_isxdigit(c); }) &&
         ::access(what.c_str(), F_OK) != 0;
}

absl::StatusOr<v1::ExplainRequest> MakeExplainRequest(const GraphArguments& arguments) {
  v1::ExplainRequest request;
  if (!IsKey(arguments.file)) {
    FUSIOND_ASSIGN_OR_RETURN(const LoadedGraph loaded, LoadGraph(arguments));
    *request.mutable_request() = client::Client::MakeRequest(loaded.graph, arguments.target,
                                                             loaded.layouts, arguments.options);
    return request;
  }
  if (arguments.target_given || !arguments.extents.empty() || !arguments.options.empty()) {
    return WrongUsage(absl::InvalidArgumentError(absl::StrCat(
        "key ", arguments.file,
        " says target, extents and options itself: leave --target, --extents and --option out")));
  }
  request.set_key_prefix(absl::AsciiStrToLower(arguments.file));
  return request;
}

absl::Status WriteOutput(const std::string& path, absl::string_view data) {
  const base::UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));  // less the umask
  if (!fd.valid()) return WrongUsage(base::ErrnoStatus(errno, absl::StrCat("create ", path)));
  const absl::Status written = base::WriteAll(fd.get(), data);
  return WrongUsage(absl::Status(written.code(), absl::StrCat(path, ": ", written.message())));
}

void PrintJson(const google::protobuf::Message& message) {
  std::cout << ToJson(message) << std::endl;
}

std::string Duration(int64_t ns) {
  const double v = static_cast<double>(ns);
  if (v < 1e3) return absl::StrFormat("%.0f ns", v);
  if (v < 1e6) return absl::StrFormat("%.1f us", v / 1e3);
  if (v < 1e9) return absl::StrFormat("%.1f ms", v / 1e6);
  if (v < 120e9) return absl::StrFormat("%.2f s", v / 1e9);
  return absl::FormatDuration(absl::Trunc(absl::Nanoseconds(ns), absl::Seconds(1)));
}

std::string Bytes(uint64_t bytes) {
  const double v = static_cast<double>(bytes);
  if (v < 1024) return absl::StrFormat("%d B", bytes);
  if (v < 1024.0 * 1024) return absl::StrFormat("%.1f KiB", v / 1024);
  if (v < 1024.0 * 1024 * 1024) return absl::StrFormat("%.1f MiB", v / (1024.0 * 1024));
  return absl::StrFormat("%.1f GiB", v / (1024.0 * 1024 * 1024));
}

std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

const char* SourceName(v1::Source source) {
  switch (source) {
    case v1::COMPILED:
      return "compiled";
    case v1::MEMORY:
      return "memory";
    case v1::DISK:
      return "disk";
    case v1::REMOTE:
      return "remote";
    default:
      return "?";
  }
}

}  // namespace fusiond::cli
