#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/import/graph_proto.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status_macros.h"

namespace fusiond::graph_proto {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using ir::Rule;
using ir::RuleError;

absl::StatusOr<ir::DType> ReadDType(int number) {
  for (const ir::DType dtype : ir::kAllDTypes) {
    if (static_cast<int>(dtype) == number) return dtype;
  }
  return RuleError(Rule::kDType,
                   absl::StrFormat("dtype %d is not supported; supported: 1 to 7", number));
}

// Requires: a known key.
absl::StatusOr<ir::Attribute> ReadValue(ir::Op op, const v1::Attribute& from) {
  switch (from.value_case()) {
    case v1::Attribute::kBoolValue:
      return ir::Attribute(from.bool_value());
    case v1::Attribute::kIntValue:
      return ir::Attribute(int64_t{from.int_value()});
    case v1::Attribute::kNumber:
      return ir::Attribute(from.number());
    case v1::Attribute::kDtype: {
      FUSIOND_ASSIGN_OR_RETURN(const ir::DType dtype, ReadDType(from.dtype()));
      return ir::Attribute(dtype);
    }
    case v1::Attribute::kInts:
      return ir::Attribute(
          std::vector<int64_t>(from.ints().values().begin(), from.ints().values().end()));
    case v1::Attribute::kBools:
      return ir::Attribute(
          std::vector<bool>(from.bools().values().begin(), from.bools().values().end()));
    case v1::Attribute::VALUE_NOT_SET:
      break;
  }
  return RuleError(Rule::kAttributes,
                   absl::StrFormat("%s: attribute '%s' has no value", ir::Info(op).name,
                                   ir::AttributeName(static_cast<ir::AttributeKey>(from.key()))));
}

// Builds the graph part by part; every part is checked before it is added.
class Importer {
 public:
  explicit Importer(const ir::Limits& limits) : limits_(limits) {}

