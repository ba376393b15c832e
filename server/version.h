// The version of this build.
#ifndef FUSIOND_SERVER_VERSION_H_
#define FUSIOND_SERVER_VERSION_H_

namespace fusiond::server {

// Set by CMake from the project's version.
inline constexpr char kVersion[] = FUSIOND_VERSION;

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_VERSION_H_
