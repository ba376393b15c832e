// runner JOB OUTCOME: runs a job under each of its interleavings, from the same bytes each time,
// and compares the results bit by bit. Exit status 0 with an outcome file, or a message on standard
// error: what a sanitizer or a signal has to say.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/emulation/runtime/annotations.h"
#include "tests/emulation/runtime/machine.h"

namespace fusiond::emulation {
namespace {

// Where a crash happened, in the kernel's terms: as far as one can tell, for the message only.
const Tensors* tensors_for_signals = nullptr;

void OnSignal(int signal, siginfo_t* info, void*) {
  std::string text = signal == SIGXCPU ? "the emulation ran out of time"
                                       : std::string("signal ") + strsignal(signal);
  if (signal == SIGSEGV || signal == SIGBUS) {
    const std::string where = tensors_for_signals->Describe(info->si_addr);
    if (!where.empty()) text += ": an access " + where;
    if (Fiber::IsStackOverflow(info->si_addr)) text += ": a CUDA thread's stack of 64 KB is full";
  }
  if (fde_self != nullptr) {
    const Thread& self = Machine::Self();
    text += "; thread " + std::to_string(self.index) + " of CTA " +
            std::to_string(self.home->index) + " of " + self.home->grid->launch->entry;
    if (self.at.file != nullptr) text += ", which last waited at " + Place(self.at);
  }
  text += "\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(4);
  _exit(3);
}

void CatchSignals() {
  static char stack[1 << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  std::vector<int> caught;
#ifndef FDE_TSAN
  // ThreadSanitizer keeps a signal until the next call that it knows, which may never come; without
  // a handler the signal ends the process at once.
  caught.push_back(SIGXCPU);
#endif
#if !defined(FDE_ASAN) && !defined(FDE_TSAN)
  caught.insert(caught.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
#endif
  for (int signal : caught) sigaction(signal, &action, nullptr);
}

// Of the processor: a busy machine takes none of it. Fibers never block, so that an endless kernel
// uses it up.
void LimitTime(uint64_t seconds) {
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = static_cast<rlim_t>(seconds);
  setrlimit(RLIMIT_CPU, &limit);
}

std::string Name(const Interleaving& interleaving) {
  constexpr const char* kOrders[] = {"ascending", "descending", "shuffled"};
  std::string name = kOrders[static_cast<int>(interleaving.order)];
  if (interleaving.order == Order::kShuffled) name += " by " + std::to_string(interleaving.seed);
  return name + (interleaving.late_copies ? ", late copies" : ", early copies");
}

// Empty, or the first tensor and byte that differ.
std::string Compare(const std::vector<std::string>& first, const Tensors& tensors) {
  for (size_t i = 0; i < first.size(); i++) {
    const std::string now = tensors.Contents(i);
    if (now == first[i]) continue;
    size_t at = 0;
    while (now[at] == first[i][at]) at++;
    return "tensor " + std::to_string(i) + " differs from the first interleaving's from byte " +
           std::to_string(at) + " on";
  }
  return "";
}

Outcome RunJob(const Job& job) {
  Quiet quiet;
  Outcome outcome;
  Tensors tensors(job.tensors);
  tensors_for_signals = &tensors;
  Machine machine(job, tensors);
  for (const Interleaving& interleaving : job.interleavings) {
    tensors.Fill();
    outcome.fault = machine.Run(interleaving);
    if (outcome.fault.empty()) outcome.fault = tensors.CheckSurroundings();
    if (outcome.fault.empty()) outcome.fault = Compare(outcome.tensors, tensors);
    if (!outcome.fault.empty()) {
      outcome.fault += " (" + Name(interleaving) + ")";
      break;
    }
    if (outcome.interleavings_run++ == 0) {
      for (size_t i = 0; i < job.tensors.size(); i++)
        outcome.tensors.push_back(tensors.Contents(i));
    }
  }
  fde_self = nullptr;
  return outcome;
}

int Main(const char* job_path, const char* outcome_path) {
  std::ifstream in(job_path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Job job;
  if (!Decode(bytes, &job)) {
    fprintf(stderr, "%s is no job\n", job_path);
    return 2;
  }
  CatchSignals();
  LimitTime(job.seconds);
  const std::string outcome = Encode(RunJob(job));
  std::ofstream out(outcome_path, std::ios::binary);
  out.write(outcome.data(), static_cast<std::streamsize>(outcome.size()));
  out.flush();
  return out ? 0 : 2;
}

}  // namespace
}  // namespace fusiond::emulation

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s JOB OUTCOME\n", argv[0]);
    return 2;
  }
  return fusiond::emulation::Main(argv[1], argv[2]);
}
