// Where a daemon listens, and where its files stand, when nobody says otherwise.
#ifndef FUSIOND_CLIENT_CC_PATHS_H_
#define FUSIOND_CLIENT_CC_PATHS_H_

#include <string>

namespace fusiond::client {

// A folder with control.sock and channel.sock. $FUSIOND_SOCKETS if set; else
// $XDG_RUNTIME_DIR/fusiond if a daemon's sockets stand there (a private daemon of this user); else
// /run/fusiond (the service). Reads the environment: call it from main or where a program reads its
// settings.
std::string DefaultSocketFolder();

std::string ControlSocket(const std::string& folder);
std::string ChannelSocket(const std::string& folder);

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_PATHS_H_
