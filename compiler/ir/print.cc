#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/text.h"

namespace fusiond::ir {
namespace {

// The shortest decimal form that reads back as the same double, marked as one.
std::string PrintDouble(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (value != value) return "nan";
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct AttributePrinter {
  AttributeKey key;

  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return PrintDouble(value); }
  std::string operator()(DType value) const { return std::string(DTypeName(value)); }
  std::string operator()(const std::vector<int64_t>& values) const {
    if (key != AttributeKey::kContiguity) return List(values);
    std::string letters;
    for (const int64_t entry : values) {
      absl::StrAppend(&letters, letters.empty() ? "" : ",",
                      entry == kContiguous      ? "t"
                      : entry == kNotContiguous ? "f"
                                                : "b");
    }
    return absl::StrCat("[", letters, "]");
  }
  std::string operator()(const std::vector<bool>& values) const {
    return absl::StrCat(
        "[",
        absl::StrJoin(values, ",",
                      [](std::string* out, bool value) { out->append(value ? "true" : "false"); }),
        "]");
  }

 private:
  static std::string List(const std::vector<int64_t>& values) {
    return absl::StrCat("[", absl::StrJoin(values, ","), "]");
  }
};

void PrintAttributes(const Attributes& attributes, std::string& out) {
  absl::string_view separator = " {";
  for (const auto& [key, value] : attributes) {
    absl::StrAppend(&out, separator, AttributeName(key), "=",
                    std::visit(AttributePrinter{key}, value));
    separator = ", ";
  }
  if (attributes.begin() != attributes.end()) out += "}";
}

}  // namespace

std::string Print(const Type& type) {
  std::string out(DTypeName(type.dtype));
  if (type.scalar) return out;
  absl::StrAppend(&out, "[", absl::StrJoin(type.shape, ","), "]{");
  for (size_t d = 0; d < type.strides.size(); ++d) {
    if (d > 0) out += ",";
    if (type.strides[d] == kUnknownStride) {
      out += "?";
    } else {
      absl::StrAppend(&out, type.strides[d]);
    }
  }
  return out + "}";
}

std::string Print(const Graph& graph) {
  std::string out = absl::StrCat("fir ", kTextVersion, "\n");
  std::vector<size_t> numbers(graph.value_count());
  size_t next = 0;
  for (const NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    absl::string_view separator = "";
    for (const ValueId result : node.results) {
      numbers[result] = next++;
      absl::StrAppend(&out, separator, "%", numbers[result]);
      separator = ", ";
    }
    absl::StrAppend(&out, " = ", Info(node.op).name);
    separator = " ";
    for (const ValueId operand : node.operands) {
      absl::StrAppend(&out, separator, "%", numbers[operand]);
      separator = ", ";
    }
    PrintAttributes(node.attributes, out);
    separator = " : ";
    for (const ValueId result : node.results) {
      absl::StrAppend(&out, separator, Print(graph.type(result)));
      separator = ", ";
    }
    out += "\n";
  }
  for (const Output& output : graph.outputs()) {
    absl::StrAppend(&out, "output %", numbers[output.value]);
    if (output.alias_input) {
      absl::StrAppend(&out, " alias %", numbers[graph.inputs()[*output.alias_input]]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace fusiond::ir
