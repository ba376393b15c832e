// What a compile process that dies of a signal still tells: how much memory it had used.
//
// A library that is refused memory may crash instead of saying so; the supervisor tells such a
// crash from others by this figure alone (resource usage from wait(2) is of no use: its peak begins
// at that of the supervisor, whose memory the child shared until exec).
//
// Thread-safety: the handlers belong to the process; call once, from its only thread.
#ifndef FUSIOND_SERVER_POOL_LAST_WORDS_H_
#define FUSIOND_SERVER_POOL_LAST_WORDS_H_

#include <cstdint>

#include "server/process/harden.h"

namespace fusiond::server {

// The peak beyond `base_bytes`; 0 if it was never above.
uint64_t PeakBeyond(const MemoryMeter& meter, uint64_t base_bytes);

// From now on SIGABRT, SIGBUS, SIGFPE, SIGILL and SIGSEGV first send a CompileReply with
// `last_words` on kChildSocket, then take their usual course. `meter` must live as long as the
// process.
void LeaveLastWords(const MemoryMeter& meter, uint64_t base_bytes);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_LAST_WORDS_H_
