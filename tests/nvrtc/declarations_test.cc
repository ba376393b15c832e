// Our declarations of NVRTC (compiler/nvrtc/nvrtc_api.h) against NVIDIA's header, where it is
// found: a difference does not compile.
#include <gtest/gtest.h>

#include <type_traits>

#include "compiler/nvrtc/nvrtc_api.h"

#if __has_include(<nvrtc.h>)
#define FUSIOND_HAVE_NVRTC_HEADER 1
#include <nvrtc.h>
#endif

namespace fusiond::nvrtc::api {
namespace {

#ifdef FUSIOND_HAVE_NVRTC_HEADER

// NVIDIA's type as ours: result codes and program handles differ in name only.
template <typename T>
struct Ours {
  using type = T;
};
template <>
struct Ours<nvrtcResult> {
  using type = Result;
};
template <>
struct Ours<nvrtcProgram> {
  using type = Program;
};
template <>
struct Ours<nvrtcProgram*> {
  using type = Program*;
};
template <typename R, typename... Args>
struct Ours<R(Args...)> {
  using type = typename Ours<R>::type(typename Ours<Args>::type...);
};

static_assert(sizeof(Result) == sizeof(nvrtcResult));
static_assert(sizeof(Program) == sizeof(nvrtcProgram));
static_assert(int{kSuccess} == int{NVRTC_SUCCESS});
static_assert(int{kOutOfMemory} == int{NVRTC_ERROR_OUT_OF_MEMORY});
static_assert(int{kInvalidOption} == int{NVRTC_ERROR_INVALID_OPTION});
static_assert(int{kCompilation} == int{NVRTC_ERROR_COMPILATION});
static_assert(int{kBuiltinOperationFailure} == int{NVRTC_ERROR_BUILTIN_OPERATION_FAILURE});

#define FUSIOND_SAME_TYPE(member, symbol, ...)                                          \
  static_assert(std::is_same_v<Symbols::member##_type, Ours<decltype(::symbol)>::type>, \
                #symbol " differs from nvrtc.h");
FUSIOND_NVRTC_FUNCTIONS(FUSIOND_SAME_TYPE)
#undef FUSIOND_SAME_TYPE

TEST(NvrtcDeclarationsTest, AgreeWithNvidiasHeader) { SUCCEED() << "checked at compile time"; }

#else

TEST(NvrtcDeclarationsTest, AgreeWithNvidiasHeader) {
  GTEST_SKIP() << "no nvrtc.h found when this test was built";
}

#endif

}  // namespace
}  // namespace fusiond::nvrtc::api
