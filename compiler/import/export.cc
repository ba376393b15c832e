#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <vector>

#include "compiler/import/graph_proto.h"

namespace fusiond::graph_proto {
namespace {

struct ValueWriter {
  v1::Attribute* out;

  void operator()(bool value) const { out->set_bool_value(value); }
  void operator()(int64_t value) const { out->set_int_value(value); }
  void operator()(double value) const { out->set_number(value); }
  void operator()(ir::DType value) const { out->set_dtype(static_cast<v1::DType>(value)); }
  void operator()(const std::vector<int64_t>& values) const {
    v1::Ints* ints = out->mutable_ints();
    for (const int64_t value : values) ints->add_values(value);
  }
  void operator()(const std::vector<bool>& values) const {
    v1::Bools* bools = out->mutable_bools();
    for (const bool value : values) bools->add_values(value);
  }
};

template <typename Message>
void WriteAttributes(const ir::Attributes& attributes, Message* out) {
  for (const auto& [key, value] : attributes) {
    v1::Attribute* to = out->add_attributes();
    to->set_key(static_cast<v1::AttributeKey>(key));
    std::visit(ValueWriter{to}, value);
  }
}

}  // namespace

v1::Graph ToProto(const ir::Graph& graph) {
  v1::Graph proto;
  proto.set_version(kGraphVersion);
  std::vector<uint32_t> numbers(graph.value_count());
  uint32_t next = 0;
  for (const ir::ValueId id : graph.inputs()) {
    numbers[id] = next++;
    const ir::Type& type = graph.type(id);
    v1::Input* input = proto.add_inputs();
    input->set_dtype(static_cast<v1::DType>(type.dtype));
    input->set_scalar(type.scalar);
    for (const int64_t extent : type.shape) input->add_shape(extent);
    WriteAttributes(graph.producer(id).attributes, input);
  }
  for (const ir::NodeId id : graph.TopologicalOrder()) {
    const ir::Node& node = graph.node(id);
    if (node.op == ir::Op::kInput) continue;
    for (const ir::ValueId result : node.results) numbers[result] = next++;
    v1::Node* to = proto.add_nodes();
    const absl::string_view name = ir::Info(node.op).name;
    to->set_op(name.data(), name.size());
    for (const ir::ValueId operand : node.operands) to->add_operands(numbers[operand]);
    WriteAttributes(node.attributes, to);
  }
  for (const ir::Output& output : graph.outputs()) {
    v1::Output* to = proto.add_outputs();
    to->set_value(numbers[output.value]);
    if (output.alias_input) to->set_alias_input(*output.alias_input);
  }
  return proto;
}

std::string ToBytes(const ir::Graph& graph) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  ToProto(graph).SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace fusiond::graph_proto
