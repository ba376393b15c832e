#include "tests/emulation/runtime/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/emulation/runtime/annotations.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace fusiond::emulation {
namespace {

constexpr size_t kGuardBytes = 4096;

// A stack outlives its fiber and serves the next one; so does ThreadSanitizer's notion of a fiber,
// which takes it a millisecond to make.
struct Stack {
  char* base;  // the guard page lies below
  void* tsan;
};

std::vector<Stack>& AllStacks() {
  static std::vector<Stack> stacks;
  return stacks;
}
std::vector<Stack>& FreeStacks() {
  static std::vector<Stack> stacks;
  return stacks;
}

Stack TakeStack() {
  std::vector<Stack>& free = FreeStacks();
  if (!free.empty()) {
    Stack stack = free.back();
    free.pop_back();
    Allow(stack.base, kStackBytes);
    return stack;
  }
  void* map = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED || mprotect(map, kGuardBytes, PROT_NONE) != 0) abort();
  Stack stack{static_cast<char*>(map) + kGuardBytes, nullptr};
#ifdef FDE_TSAN
  stack.tsan = __tsan_create_fiber(0);
#endif
  AllStacks().push_back(stack);
  return stack;
}

}  // namespace

struct Fiber::State {
  Stack stack{};
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
  // Filled by AddressSanitizer for whoever is switched away from.
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t bytes = 0;
};

#if defined(__x86_64__)
// Saves what a callee must preserve and the stack pointer, and takes up those of the other side.
extern "C" void fde_switch(void** save, void* load);
asm(R"(
.text
.globl fde_switch
.type fde_switch,@function
fde_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fde_switch,.-fde_switch
)");
#endif

// The side that every fiber suspends to.
Fiber::State* Fiber::Scheduler() {
  static State scheduler;
#ifdef FDE_TSAN
  if (scheduler.stack.tsan == nullptr) scheduler.stack.tsan = __tsan_get_current_fiber();
#endif
  return &scheduler;
}
Fiber::State* Fiber::current_ = nullptr;

Fiber::Fiber() : state_(std::make_unique<State>()) {}
Fiber::Fiber(Fiber&&) noexcept = default;
Fiber::~Fiber() {
  if (state_ != nullptr && state_->stack.base != nullptr) FreeStacks().push_back(state_->stack);
}

void Fiber::Switch(State& from, State& to, [[maybe_unused]] bool last) {
  current_ = &to;
#ifdef FDE_TSAN
  __tsan_switch_to_fiber(to.stack.tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef FDE_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(__x86_64__)
  fde_switch(&from.sp, to.sp);
#else
  swapcontext(&from.context, &to.context);
#endif
#ifdef FDE_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void Fiber::Enter() {
#ifdef FDE_ASAN
  State* scheduler = Scheduler();
  __sanitizer_finish_switch_fiber(nullptr, &scheduler->bottom, &scheduler->bytes);
#endif
  current_->function(current_->argument);
  Switch(*current_, *Scheduler(), /*last=*/true);
  abort();  // nobody resumes a fiber that has ended
}

void Fiber::Start(void (*function)(void*), void* argument) {
  State& s = *state_;
  s.stack = TakeStack();
  s.function = function;
  s.argument = argument;
  s.bottom = s.stack.base;
  s.bytes = kStackBytes;
#if defined(__x86_64__)
  // As fde_switch leaves it: six registers, then where it returns to. Enter() finds its stack
  // aligned as after a call.
  void** top = reinterpret_cast<void**>(s.stack.base + kStackBytes) - 2;
  top[0] = reinterpret_cast<void*>(&Fiber::Enter);
  top[1] = nullptr;
  memset(top - 6, 0, 6 * sizeof(void*));
  s.sp = top - 6;
#else
  getcontext(&s.context);
  s.context.uc_stack.ss_sp = s.stack.base;
  s.context.uc_stack.ss_size = kStackBytes;
  makecontext(&s.context, &Fiber::Enter, 0);
#endif
}

void Fiber::Resume() { Switch(*Scheduler(), *state_, false); }
void Fiber::Suspend() { Switch(*current_, *Scheduler(), false); }

bool Fiber::IsStackOverflow(const void* address) {
  for (const Stack& stack : AllStacks()) {
    const char* p = static_cast<const char*>(address);
    if (p < stack.base && p >= stack.base - kGuardBytes) return true;
  }
  return false;
}

#ifdef FDE_TSAN
Actor::Actor() : caller_(__tsan_get_current_fiber()) {
  static void* const actor = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(actor, __tsan_switch_to_fiber_no_sync);
}
Actor::~Actor() { __tsan_switch_to_fiber(caller_, __tsan_switch_to_fiber_no_sync); }
#else
Actor::Actor() : caller_(nullptr) {}
Actor::~Actor() { static_cast<void>(caller_); }
#endif

}  // namespace fusiond::emulation
