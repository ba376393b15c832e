// The part of NVRTC's C interface that fusiond calls, declared here so that nothing includes or
// links CUDA: names, values and layouts are NVRTC's own since 11.2 and are held against the real
// header by tests/nvrtc/declarations_test.cc where that header exists.
//
// Thread-safety: Symbols is immutable once filled. Source: NVRTC documentation, CUDA 13.0.
#ifndef FUSIOND_COMPILER_NVRTC_NVRTC_API_H_
#define FUSIOND_COMPILER_NVRTC_NVRTC_API_H_

#include <cstddef>

namespace fusiond::nvrtc::api {

enum Result : unsigned int {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidOption = 5,
  kCompilation = 6,
  kBuiltinOperationFailure = 7,
};

struct OpaqueProgram;
using Program = OpaqueProgram*;

// One row per function: member of Symbols, name in the library, type.
#define FUSIOND_NVRTC_FUNCTIONS(X)                                           \
  X(get_error_string, nvrtcGetErrorString, const char*(Result))              \
  X(version, nvrtcVersion, Result(int* major, int* minor))                   \
  X(get_num_supported_archs, nvrtcGetNumSupportedArchs, Result(int* count))  \
  X(get_supported_archs, nvrtcGetSupportedArchs, Result(int* archs))         \
  X(create_program, nvrtcCreateProgram,                                      \
    Result(Program*, const char* source, const char* name, int header_count, \
           const char* const* headers, const char* const* include_names))    \
  X(destroy_program, nvrtcDestroyProgram, Result(Program*))                  \
  X(compile_program, nvrtcCompileProgram,                                    \
    Result(Program, int option_count, const char* const* options))           \
  X(get_ptx_size, nvrtcGetPTXSize, Result(Program, size_t*))                 \
  X(get_ptx, nvrtcGetPTX, Result(Program, char*))                            \
  X(get_cubin_size, nvrtcGetCUBINSize, Result(Program, size_t*))             \
  X(get_cubin, nvrtcGetCUBIN, Result(Program, char*))                        \
  X(get_log_size, nvrtcGetProgramLogSize, Result(Program, size_t*))          \
  X(get_log, nvrtcGetProgramLog, Result(Program, char*))

// The table: one function pointer per row above, all non-null once the library is open.
struct Symbols {
#define FUSIOND_NVRTC_MEMBER(member, symbol, ...) \
  using member##_type = __VA_ARGS__;              \
  member##_type* member = nullptr;
  FUSIOND_NVRTC_FUNCTIONS(FUSIOND_NVRTC_MEMBER)
#undef FUSIOND_NVRTC_MEMBER
};

}  // namespace fusiond::nvrtc::api

#endif  // FUSIOND_COMPILER_NVRTC_NVRTC_API_H_
