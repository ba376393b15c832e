#include "server/pool/last_words.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>

#include "server/process/child_process.h"

namespace fusiond::server {
namespace {

// A handler has no other way to its arguments. Written before the handlers are installed.
const MemoryMeter* g_meter = nullptr;
uint64_t g_base_bytes = 0;
char g_stack[64 << 10];  // the usual one may be what ran out

// Appends one byte of a message under construction.
struct Bytes {
  unsigned char data[32];
  size_t size = 0;
  void Add(uint64_t byte) { data[size++] = static_cast<unsigned char>(byte); }
};

// Only what is safe in a signal handler: no allocation, no lock. So the frame and its CompileReply
// {peak_bytes = 4, last_words = 8} are encoded by hand.
void OnSignal(int signal) {
  Bytes message;
  message.Add(4 << 3);
  uint64_t peak = PeakBeyond(*g_meter, g_base_bytes);
  for (; peak >= 0x80; peak >>= 7) message.Add((peak & 0x7f) | 0x80);
  message.Add(peak);
  message.Add(8 << 3);
  message.Add(1);
  Bytes frame;
  for (int i = 0; i < 4; ++i) frame.Add(message.size >> (8 * i));
  for (size_t i = 0; i < message.size; ++i) frame.Add(message.data[i]);
  [[maybe_unused]] ssize_t n = ::write(kChildSocket, frame.data, frame.size);
  ::raise(signal);  // its usual course by now (SA_RESETHAND), once this handler returns
}

}  // namespace

uint64_t PeakBeyond(const MemoryMeter& meter, uint64_t base_bytes) {
  const uint64_t peak = meter.PeakBytes();
  return peak > base_bytes ? peak - base_bytes : 0;
}

void LeaveLastWords(const MemoryMeter& meter, uint64_t base_bytes) {
  g_meter = &meter;
  g_base_bytes = base_bytes;
  stack_t stack = {};
  stack.ss_sp = g_stack;
  stack.ss_size = sizeof(g_stack);
  ::sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace fusiond::server
