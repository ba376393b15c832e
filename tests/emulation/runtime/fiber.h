// Fibers: many stacks on one OS thread. A CUDA thread is one fiber; the scheduler resumes it, and
// it runs until it suspends itself or its function returns.
//
// Thread-safety: everything here belongs to one OS thread.
// Cost: a switch is 14 instructions on x86-64; elsewhere ucontext, with a system call.
#ifndef FUSIOND_TESTS_EMULATION_RUNTIME_FIBER_H_
#define FUSIOND_TESTS_EMULATION_RUNTIME_FIBER_H_

#include <cstddef>
#include <memory>

namespace fusiond::emulation {

inline constexpr size_t kStackBytes = size_t{64} << 10;

class Fiber {
 public:
  Fiber();
  ~Fiber();  // also of a fiber that is still suspended: its frames are dropped
  Fiber(Fiber&&) noexcept;

  // The first Resume() calls function(argument).
  void Start(void (*function)(void*), void* argument);
  // Runs the fiber until it suspends or its function returns. From the scheduler only.
  void Resume();
  // Back to the scheduler. From a fiber only.
  static void Suspend();

  // Whether `address` lies in the guard page below some fiber's stack.
  static bool IsStackOverflow(const void* address);

 private:
  struct State;
  static State* Scheduler();
  static void Enter();
  static void Switch(State& from, State& to, bool last);
  std::unique_ptr<State> state_;
  static State* current_;  // who runs
};

// A context that ThreadSanitizer takes for one more thread, without a stack: the copy engine.
class Actor {
 public:
  // Makes the actor current; the destructor returns to whoever was.
  Actor();
  ~Actor();

 private:
  void* caller_;
};

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUNTIME_FIBER_H_
