#include "tests/emulation/emulation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/device/device_text.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusiond::device {
extern const DeviceFile kTwinFiles[];
extern const int kTwinFilesCount;
}  // namespace fusiond::device

namespace fusiond::emulation {
namespace {

using ::fusiond::device::DeviceFile;

// These have no original: they stand before everything else.
constexpr absl::string_view kAlwaysFirst[] = {"abi.cuh", "host.cuh", "libdevice.cuh"};

absl::Span<const DeviceFile> TwinFiles() {
  return absl::MakeConstSpan(device::kTwinFiles, device::kTwinFilesCount);
}

const DeviceFile* FindTwin(absl::string_view name) {
  const auto files = TwinFiles();
  auto found = std::find_if(files.begin(), files.end(),
                            [&](const DeviceFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

void AppendFile(const DeviceFile& file, std::string* out) {
  absl::StrAppend(out, "#line 1 \"", file.name, "\"\n", file.text);
}

// Runs a program to its end with both its outputs in `log_path`. Returns its wait status.
absl::StatusOr<int> Spawn(const std::vector<std::string>& words, const std::string& log_path,
                          const std::vector<std::string>& extra_environment = {}) {
  std::vector<char*> argv, envp;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (char** e = environ; *e != nullptr; e++) envp.push_back(*e);
  for (const std::string& e : extra_environment) envp.push_back(const_cast<char*>(e.c_str()));
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return base::ErrnoStatus(error, absl::StrCat("start ", words[0]));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return base::ErrnoStatus(errno, absl::StrCat("wait for ", words[0]));
  }
  return status;
}

// A folder that goes away with its files.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Make() {
    std::string path = "/tmp/fusiond_emulation_XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return base::ErrnoStatus(errno, "make a folder in /tmp");
    return Scratch(path);
  }
  Scratch(Scratch&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ~Scratch() {
    if (path_.empty()) return;
    for (const std::string& name : names_) unlink(name.c_str());
    rmdir(path_.c_str());
  }
  std::string File(absl::string_view name) {
    names_.push_back(absl::StrCat(path_, "/", name));
    return names_.back();
  }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::vector<std::string> names_;
};

absl::Status WriteBytes(const std::string& path, absl::string_view bytes) {
  base::UniqueFd fd(open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::ErrnoStatus(errno, absl::StrCat("open ", path));
  return base::WriteAll(fd.get(), bytes);
}

absl::string_view RunnerName(Checker checker) {
  switch (checker) {
    case Checker::kPlain:
      return "emulation_runner";
    case Checker::kAddress:
      return "emulation_runner_asan";
    case Checker::kThread:
      return "emulation_runner_tsan";
  }
  return "";
}

std::vector<std::string> CompilerFlags(const RunOptions& options) {
  std::string number;
  for (char c : options.arch)
    if (c >= '0' && c <= '9') number += c;
  std::vector<std::string> flags = {"-x",
                                    "c++",
                                    "-std=c++17",
                                    "-O1",
                                    "-fPIC",
                                    "-w",
                                    "-fno-strict-aliasing",
                                    "-ffp-contract=off",
                                    "-g1",
                                    "-shared",
                                    absl::StrCat("-D__CUDA_ARCH__=", number, "0")};
  if (options.checker == Checker::kAddress) {
    flags.push_back("-fsanitize=address,alignment,signed-integer-overflow,shift,bounds");
    flags.push_back("-fno-sanitize-recover=all");
  }
  if (options.checker == Checker::kThread) flags.push_back("-fsanitize=thread");
  return flags;
}

// The path of the library made of `text`, from the cache or by g++.
absl::StatusOr<std::string> Compile(const std::string& text, const RunOptions& options) {
  const std::vector<std::string> flags = CompilerFlags(options);
  base::FieldHasher hasher;
  hasher.Field(text).Field(FUSIOND_EMULATION_CXX_VERSION);
  for (const std::string& flag : flags) hasher.Field(flag);
  const std::string folder = FUSIOND_EMULATION_DIR "/compiled";
  FUSIOND_RETURN_IF_ERROR(base::MakeFolders(folder));
  const std::string stem = absl::StrCat(folder, "/", hasher.Finish().Hex().substr(0, 24));
  const std::string library = stem + ".so";
  if (access(library.c_str(), R_OK) == 0) return library;
  FUSIOND_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Make());
  const std::string made = absl::StrCat(stem, ".", getpid(), ".tmp"), log = scratch.File("log");
  FUSIOND_RETURN_IF_ERROR(base::WriteFileAtomically(stem + ".cc", text));
  std::vector<std::string> words = {FUSIOND_EMULATION_CXX};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {stem + ".cc", "-o", made});
  FUSIOND_ASSIGN_OR_RETURN(int status, Spawn(words, log));
  if (status != 0) {
    FUSIOND_ASSIGN_OR_RETURN(std::string output, base::ReadFile(log));
    return absl::InvalidArgumentError(
        absl::StrCat("g++ rejects ", stem, ".cc:\n", output.substr(0, 4000)));
  }
  if (rename(made.c_str(), library.c_str()) != 0)
    return base::ErrnoStatus(errno, absl::StrCat("rename ", made));
  return library;
}

// Sanitizers end the process with a report; so does the runner on a signal.
absl::Status FaultReport(int status, const std::string& log) {
  FUSIOND_ASSIGN_OR_RETURN(std::string output, base::ReadFile(log));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return absl::AbortedError("the emulation ran out of time");
  const std::string how = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                              : absl::StrCat("exit status ", WEXITSTATUS(status));
  return absl::AbortedError(absl::StrCat(output.substr(0, 8000), "(", how, ")"));
}

}  // namespace

std::vector<Interleaving> SixInterleavings() {
  return {{Order::kAscending, true, 1},   {Order::kDescending, true, 2},
          {Order::kShuffled, true, 3},    {Order::kAscending, false, 4},
          {Order::kDescending, false, 5}, {Order::kShuffled, false, 6}};
}

std::vector<Twin> Twins() {
  std::vector<Twin> twins;
  for (const DeviceFile& file : TwinFiles()) {
    if (std::find(std::begin(kAlwaysFirst), std::end(kAlwaysFirst), file.name) ==
        std::end(kAlwaysFirst))
      twins.push_back({file.name, file.text});
  }
  return twins;
}

absl::StatusOr<std::string> EmulatedText(absl::string_view text,
                                         const std::vector<std::string>& entries) {
  std::string out;
  for (absl::string_view name : kAlwaysFirst) AppendFile(*FindTwin(name), &out);
  absl::string_view body = text;
  for (const DeviceFile& file : device::DeviceFiles()) {
    if (!absl::StartsWith(body, file.text)) continue;
    const DeviceFile* twin = FindTwin(file.name);
    AppendFile(twin != nullptr ? *twin : file, &out);
    body.remove_prefix(file.text.size());
  }
  if (body.size() == text.size())
    return absl::InvalidArgumentError("a kernel's text begins with device files; this does not");
  for (absl::string_view word : {"asm(", "asm volatile", "__shared__", "#include", "#define"}) {
    if (absl::StrContains(body, word))
      return absl::InvalidArgumentError(absl::StrCat("a kernel's body may not hold ", word));
  }
  const auto lines = std::count(text.begin(), body.begin(), '\n');
  absl::StrAppend(&out, "#line ", lines + 1, " \"kernel.cu\"\n", body, "\n");
  for (const std::string& entry : entries) {
    absl::StrAppend(&out, "extern \"C\" void fde_entry_", entry, "(void** a) { fde_call(", entry,
                    ", a); }\n");
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> Emulate(std::vector<KernelCall> chain,
                                                 std::vector<Tensor> tensors,
                                                 const RunOptions& options) {
  std::map<std::string, std::set<std::string>> entries;  // by text
  for (const KernelCall& call : chain) entries[call.text].insert(call.launch.entry);
  std::map<std::string, std::string> libraries;
  for (const auto& [text, names] : entries) {
    FUSIOND_ASSIGN_OR_RETURN(std::string emulated,
                             EmulatedText(text, {names.begin(), names.end()}));
    FUSIOND_ASSIGN_OR_RETURN(libraries[text], Compile(emulated, options));
  }
  Job job;
  job.tensors = std::move(tensors);
  for (KernelCall& call : chain) {
    call.launch.library = libraries[call.text];
    job.chain.push_back(std::move(call.launch));
  }
  job.interleavings = options.interleavings.empty() ? SixInterleavings() : options.interleavings;
  job.resident_ctas = options.resident_ctas;
  job.seconds = options.seconds;

  FUSIOND_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Make());
  const std::string in = scratch.File("job"), out = scratch.File("outcome");
  const std::string log = scratch.File("log");
  FUSIOND_RETURN_IF_ERROR(WriteBytes(in, Encode(job)));
  const std::string runner = absl::StrCat(FUSIOND_EMULATION_DIR, "/", RunnerName(options.checker));
  FUSIOND_ASSIGN_OR_RETURN(
      int status,
      Spawn({runner, in, out}, log,
            {"ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0",
             "UBSAN_OPTIONS=print_stacktrace=1", "TSAN_OPTIONS=halt_on_error=1:exitcode=66"}));
  if (status != 0) return FaultReport(status, log);
  FUSIOND_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(out));
  Outcome outcome;
  if (!Decode(bytes, &outcome)) return absl::InternalError("the runner's outcome is torn");
  if (!outcome.fault.empty()) return absl::AbortedError(outcome.fault);
  return std::move(outcome.tensors);
}

KernelRunner Emulator(RunOptions options) {
  return [options](const auto& chain, const auto& tensors) {
    return Emulate(chain, tensors, options);
  };
}

}  // namespace fusiond::emulation
