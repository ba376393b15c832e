// The log of every role of fusiond: lines on stderr with time and level, or, where stderr is the
// journal, with the level as the journal reads it. Lines are cut to what a pipe takes at once, and
// left out, but counted, while nobody reads.
//
// Thread-safety: thread-safe once set up. Cost: a line below the level is dropped before anything.
#ifndef FUSIOND_SERVER_LOG_H_
#define FUSIOND_SERVER_LOG_H_

#include <string>

namespace fusiond::server {

// "debug", "info", "warning" or "error", and $JOURNAL_STREAM. Opens what it needs now: later lines
// are written in sandboxes too.
void SetUpLog(const std::string& level, const std::string& journal_stream);

void Log(const std::string& level, const std::string& line);
bool LogsDebug();

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LOG_H_
