#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/text_cursor_internal.h"

namespace fusiond::ir {
namespace {

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '+' ||
         c == '-';
}

}  // namespace

absl::Status At(Position position, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrFormat("%d:%d: %s", position.line, position.column,
                                                     status.message()));
}

void TextCursor::SkipBlanks() {
  while (offset_ < text_.size() &&
         (text_[offset_] == ' ' || text_[offset_] == '\t' || text_[offset_] == '\r')) {
    ++offset_;
  }
  if (offset_ < text_.size() && text_[offset_] == '#') {
    while (offset_ < text_.size() && text_[offset_] != '\n') ++offset_;
  }
}

bool TextCursor::NextLine() {
  for (;;) {
    SkipBlanks();
    if (offset_ == text_.size()) return false;
    if (text_[offset_] != '\n') return true;
    ++offset_;
    ++line_;
    line_start_ = offset_;
  }
}

char TextCursor::Peek() {
  SkipBlanks();
  return offset_ < text_.size() ? text_[offset_] : '\0';
}

bool TextCursor::Accept(char c) {
  if (Peek() != c || offset_ == text_.size()) return false;
  ++offset_;
  return true;
}

absl::Status TextCursor::Expect(char c) {
  if (Accept(c)) return absl::OkStatus();
  return ErrorHere(absl::StrFormat("'%c'", c));
}

absl::Status TextCursor::ExpectLineEnd() {
  if (Peek() == '\n' || offset_ == text_.size()) return absl::OkStatus();
  return ErrorHere("the end of the line");
}

absl::StatusOr<absl::string_view> TextCursor::Word(absl::string_view expected) {
  SkipBlanks();
  token_ = position();
  const size_t begin = offset_;
  while (offset_ < text_.size() && IsWordByte(text_[offset_])) ++offset_;
  if (offset_ == begin) return ErrorHere(expected);
  return text_.substr(begin, offset_ - begin);
}

absl::StatusOr<absl::string_view> TextCursor::ValueName() {
  SkipBlanks();
  const Position begin = position();
  if (!Accept('%')) return ErrorHere("a value name (%…)");
  if (offset_ == text_.size() || !IsWordByte(text_[offset_])) {
    return At(begin, absl::InvalidArgumentError("a name must follow '%' at once"));
  }
  absl::StatusOr<absl::string_view> word = Word("a name after '%'");
  token_ = begin;
  return word;
}

absl::Status TextCursor::Error(absl::string_view message) const {
  return At(token_, absl::InvalidArgumentError(message));
}

absl::Status TextCursor::ErrorHere(absl::string_view expected) {
  const char next = Peek();
  std::string found = absl::StrCat("'", absl::CHexEscape(absl::string_view(&next, 1)), "'");
  if (offset_ == text_.size()) {
    found = "the end of the text";
  } else if (next == '\n') {
    found = "the end of the line";
  }
  return At(position(),
            absl::InvalidArgumentError(absl::StrCat("expected ", expected, ", found ", found)));
}

}  // namespace fusiond::ir
