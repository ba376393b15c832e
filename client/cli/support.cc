#include "client/cli/support.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

absl::StatusOr<std::vector<int64_t>> ParseExtents(const std::string& text, size_t input) {
  std::vector<int64_t> extents;
  if (text == "-" || text.empty()) return extents;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t extent;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--extents: input ", input, ": '", text, "' is not of the form 2048x8192"));
    }
    extents.push_back(extent);
  }
  return extents;
}

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

}  // namespace

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "fusionctl: %s\n",
               status.ToString(absl::StatusToStringMode::kWithNoExtraData).c_str());
  return absl::IsUnavailable(status) ? kExitNoDaemon : kExitFailed;
}

int FailUsage(const absl::Status& status) {
  std::fprintf(stderr, "fusionctl: %s\n", std::string(status.message()).c_str());
  return kExitUsage;
}

absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Common& common) {
  return client::Client::Connect(common.sockets);
}

absl::StatusOr<LoadedGraph> LoadGraph(const GraphArguments& arguments) {
  std::string text;
  if (arguments.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    FUSIOND_ASSIGN_OR_RETURN(text, base::ReadFile(arguments.file));
  }
  absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  if (!graph.ok()) {
    return absl::Status(graph.status().code(),
                        absl::StrCat(arguments.file, ":", graph.status().message()));
  }
  LoadedGraph loaded{*std::move(graph), {}};
  if (arguments.extents.size() > loaded.graph.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat("--extents: the graph has ",
                                                   loaded.graph.inputs().size(), " inputs, given ",
                                                   arguments.extents.size()));
  }
  std::vector<ir::Dims> bound;
  for (size_t i = 0; i < loaded.graph.inputs().size(); ++i) {
    const ir::ValueId input = loaded.graph.inputs()[i];
    const ir::Type& type = loaded.graph.type(input);
    client::Layout layout;
    if (i < arguments.extents.size() && arguments.extents[i] != "-") {
      FUSIOND_ASSIGN_OR_RETURN(layout.shape, ParseExtents(arguments.extents[i], i));
    } else {
      layout.shape.assign(type.shape.begin(), type.shape.end());
      for (int64_t extent : layout.shape) {
        if (extent == ir::kSymbolic) {
          return absl::InvalidArgumentError(absl::StrCat("input ", i, " is ", ir::Print(type),
                                                         ": say its extents with --extents"));
        }
      }
    }
    bound.emplace_back(layout.shape.begin(), layout.shape.end());
    if (layout.shape.size() == static_cast<size_t>(type.rank())) {
      layout.strides = Strides(loaded.graph, input, layout.shape);
    }
    loaded.layouts.push_back(std::move(layout));
  }
  FUSIOND_RETURN_IF_ERROR(ir::Specialise(loaded.graph, bound).status());
  return loaded;
}

void PrintJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for messages with Any fields, which none of ours has.
  if (google::protobuf::util::MessageToJsonString(message, &json, options).ok())
    std::cout << json << std::flush;
}

std::string Duration(int64_t ns) {
  const double v = static_cast<double>(ns);
  if (v < 1e3) return absl::StrFormat("%.0f ns", v);
  if (v < 1e6) return absl::StrFormat("%.1f us", v / 1e3);
  if (v < 1e9) return absl::StrFormat("%.1f ms", v / 1e6);
  return absl::StrFormat("%.2f s", v / 1e9);
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