  absl::Status CheckVersion(uint32_t version) const {
    if (version == kGraphVersion) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "graph version %d is not supported, this is version %d", version, kGraphVersion));
  }

  absl::Status AddInput(const v1::Input& from) {
    const size_t index = graph_.inputs().size();
    return Located("input", index, TryAddInput(from));
  }
  absl::Status AddNode(const v1::Node& from) {
    const size_t index = graph_.nodes().size() - graph_.inputs().size();
    return Located("node", index, TryAddNode(from));
  }
  absl::Status AddOutput(const v1::Output& from) {
    const size_t index = graph_.outputs().size();
    return Located("output", index, TryAddOutput(from));
  }

  absl::StatusOr<ir::Graph> Finish() {
    if (graph_.outputs().empty()) {
      return RuleError(Rule::kHasOutput, "the graph has no output");
    }
    return std::move(graph_);
  }

 private:
  static absl::Status Located(absl::string_view what, size_t index, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(what, " ", index, ": ", status.message()));
  }

  absl::Status TryAddInput(const v1::Input& from) {
    FUSIOND_RETURN_IF_ERROR(CheckCounts(1, 1));
    if (graph_.nodes().size() != graph_.inputs().size()) {
      return RuleError(Rule::kDefinedBeforeUse, "an input stands behind a node");
    }
    ir::Type type;
    FUSIOND_ASSIGN_OR_RETURN(type.dtype, ReadDType(from.dtype()));
    type.scalar = from.scalar();
    type.shape.assign(from.shape().begin(), from.shape().end());
    FUSIOND_ASSIGN_OR_RETURN(ir::Attributes attributes,
                             ReadAttributes(ir::Op::kInput, from.attributes()));
    FUSIOND_ASSIGN_OR_RETURN(const ir::ValueId input, graph_.AddInput(type, std::move(attributes)));
    return CheckElements(ir::Op::kInput, graph_.type(input), limits_);
  }

  absl::Status TryAddNode(const v1::Node& from) {
    FUSIOND_RETURN_IF_ERROR(CheckCounts(1, 0));
    const std::optional<ir::Op> op = ir::OpFromName(from.op());
    if (!op) return ir::UnknownOpError(from.op());
    absl::InlinedVector<ir::ValueId, 4> operands;
    for (const uint32_t operand : from.operands()) {
      FUSIOND_RETURN_IF_ERROR(CheckDefined(
          absl::StrCat(from.op(), ": operand ", operands.size(), " is value "), operand));
      operands.push_back(operand);
    }
    FUSIOND_ASSIGN_OR_RETURN(ir::Attributes attributes, ReadAttributes(*op, from.attributes()));
    FUSIOND_ASSIGN_OR_RETURN(const ir::NodeId node,
                             graph_.AddNode(*op, operands, std::move(attributes)));
    for (const ir::ValueId result : graph_.node(node).results) {
      FUSIOND_RETURN_IF_ERROR(CheckElements(*op, graph_.type(result), limits_));
    }
    return absl::OkStatus();
  }

  absl::Status TryAddOutput(const v1::Output& from) {
    FUSIOND_RETURN_IF_ERROR(CheckCounts(0, 1));
    FUSIOND_RETURN_IF_ERROR(CheckDefined("it is value ", from.value()));
    ir::Output output = {.value = from.value(), .alias_input = std::nullopt};
    if (from.has_alias_input()) output.alias_input = from.alias_input();
    FUSIOND_RETURN_IF_ERROR(CheckOutput(graph_, output, graph_.outputs()));
    graph_.AddOutput(output.value, output.alias_input);
    return absl::OkStatus();
  }

  // Limits, with as many more nodes, and inputs or outputs, as given.
  absl::Status CheckCounts(size_t nodes, size_t interface) const {
    FUSIOND_RETURN_IF_ERROR(CheckNodeCount(graph_.nodes().size() + nodes, limits_));
    return CheckInterface(graph_.inputs().size() + graph_.outputs().size() + interface, limits_);
  }

  absl::Status CheckDefined(absl::string_view what, uint32_t value) const {
    if (value < graph_.value_count()) return absl::OkStatus();
    return RuleError(Rule::kDefinedBeforeUse, absl::StrFormat("%s%d, values defined before it: %d",
                                                              what, value, graph_.value_count()));
  }

  static absl::StatusOr<ir::Attributes> ReadAttributes(
      ir::Op op, const google::protobuf::RepeatedPtrField<v1::Attribute>& from) {
    ir::Attributes attributes;
    for (const v1::Attribute& attribute : from) {
      const auto key = static_cast<ir::AttributeKey>(attribute.key());
      if (attribute.key() <= 0 || attribute.key() > v1::AttributeKey_MAX) {
        return RuleError(Rule::kAttributes,
                         absl::StrFormat("%s: attribute key %d is unknown, known: 1 to %d",
                                         ir::Info(op).name, attribute.key(), v1::AttributeKey_MAX));
      }
      if (attributes.Find(key) != nullptr) {
        return RuleError(Rule::kAttributes,
                         absl::StrFormat("%s: attribute '%s' is given twice", ir::Info(op).name,
                                         ir::AttributeName(key)));
      }
      FUSIOND_ASSIGN_OR_RETURN(ir::Attribute value, ReadValue(op, attribute));
      attributes.Set(key, std::move(value));
    }
    return attributes;
  }

  const ir::Limits& limits_;
  ir::Graph graph_;
};

constexpr uint32_t PartTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
constexpr uint32_t kVersionTag =
    WireFormatLite::MakeTag(v1::Graph::kVersionFieldNumber, WireFormatLite::WIRETYPE_VARINT);
constexpr uint32_t kInputsTag = PartTag(v1::Graph::kInputsFieldNumber);
constexpr uint32_t kNodesTag = PartTag(v1::Graph::kNodesFieldNumber);
constexpr uint32_t kOutputsTag = PartTag(v1::Graph::kOutputsFieldNumber);

absl::Status Malformed(const CodedInputStream& in) {
  return absl::InvalidArgumentError(
      absl::StrFormat("malformed graph message at byte %d", in.CurrentPosition()));
}

// Protobuf's own parser takes tags and lengths of at most 5 bytes, this stream's of up to 10.
constexpr int kMaxVarint32Bytes = 5;

bool ReadLength(CodedInputStream& in, uint32_t* length) {
  const int start = in.CurrentPosition();
  return in.ReadVarint32(length) && in.CurrentPosition() - start <= kMaxVarint32Bytes;
}

