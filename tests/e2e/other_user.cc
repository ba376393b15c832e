// other_user UID SOCKETS DIGEST: becomes UID and asks the daemon for what it should and should not
// get; prints "what: code" for each. For identity tests, which start it as root.
#include <grp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "client/cc/client.h"
#include "compiler/ir/text.h"

namespace fusiond {
namespace {

void Say(const char* what, const absl::Status& status) {
  std::printf("%s: %s\n", what, absl::StatusCodeToString(status.code()).c_str());
}

absl::Status Load(client::Client& client, const base::Digest& digest) {
  auto session = client.OpenDevice("cpu");
  return session.ok() ? (*session)->Load(digest).status() : session.status();
}

absl::Status RunAdd(client::Client& client, const base::Digest& digest) {
  auto session = client.OpenDevice("cpu");
  if (!session.ok()) return session.status();
  auto add = (*session)->Load(digest);
  if (!add.ok()) return add.status();
  auto buffer = (*session)->Allocate(3 * 4096, client::MemoryKind::kHost);
  if (!buffer.ok()) return buffer.status();
  return (*session)->Run(*add, {{&*buffer, 0}, {&*buffer, 4096}, {&*buffer, 8192}}, {}).status();
}

int Main(char** argv) {
  const auto uid = static_cast<uid_t>(std::strtoul(argv[1], nullptr, 10));
  if (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0) return 1;
  auto client = client::Client::Connect(argv[2], absl::Seconds(10));
  // A daemon that admits nobody else hangs up, now or at the first call.
  const absl::Status connected = client.ok() ? (*client)->GetStatus().status() : client.status();
  Say("connect", connected);
  if (!connected.ok()) return 0;
  const auto digest = base::DigestFromHex(argv[3]);
  if (!digest.ok()) return 2;
  Say("lease", (*client)->Lease(*digest).status());
  Say("load", Load(**client, *digest));
  v1::CacheEvictRequest evict;
  evict.set_all(true);
  Say("evict", (*client)->CacheEvict(evict).status());
  const auto graph =
      ir::Parse("fir 1\n%a=input:f32[1024]\n%b=input:f32[1024]\n%c=add %a, %b\noutput %c");
  if (!graph.ok()) return 3;
  const auto fusion = (*client)->Compile(*graph, "cpu");
  Say("compile", fusion.status());
  if (!fusion.ok()) return 0;
  std::printf("source: %s\n", v1::Source_Name(fusion->response.source()).c_str());
  Say("lease", (*client)->Lease(fusion->executable_digest).status());
  Say("load", Load(**client, fusion->executable_digest));
  Say("run", RunAdd(**client, fusion->executable_digest));
  return 0;
}

}  // namespace
}  // namespace fusiond

int main(int argc, char** argv) { return argc == 4 ? fusiond::Main(argv) : 2; }
