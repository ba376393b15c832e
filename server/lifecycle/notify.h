// Tells systemd how the service fares (Type=notify). Source of the protocol: sd_notify(3), "Notes":
// one datagram of NAME=VALUE lines to the socket that $NOTIFY_SOCKET names.
//
// Written out here because libsystemd would bring four more libraries into every bundle for these
// few lines.
#ifndef FUSIOND_SERVER_LIFECYCLE_NOTIFY_H_
#define FUSIOND_SERVER_LIFECYCLE_NOTIFY_H_

#include <string>

namespace fusiond::server {

// Sends `state` ("READY=1") to `socket_path`, the value of $NOTIFY_SOCKET: a path, or "@name" in
// the abstract space. Does nothing when it is empty, and nothing is reported when it fails: the
// service goes on all the same.
void NotifySystemd(const std::string& socket_path, const std::string& state);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LIFECYCLE_NOTIFY_H_