// 0 at the end of the bytes, and where there is no tag.
uint32_t ReadTag(CodedInputStream& in) {
  const int start = in.CurrentPosition();
  const uint32_t tag = in.ReadTag();
  return in.CurrentPosition() - start <= kMaxVarint32Bytes ? tag : 0;
}

// Over a field of a later version. Nothing writes groups, which proto3 does not have.
bool SkipField(CodedInputStream& in, uint32_t tag) {
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
      uint32_t length = 0;
      return WireFormatLite::GetTagFieldNumber(tag) != 0 && ReadLength(in, &length) &&
             length <= static_cast<uint32_t>(in.BytesUntilLimit()) &&
             in.Skip(static_cast<int>(length));
    }
    case WireFormatLite::WIRETYPE_START_GROUP:
      return false;
    default:
      return WireFormatLite::SkipField(&in, tag);
  }
}

// Reads one length-delimited part into `part`, whose memory is used again.
template <typename Part>
absl::Status ReadPart(CodedInputStream& in, Part& part) {
  uint32_t length = 0;
  if (!ReadLength(in, &length)) return Malformed(in);
  if (length > kMaxPartBytes) {
    return RuleError(
        Rule::kByteLimit,
        absl::StrFormat("an input, node or output of %d bytes, limit %d", length, kMaxPartBytes));
  }
  // PushLimit ignores a limit behind the end of the bytes.
  if (static_cast<int>(length) > in.BytesUntilLimit()) return Malformed(in);
  const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(length));
  part.Clear();
  if (!part.MergeFromCodedStream(&in) || !in.ConsumedEntireMessage()) return Malformed(in);
  in.PopLimit(limit);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ir::Graph> FromProto(const v1::Graph& proto, const ir::Limits& limits) {
  FUSIOND_RETURN_IF_ERROR(CheckByteSize(proto.ByteSizeLong(), limits));
  Importer importer(limits);
  FUSIOND_RETURN_IF_ERROR(importer.CheckVersion(proto.version()));
  for (const v1::Input& input : proto.inputs()) FUSIOND_RETURN_IF_ERROR(importer.AddInput(input));
  for (const v1::Node& node : proto.nodes()) FUSIOND_RETURN_IF_ERROR(importer.AddNode(node));
  for (const v1::Output& output : proto.outputs()) {
    FUSIOND_RETURN_IF_ERROR(importer.AddOutput(output));
  }
  return importer.Finish();
}

absl::StatusOr<ir::Graph> FromBytes(absl::string_view bytes, const ir::Limits& limits) {
  FUSIOND_RETURN_IF_ERROR(CheckByteSize(bytes.size(), limits));
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  // A part of its own may nest no deeper than inside a graph.
  in.SetRecursionLimit(CodedInputStream::GetDefaultRecursionLimit() - 1);
  Importer importer(limits);
  uint32_t version = 0;
  v1::Input input;
  v1::Node node;
  v1::Output output;
  while (const uint32_t tag = ReadTag(in)) {
    // Fields come in the order of their numbers: the version is first.
    if (tag != kVersionTag) FUSIOND_RETURN_IF_ERROR(importer.CheckVersion(version));
    switch (tag) {
      case kVersionTag:
        if (!in.ReadVarint32(&version)) return Malformed(in);
        break;
      case kInputsTag:
        FUSIOND_RETURN_IF_ERROR(ReadPart(in, input));
        FUSIOND_RETURN_IF_ERROR(importer.AddInput(input));
        break;
      case kNodesTag:
        FUSIOND_RETURN_IF_ERROR(ReadPart(in, node));
        FUSIOND_RETURN_IF_ERROR(importer.AddNode(node));
        break;
      case kOutputsTag:
        FUSIOND_RETURN_IF_ERROR(ReadPart(in, output));
        FUSIOND_RETURN_IF_ERROR(importer.AddOutput(output));
        break;
      default:
        if (!SkipField(in, tag)) return Malformed(in);
    }
  }
  if (!in.ConsumedEntireMessage()) return Malformed(in);
  FUSIOND_RETURN_IF_ERROR(importer.CheckVersion(version));  // of an empty message
  return importer.Finish();
}

}  // namespace fusiond::graph_proto
