#include "client/cli/json.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/utf8.h"

namespace fusiond::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Lines of an object or array between its brackets.
std::string Block(char open, const std::vector<std::string>& lines, char close, int indent) {
  if (lines.empty()) return {open, close};
  const std::string margin(static_cast<size_t>(indent) * 2, ' ');
  return absl::StrCat(std::string(1, open), "\n", margin, "  ",
                      absl::StrJoin(lines, absl::StrCat(",\n", margin, "  ")), "\n", margin,
                      std::string(1, close));
}

std::string ObjectOf(const Message& message, int indent);

// `index` < 0: a field that is not repeated.
std::string Value(const Message& message, const FieldDescriptor& field, int index, int indent) {
  const Reflection& r = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return index < 0 ? (r.*single)(message, &field) : (r.*repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return JsonNumber(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return JsonNumber(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return JsonString(get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ObjectOf(
          index < 0 ? r.GetMessage(message, &field) : r.GetRepeatedMessage(message, &field, index),
          indent);
    case FieldDescriptor::CPPTYPE_STRING:
      break;
  }
  const std::string text = get(&Reflection::GetString, &Reflection::GetRepeatedString);
  const bool digest = field.type() == FieldDescriptor::TYPE_BYTES && field.name() != "contents";
  return JsonString(digest ? absl::BytesToHexString(text) : text);
}

// map<string, …>: in order of key.
std::string MapOf(const Message& message, const FieldDescriptor& field, int indent) {
  std::vector<std::string> lines;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
    lines.push_back(absl::StrCat(Value(entry, *field.message_type()->map_key(), -1, indent + 1),
                                 ": ",
                                 Value(entry, *field.message_type()->map_value(), -1, indent + 1)));
  }
  std::sort(lines.begin(), lines.end());
  return Block('{', lines, '}', indent);
}

std::string ObjectOf(const Message& message, int indent) {
  const Reflection& r = *message.GetReflection();
  std::vector<std::string> lines;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    std::string value;
    if (field.is_map()) {
      value = MapOf(message, field, indent + 1);
    } else if (field.is_repeated()) {
      std::vector<std::string> entries;
      for (int k = 0; k < r.FieldSize(message, &field); ++k)
        entries.push_back(Value(message, field, k, indent + 2));
      value = Block('[', entries, ']', indent + 1);
    } else if (!field.has_presence() || r.HasField(message, &field)) {
      value = Value(message, field, -1, indent + 1);
    } else {
      continue;
    }
    lines.push_back(absl::StrCat(JsonString(field.name()), ": ", value));
  }
  return Block('{', lines, '}', indent);
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : base::ToUtf8(text)) {
    if (c == '"' || c == '\\') {
      quoted.append({'\\', c});
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string JsonNumber(double number) {
  return std::isfinite(number) ? absl::StrFormat("%.17g", number) : "null";
}

std::string ToJson(const Message& message) { return ObjectOf(message, 0); }

}  // namespace fusiond::cli
