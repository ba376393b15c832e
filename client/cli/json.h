// What fusionctl prints under --json.
//
// Answers are JSON as protobuf maps it, by field name and with every field that is not a message or
// in a oneof, but made for scripts: 64-bit integers are numbers, digests are the hexadecimal digits
// that the commands take, artefacts are text.
#ifndef FUSIOND_CLIENT_CLI_JSON_H_
#define FUSIOND_CLIENT_CLI_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"

namespace fusiond::cli {

// In quotes; bytes that are no UTF-8 become '?'.
std::string JsonString(absl::string_view text);
// A finite number, else null.
std::string JsonNumber(double number);
// Indented by two spaces a level; no newline behind.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_JSON_H_
