// Who calls: the domain of the accepting socket and the peer's uid.
//
// Thread-safety: values; an Admission may be called from any thread.
#ifndef FUSIOND_SERVER_SERVICE_IDENTITY_H_
#define FUSIOND_SERVER_SERVICE_IDENTITY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/channel/socket.h"

namespace fusiond::server {

struct Identity {
  std::string domain;  // folder of the socket
  uint32_t uid = 0;
  bool administrator = false;

  // "domain/uid": names a tenant.
  std::string Name() const { return absl::StrCat(domain, "/", uid); }
};

// Whether a peer may talk to this daemon at all, and who it then is.
using Admission = std::function<absl::StatusOr<Identity>(const channel::PeerIdentity& peer)>;

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_IDENTITY_H_
