#include "compiler/nvrtc/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/nvrtc/build_id.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace fusiond::nvrtc {
namespace {

constexpr size_t kMaxErrorLogBytes = 64 << 10;
// The first NVRTC that can leave textures, surfaces and managed variables out of what it declares
// before every source: 3 ms of an empty kernel's 21 ms.
constexpr std::pair<int, int> kFirstWithMinimal = {12, 4};

absl::StatusOr<api::Symbols> LoadSymbols(const OpenLibrary& library) {
  api::Symbols symbols;
#define FUSIOND_NVRTC_LOAD(member, symbol, ...)                                         \
  symbols.member =                                                                      \
      reinterpret_cast<api::Symbols::member##_type*>(::dlsym(library.handle, #symbol)); \
  if (symbols.member == nullptr) {                                                      \
    return absl::FailedPreconditionError(                                               \
        absl::StrCat("NVRTC at ", library.path, " has no function ", #symbol));         \
  }
  FUSIOND_NVRTC_FUNCTIONS(FUSIOND_NVRTC_LOAD)
#undef FUSIOND_NVRTC_LOAD
  return symbols;
}

// Owns an nvrtcProgram.
class ScopedProgram {
 public:
  explicit ScopedProgram(const api::Symbols& symbols) : symbols_(symbols) {}
  ScopedProgram(const ScopedProgram&) = delete;
  ScopedProgram& operator=(const ScopedProgram&) = delete;
  ~ScopedProgram() {
    if (program_ != nullptr) symbols_.destroy_program(&program_);
  }
  api::Program get() const { return program_; }
  api::Program* address() { return &program_; }

 private:
  const api::Symbols& symbols_;
  api::Program program_ = nullptr;
};

// One of NVRTC's (size, bytes) pairs of getters.
api::Result GetBytes(api::Result (*size_of)(api::Program, size_t*),
                     api::Result (*copy)(api::Program, char*), api::Program program,
                     std::string* bytes) {
  size_t size = 0;
  if (api::Result result = size_of(program, &size); result != api::kSuccess) return result;
  bytes->assign(size, '\0');
  return size == 0 ? api::kSuccess : copy(program, bytes->data());
}

// NVRTC has no code for memory that ran out inside its front end or ptxas: the text is all there
// is (forms seen under RLIMIT_AS with 12.9 and 13.0). Its builtins, once open, fail for no other
// reason.
bool IsOutOfMemory(api::Result result, absl::string_view log) {
  return result == api::kOutOfMemory || result == api::kBuiltinOperationFailure ||
         absl::StrContains(log, "catastrophic error: out of memory") ||
         absl::StrContains(log, "ptxas fatal   : Memory allocation failure");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Nvrtc>> Nvrtc::Open(const NvrtcLocation& location) {
  FUSIOND_ASSIGN_OR_RETURN(OpenLibrary library, OpenNvrtc(location));
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc());
  nvrtc->path_ = library.path;
  FUSIOND_ASSIGN_OR_RETURN(nvrtc->symbols_, LoadSymbols(library));
  const api::Symbols& symbols = nvrtc->symbols_;
  int count = 0;
  if (symbols.version(&nvrtc->version_.major, &nvrtc->version_.minor) != api::kSuccess ||
      symbols.get_num_supported_archs(&count) != api::kSuccess || count <= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("NVRTC at ", library.path, " does not tell its version or its archs"));
  }
  nvrtc->supported_archs_.resize(count);
  symbols.get_supported_archs(nvrtc->supported_archs_.data());
  std::sort(nvrtc->supported_archs_.begin(), nvrtc->supported_archs_.end());

  FUSIOND_ASSIGN_OR_RETURN(OpenLibrary builtins, OpenBuiltins(library.path, nvrtc->version_.major,
                                                              nvrtc->version_.minor));
  FUSIOND_ASSIGN_OR_RETURN(std::string nvrtc_id, LibraryBuildId(library.path));
  FUSIOND_ASSIGN_OR_RETURN(std::string builtins_id, LibraryBuildId(builtins.path));
  nvrtc->identity_ = absl::StrCat("nvrtc ", nvrtc->version_.major, ".", nvrtc->version_.minor, " ",
                                  nvrtc_id, " builtins ", builtins_id);
  return nvrtc;
}

absl::Status Nvrtc::CheckArch(absl::string_view arch) const {
  absl::string_view digits = arch;
  int number = 0;
  bool well_formed = absl::ConsumePrefix(&digits, "sm_");
  if (!absl::ConsumeSuffix(&digits, "a")) absl::ConsumeSuffix(&digits, "f");
  well_formed =
      well_formed && !digits.empty() && digits.size() <= 4 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
      absl::SimpleAtoi(digits, &number);
  if (!well_formed) {
    return absl::InvalidArgumentError(
        absl::StrCat("arch \"", arch, "\": expected sm_<number>, optionally followed by a or f"));
  }
  if (std::binary_search(supported_archs_.begin(), supported_archs_.end(), number)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "NVRTC ", version_.major, ".", version_.minor, " (", path_, ") cannot compile for ", arch,
      ": it knows sm_", absl::StrJoin(supported_archs_, ", sm_"),
      number > supported_archs_.back() ? "; a newer NVRTC is needed" : ""));
}

absl::Status Nvrtc::Failure(api::Result result, absl::string_view action, const CompileInput& input,
                            absl::string_view log) const {
  const bool out_of_memory = IsOutOfMemory(result, log);
  std::string text =
      absl::StrCat("NVRTC ", version_.major, ".", version_.minor, " ", action, " failed for ",
                   input.name, ", ", input.arch, ": ", symbols_.get_error_string(result));
  if (!log.empty()) absl::StrAppend(&text, "\n", log.substr(0, kMaxErrorLogBytes));
  if (log.size() > kMaxErrorLogBytes) absl::StrAppend(&text, "\n[log cut]");
  return out_of_memory ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

absl::StatusOr<CompileOutput> Nvrtc::Compile(const CompileInput& input) const {
  FUSIOND_RETURN_IF_ERROR(CheckArch(input.arch));
  if (absl::StrContains(input.source, '\0')) {
    return absl::InvalidArgumentError(absl::StrCat(input.name, ": source holds a NUL character"));
  }
  const std::string arch_option = absl::StrCat("--gpu-architecture=", input.arch);
  std::vector<const char*> options = {arch_option.c_str(), "--ptxas-options=-v"};
  if (std::make_pair(version_.major, version_.minor) >= kFirstWithMinimal)
    options.push_back("--minimal");
  for (const std::string& option : input.options) options.push_back(option.c_str());

  const absl::Duration start = base::Clock::System().Now();
  ScopedProgram program(symbols_);
  api::Result result = symbols_.create_program(program.address(), input.source.c_str(),
                                               input.name.c_str(), 0, nullptr, nullptr);
  if (result != api::kSuccess) return Failure(result, "program creation", input, "");
  result =
      symbols_.compile_program(program.get(), static_cast<int>(options.size()), options.data());
  CompileOutput output;
  GetBytes(symbols_.get_log_size, symbols_.get_log, program.get(), &output.log);
  output.log = StableLog(absl::string_view(output.log.c_str()));
  if (result != api::kSuccess) return Failure(result, "compilation", input, output.log);

  result = GetBytes(symbols_.get_cubin_size, symbols_.get_cubin, program.get(), &output.cubin);
  if (result != api::kSuccess) return Failure(result, "reading the cubin", input, output.log);
  if (input.want_ptx) {
    result = GetBytes(symbols_.get_ptx_size, symbols_.get_ptx, program.get(), &output.ptx);
    if (result != api::kSuccess) return Failure(result, "reading the PTX", input, output.log);
    while (absl::EndsWith(output.ptx, absl::string_view("\0", 1))) output.ptx.pop_back();
  }
  output.entries = ParsePtxasLog(output.log);
  output.compile_time = base::Clock::System().Now() - start;
  return output;
}

}  // namespace fusiond::nvrtc
