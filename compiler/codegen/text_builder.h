// TextBuilder: lines of indented text. Deterministic: what is appended is all that it holds.
//
// Thread-safety: thread-compatible.
#ifndef FUSIOND_COMPILER_CODEGEN_TEXT_BUILDER_H_
#define FUSIOND_COMPILER_CODEGEN_TEXT_BUILDER_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {

class TextBuilder {
 public:
  // One line made of the arguments, as absl::StrCat writes them.
  template <class... Args>
  void Line(const Args&... args) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), args..., "\n");
  }
  // "head {", and deeper from here.
  template <class... Args>
  void Open(const Args&... args) {
    Line(args..., " {");
    ++depth_;
  }
  void OpenBlock() {
    Line("{");
    ++depth_;
  }
  // `tail` follows the brace.
  void Close(absl::string_view tail = "") {
    --depth_;
    Line("}", tail);
  }
  // A loop that the compiler unrolls: "for (int <name> = 0; <name> < <count>; <name>++) {".
  void Unrolled(absl::string_view name, int count) {
    text_.append("#pragma unroll\n");
    Open("for (int ", name, " = 0; ", name, " < ", count, "; ", name, "++)");
  }

  std::string Take() && {
    FUSIOND_CHECK(depth_ == 0);
    return std::move(text_);
  }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_TEXT_BUILDER_H_
