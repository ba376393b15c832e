// Unix sockets: listening without stealing, peer identity, and messages that carry descriptors.
//
// Used for the channel (SOCK_SEQPACKET) and for the control socket (SOCK_STREAM).
//
// Thread-safety: functions are thread-safe; UnixListener is thread-compatible.
// Errors, where not said otherwise: as base::ErrnoStatus.
#ifndef FUSIOND_RUNTIME_CHANNEL_SOCKET_H_
#define FUSIOND_RUNTIME_CHANNEL_SOCKET_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/file.h"

namespace fusiond::channel {

// Who connected, as the kernel says (SO_PEERCRED at the time of connect).
struct PeerIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;  // 0 when the peer lives in a PID namespace that we cannot see
};

absl::StatusOr<PeerIdentity> GetPeerIdentity(int fd);

struct AcceptedConnection {
  base::UniqueFd fd;  // non-blocking, close-on-exec
  PeerIdentity peer;
};

// A bound, listening socket. Owns its path: unlinks it on destruction. A lock file beside it
// (`path`.lock) is held for the listener's life, and stays behind.
class UnixListener {
 public:
  // Binds `path` with exactly `mode` and listens. A socket file that nobody listens on any more is
  // replaced. Errors: ALREADY_EXISTS when a live process listens there or holds the lock (nothing
  // is touched then), FAILED_PRECONDITION when the path is no socket, INVALID_ARGUMENT when it is
  // too long.
  static absl::StatusOr<UnixListener> Listen(const std::string& path, int type, mode_t mode);
  // Takes over a socket that is already listening (socket activation); its path is left alone.
  static absl::StatusOr<UnixListener> Adopt(base::UniqueFd fd);

  UnixListener(UnixListener&&) = default;
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  // Whether the path still leads here: false once somebody has removed or replaced the socket, its
  // lock or their folder.
  bool InPlace() const;
  // Makes anew what of folder, lock and socket is gone. Connections go on, those that wait to be
  // accepted are lost, and fd() is another. On an error everything is as before. ALREADY_EXISTS:
  // another process listens there now. FAILED_PRECONDITION: adopted, so that others make the path.
  absl::Status Rebind();

  // UNAVAILABLE when no connection waits. RESOURCE_EXHAUSTED when the process has no descriptor
  // left: a connection that waited has been closed then, so the caller does not spin on it.
  absl::StatusOr<AcceptedConnection> Accept();

 private:
  UnixListener() = default;
  absl::Status TakeLock();
  absl::Status Bind();
  void NotePlace();
  bool IsOurs() const;  // the socket file at the path
  void Unlink();

  base::UniqueFd fd_;
  base::UniqueFd lock_;     // invalid when adopted
  base::UniqueFd reserve_;  // given up for a moment when descriptors run out
  std::string path_;
  int type_ = 0;
  mode_t mode_ = 0;
  // Of the socket file, and of the folder that it is in.
  struct Place {
    dev_t device = 0;
    ino_t inode = 0;
    mode_t folder_mode = 0;
    gid_t folder_group = 0;
  };
  std::optional<Place> place_;
};

// INVALID_ARGUMENT when `path` is longer than a socket's can be.
absl::Status CheckSocketPath(const std::string& path);

// UNAVAILABLE when nobody listens there (or the path does not exist), DEADLINE_EXCEEDED when the
// listener's queue stays full.
absl::StatusOr<base::UniqueFd> Connect(const std::string& path, int type, absl::Duration timeout);

inline constexpr size_t kMaxMessageBytes = 1024;
inline constexpr size_t kMaxMessageFds = 4;

struct ReceivedMessage {
  size_t size = 0;
  alignas(8) char bytes[kMaxMessageBytes];
  absl::InlinedVector<base::UniqueFd, kMaxMessageFds> fds;

  absl::string_view view() const { return {bytes, size}; }
};

// Sends one packet with copies of `fds`. UNAVAILABLE when the peer has hung up, DEADLINE_EXCEEDED
// when it does not read in time (a zero timeout never blocks).
absl::Status SendMessage(int fd, absl::string_view bytes, absl::Span<const int> fds,
                         absl::Duration timeout);

// Receives one packet; its descriptors are close-on-exec. UNAVAILABLE when the peer has hung up (an
// empty packet counts as that), DEADLINE_EXCEEDED when nothing arrives in time, INVALID_ARGUMENT
// when the packet or its descriptors do not fit: every descriptor received is closed then.
absl::StatusOr<ReceivedMessage> ReceiveMessage(int fd, absl::Duration timeout);

// True once the peer has closed or died; never blocks and consumes nothing.
bool HasHungUp(int fd);

// A connected pair of SOCK_SEQPACKET sockets, close-on-exec.
absl::StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> SocketPair();

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_SOCKET_H_
