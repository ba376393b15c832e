// What systemd passes to a service and hears from it. Source of the protocols: sd_notify(3),
// sd_listen_fds(3) and sd_watchdog_enabled(3), "Notes".
//
// Written out here because libsystemd would bring four more libraries into every bundle for these
// few lines. Environment variables come as values: main reads them.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_SERVER_LIFECYCLE_SYSTEMD_H_
#define FUSIOND_SERVER_LIFECYCLE_SYSTEMD_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace fusiond::server {

// Sends `state` ("READY=1") to `socket_path`, the value of $NOTIFY_SOCKET: a path, or "@name" in
// the abstract space. Does nothing when it is empty, and nothing is reported when it fails: the
// service goes on all the same.
void NotifySystemd(const std::string& socket_path, const std::string& state);

// How often WATCHDOG=1 is expected, from $WATCHDOG_USEC and $WATCHDOG_PID; zero: not at all.
absl::Duration WatchdogPeriod(const std::string& usec, const std::string& pid);

// Descriptors of sockets that systemd listens on for us, by name, from $LISTEN_FDS, $LISTEN_PID and
// $LISTEN_FDNAMES. They are made close-on-exec.
std::map<std::string, int> ListeningSockets(const std::string& fds, const std::string& pid,
                                            const std::string& names);

// Whether `fd` is the stream to the journal that $JOURNAL_STREAM names, "device:inode": a child
// whose output went elsewhere inherits the variable all the same.
bool IsJournal(const std::string& journal_stream, int fd);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LIFECYCLE_SYSTEMD_H_
