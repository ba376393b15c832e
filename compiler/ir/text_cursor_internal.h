// A position in .fir text that knows its line and column.
//
// Thread-safety: thread-compatible. Ownership: the text must outlive the cursor.
// Units: lines and columns count from 1, columns in bytes.
// Errors: INVALID_ARGUMENT "line:column: …"; the position is where the token in question begins.
#ifndef FUSIOND_COMPILER_IR_TEXT_CURSOR_INTERNAL_H_
#define FUSIOND_COMPILER_IR_TEXT_CURSOR_INTERNAL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusiond::ir {

struct Position {
  size_t line = 1;
  size_t column = 1;
};

// `status` with the position before its message.
absl::Status At(Position position, const absl::Status& status);

class TextCursor {
 public:
  explicit TextCursor(absl::string_view text) : text_(text) {}

  // Skips blanks and a comment, not the line's end.
  void SkipBlanks();
  // Skips blanks, comments and line ends. Returns false at the end of the text.
  bool NextLine();
  // The next byte after blanks; '\n' at the end of a line, '\0' at the end of the text.
  char Peek();
  bool Accept(char c);
  absl::Status Expect(char c);
  // OK at the end of a line or of the text.
  absl::Status ExpectLineEnd();
  // One or more letters, digits, '_', '.', '+' and '-': names, keywords and numbers alike.
  // `expected` says in an error what should have stood here.
  absl::StatusOr<absl::string_view> Word(absl::string_view expected);
  // '%' and a word.
  absl::StatusOr<absl::string_view> ValueName();

  Position position() const { return {line_, offset_ - line_start_ + 1}; }
  // Where the last Word or ValueName began.
  Position token() const { return token_; }
  absl::Status Error(absl::string_view message) const;  // at token()

 private:
  absl::Status ErrorHere(absl::string_view expected);

  absl::string_view text_;
  size_t offset_ = 0;
  size_t line_ = 1;
  size_t line_start_ = 0;
  Position token_;
};

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_TEXT_CURSOR_INTERNAL_H_
