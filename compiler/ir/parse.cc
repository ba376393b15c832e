// The .fir parser: one pass, one statement a line, no recursion. Grammar: README.md.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text_cursor_internal.h"
#include "compiler/ir/verify.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;

// A whole word as a number; false when it is not one, or out of range.
template <typename T>
bool ReadNumber(absl::string_view word, T& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

// A word for an error message, whatever its length.
absl::string_view Shorten(absl::string_view word) { return word.substr(0, 64); }

// A type as written: strides may be left out.
struct WrittenType {
  Type type;
  bool has_strides = false;
  Position position;
};

class Parser {
 public:
  Parser(absl::string_view text, const Limits& limits) : cursor_(text), limits_(limits) {}

  absl::StatusOr<Graph> Run(ValueNames* names) {
    FUSIOND_RETURN_IF_ERROR(ParseHeader());
    while (cursor_.NextLine()) {
      FUSIOND_RETURN_IF_ERROR(cursor_.Peek() == '%' ? ParseNode() : ParseOutput());
      FUSIOND_RETURN_IF_ERROR(cursor_.ExpectLineEnd());
    }
    if (graph_.outputs().empty()) {
      return At(cursor_.position(), RuleError(Rule::kHasOutput, "the graph has no output"));
    }
    if (names != nullptr) *names = std::move(names_);
    return std::move(graph_);
  }

 private:
  // Of the node or output that the statement is about: its name comes before the message.
  absl::Status AtItem(Position position, const absl::Status& status) const {
    if (status.ok()) return status;
    return At(position, absl::Status(status.code(), absl::StrCat(item_, ": ", status.message())));
  }

  absl::Status ParseHeader() {
    cursor_.NextLine();
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Word("'fir'"));
    if (word != "fir") return cursor_.Error("the first statement must be 'fir 1'");
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view version, cursor_.Word("the version"));
    if (version != absl::StrCat(kTextVersion)) {
      return cursor_.Error(absl::StrFormat("version '%s' is not supported, this is version %d",
                                           Shorten(version), kTextVersion));
    }
    return cursor_.ExpectLineEnd();
  }

  absl::Status ParseNode() {
    std::vector<std::pair<absl::string_view, Position>> names;
    do {
      FUSIOND_ASSIGN_OR_RETURN(const absl::string_view name, cursor_.ValueName());
      names.emplace_back(name, cursor_.token());
    } while (cursor_.Accept(','));
    item_ = absl::StrCat("node %", Shorten(names[0].first));
    FUSIOND_RETURN_IF_ERROR(cursor_.Expect('='));
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view op_name, cursor_.Word("an op"));
    const Position at_op = cursor_.token();
    const std::optional<Op> op = OpFromName(op_name);
    if (!op) return AtItem(at_op, UnknownOpError(op_name));
    FUSIOND_RETURN_IF_ERROR(AtItem(at_op, CheckNodeCount(graph_.nodes().size() + 1, limits_)));

    std::vector<ValueId> operands;
    while (cursor_.Peek() == '%') {
      FUSIOND_ASSIGN_OR_RETURN(const ValueId operand, ParseUse());
      operands.push_back(operand);
      if (!cursor_.Accept(',')) break;
      if (cursor_.Peek() != '%') return cursor_.Expect('%');
    }
    FUSIOND_ASSIGN_OR_RETURN(Attributes attributes, ParseAttributes(*op));
    std::vector<WrittenType> types;
    if (cursor_.Accept(':')) {
      do {
        FUSIOND_ASSIGN_OR_RETURN(WrittenType type, ParseType());
        types.push_back(std::move(type));
      } while (cursor_.Accept(','));
    }
    FUSIOND_ASSIGN_OR_RETURN(const NodeId node,
                             Make(*op, operands, std::move(attributes), types, at_op));
    return Define(names, graph_.node(node), types, at_op);
  }

  absl::StatusOr<NodeId> Make(Op op, const std::vector<ValueId>& operands, Attributes attributes,
                              const std::vector<WrittenType>& types, Position at_op) {
    if (op != Op::kInput) {
      absl::StatusOr<NodeId> node = graph_.AddNode(op, operands, std::move(attributes));
      return node.ok() ? node : AtItem(at_op, node.status());
    }
    ++interface_;
    FUSIOND_RETURN_IF_ERROR(AtItem(at_op, CheckInterface(interface_, limits_)));
    FUSIOND_RETURN_IF_ERROR(AtItem(at_op, CheckOperandCount(op, operands.size())));
    if (types.empty()) {
      return AtItem(at_op, absl::InvalidArgumentError("an input needs its type, as ': f32[8]'"));
    }
    absl::StatusOr<ValueId> input = graph_.AddInput(types[0].type, std::move(attributes));
    if (!input.ok()) return AtItem(at_op, input.status());
    return graph_.value(*input).producer;
  }

  // Binds the names on the left, after holding the types as written against the inferred ones.
  absl::Status Define(const std::vector<std::pair<absl::string_view, Position>>& names,
                      const Node& node, const std::vector<WrittenType>& types, Position at_op) {
    const size_t results = node.results.size();
    if (names.size() != results || (!types.empty() && types.size() != results)) {
      return AtItem(
          at_op,
          OpError(Rule::kArity, node.op,
                  absl::StrFormat("gives %s; written are %s and %s", Counted(results, "result"),
                                  Counted(names.size(), "name"), Counted(types.size(), "type"))));
    }
    for (size_t i = 0; i < results; ++i) {
      const Type& inferred = graph_.type(node.results[i]);
      FUSIOND_RETURN_IF_ERROR(AtItem(at_op, CheckElements(node.op, inferred, limits_)));
      if (!types.empty()) {
        WrittenType written = types[i];
        if (!written.has_strides) written.type.strides = inferred.strides;
        if (written.type != inferred) {
          return AtItem(
              written.position,
              RuleError(Rule::kStoredType,
                        absl::StrFormat("%s: the type is written as %s, the node gives %s",
                                        Info(node.op).name, Print(written.type), Print(inferred))));
        }
      }
      names_.emplace_back(Shorten(names[i].first));
      if (!values_.emplace(names[i].first, node.results[i]).second) {
        return AtItem(names[i].second,
                      RuleError(Rule::kDefinedBeforeUse,
                                absl::StrFormat("%%%s is defined twice", Shorten(names[i].first))));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ParseOutput() {
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Word("'%' or 'output'"));
    const Position at_output = cursor_.token();
    if (word != "output") {
      return cursor_.Error(absl::StrFormat("expected '%%' or 'output', found '%s'", Shorten(word)));
    }
    Output output;
    item_ = "output";
    FUSIOND_ASSIGN_OR_RETURN(output.value, ParseUse());
    item_ = absl::StrCat("output ", NameOf(output.value, &names_));
    if (cursor_.Peek() == 'a') {
      FUSIOND_ASSIGN_OR_RETURN(const absl::string_view alias, cursor_.Word("'alias'"));
      if (alias != "alias") return cursor_.Error("expected 'alias' or the end of the line");
      FUSIOND_ASSIGN_OR_RETURN(const ValueId target, ParseUse());
      FUSIOND_ASSIGN_OR_RETURN(output.alias_input, InputIndex(target));
    }
    ++interface_;
    FUSIOND_RETURN_IF_ERROR(AtItem(at_output, CheckInterface(interface_, limits_)));
    FUSIOND_RETURN_IF_ERROR(
        AtItem(at_output, CheckOutput(graph_, output, graph_.outputs(), &names_)));
    graph_.AddOutput(output.value, output.alias_input);
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> InputIndex(ValueId value) {
    const auto inputs = graph_.inputs();
    // Ids of inputs ascend.
    const auto at = std::lower_bound(inputs.begin(), inputs.end(), value);
    if (at == inputs.end() || *at != value) {
      return AtItem(cursor_.token(),
                    RuleError(Rule::kAlias, absl::StrCat("the alias ", NameOf(value, &names_),
                                                         " is not an input")));
    }
    return static_cast<uint32_t>(at - inputs.begin());
  }

  absl::StatusOr<ValueId> ParseUse() {
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view name, cursor_.ValueName());
    const auto it = values_.find(name);
    if (it != values_.end()) return it->second;
    return AtItem(cursor_.token(),
                  RuleError(Rule::kDefinedBeforeUse,
                            absl::StrFormat("%%%s is not defined above", Shorten(name))));
  }

  absl::StatusOr<Attributes> ParseAttributes(Op op) {
    Attributes attributes;
    if (!cursor_.Accept('{') || cursor_.Accept('}')) return attributes;
    do {
      FUSIOND_ASSIGN_OR_RETURN(const absl::string_view name, cursor_.Word("an attribute"));
      const Position at_name = cursor_.token();
      const std::optional<AttributeKey> key = AttributeFromName(name);
      const AttributeSpec* spec = nullptr;
      for (const AttributeSpec& candidate : Info(op).attributes) {
        if (candidate.key == key) spec = &candidate;
      }
      if (spec == nullptr) return AtItem(at_name, UnknownAttribute(op, Shorten(name)));
      if (attributes.Find(*key) != nullptr) {
        return AtItem(at_name, OpError(Rule::kAttributes, op,
                                       absl::StrFormat("attribute '%s' is given twice", name)));
      }
      FUSIOND_RETURN_IF_ERROR(cursor_.Expect('='));
      FUSIOND_ASSIGN_OR_RETURN(Attribute value, ParseAttribute(*spec));
      attributes.Set(*key, std::move(value));
    } while (cursor_.Accept(','));
    FUSIOND_RETURN_IF_ERROR(cursor_.Expect('}'));
    return attributes;
  }

  absl::StatusOr<Attribute> ParseAttribute(const AttributeSpec& spec) {
    const bool is_list = spec.kind == AttributeKind::kInts || spec.kind == AttributeKind::kBools;
    if (!is_list) return ParseAtom(spec.kind);
    std::vector<int64_t> ints;
    std::vector<bool> bools;
    FUSIOND_RETURN_IF_ERROR(cursor_.Expect('['));
    if (!cursor_.Accept(']')) {
      do {
        if (spec.key == AttributeKey::kContiguity) {
          FUSIOND_ASSIGN_OR_RETURN(const int64_t entry, ParseContiguity());
          ints.push_back(entry);
        } else if (spec.kind == AttributeKind::kInts) {
          FUSIOND_ASSIGN_OR_RETURN(const int64_t entry, ParseInt());
          ints.push_back(entry);
        } else {
          FUSIOND_ASSIGN_OR_RETURN(const Attribute entry, ParseAtom(AttributeKind::kBool));
          bools.push_back(std::get<bool>(entry));
        }
      } while (cursor_.Accept(','));
      FUSIOND_RETURN_IF_ERROR(cursor_.Expect(']'));
    }
    if (spec.kind == AttributeKind::kInts) return Attribute(std::move(ints));
    return Attribute(std::move(bools));
  }

  absl::StatusOr<Attribute> ParseAtom(AttributeKind kind) {
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Word("a value"));
    const bool any = kind == AttributeKind::kNumber;
    if (any || kind == AttributeKind::kBool) {
      if (word == "true") return Attribute(true);
      if (word == "false") return Attribute(false);
    }
    if (int64_t integer; (any || kind == AttributeKind::kInt) && ReadNumber(word, integer)) {
      return Attribute(integer);
    }
    // Digits alone are an integer, even one out of range.
    const bool is_float = word.find_first_of(".en") != absl::string_view::npos;
    if (double number; any && is_float && ReadNumber(word, number)) return Attribute(number);
    if (kind == AttributeKind::kDType) {
      if (const std::optional<DType> dtype = DTypeFromName(word)) return Attribute(*dtype);
      return cursor_.Error(absl::StrFormat("'%s' is no dtype", Shorten(word)));
    }
    return cursor_.Error(absl::StrFormat("'%s' is %s", Shorten(word),
                                         any ? "no bool, 64-bit integer or 64-bit float"
                                         : kind == AttributeKind::kBool ? "neither true nor false"
                                                                        : "no 64-bit integer"));
  }

  absl::StatusOr<int64_t> ParseInt() {
    FUSIOND_ASSIGN_OR_RETURN(const Attribute atom, ParseAtom(AttributeKind::kInt));
    return std::get<int64_t>(atom);
  }

  absl::StatusOr<int64_t> ParseContiguity() {
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Word("t, f or b"));
    if (word == "t") return kContiguous;
    if (word == "f") return kNotContiguous;
    if (word == "b") return kBroadcastDim;
    return cursor_.Error(absl::StrFormat("'%s' is none of t, f and b", Shorten(word)));
  }

  absl::StatusOr<WrittenType> ParseType() {
    WrittenType written;
    FUSIOND_ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Word("a dtype"));
    written.position = cursor_.token();
    const std::optional<DType> dtype = DTypeFromName(word);
    if (!dtype) return cursor_.Error(absl::StrFormat("'%s' is no dtype", Shorten(word)));
    written.type = ScalarType(*dtype);
    if (!cursor_.Accept('[')) return written;
    written.type.scalar = false;
    FUSIOND_RETURN_IF_ERROR(ParseDims(']', written.type.shape));
    if (!cursor_.Accept('{')) return written;
    written.has_strides = true;
    FUSIOND_RETURN_IF_ERROR(ParseDims('}', written.type.strides));
    return written;
  }

  // A list up to `close`, whose opening bracket is behind us; '?' is an unknown stride.
  absl::Status ParseDims(char close, Dims& dims) {
    if (cursor_.Accept(close)) return absl::OkStatus();
    do {
      int64_t entry = kUnknownStride;
      if (close != '}' || !cursor_.Accept('?')) {
        FUSIOND_ASSIGN_OR_RETURN(entry, ParseInt());
      }
      dims.push_back(entry);
    } while (cursor_.Accept(','));
    return cursor_.Expect(close);
  }

  TextCursor cursor_;
  const Limits& limits_;
  Graph graph_;
  absl::flat_hash_map<absl::string_view, ValueId> values_;
  ValueNames names_;
  std::string item_;      // "node %b", "output %b"
  size_t interface_ = 0;  // inputs and outputs so far
};

}  // namespace

absl::StatusOr<Graph> Parse(absl::string_view text, const Limits& limits, ValueNames* names) {
  FUSIOND_RETURN_IF_ERROR(CheckByteSize(text.size(), limits));
  return Parser(text, limits).Run(names);
}

}  // namespace fusiond::ir
