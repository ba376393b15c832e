// The shortest whole use of fusiond: y = silu(x) * gate, compiled once and launched through the
// channel on the CPU device. client/cc/README.md shows the part between the marks.
//
//   silu_gate SOCKETS
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/cc/client.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"

namespace client = fusiond::client;

absl::Status Run(const std::string& sockets) {
  // [README
  constexpr char kGraph[] = R"(fir 1
%x = input : f32[1024]
%gate = input : f32[1024]
%s = silu %x
%y = mul %s, %gate
output %y
)";
  FUSIOND_ASSIGN_OR_RETURN(const fusiond::ir::Graph graph, fusiond::ir::Parse(kGraph));
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::Client> daemon,
                           client::Client::Connect(sockets));
  // Compiled now, or by whoever asked first.
  FUSIOND_ASSIGN_OR_RETURN(const client::Fusion fusion, daemon->Compile(graph, "cpu"));

  // A session has a worker; its buffers are memory that both map.
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::Session> session, daemon->OpenDevice("cpu"));
  FUSIOND_ASSIGN_OR_RETURN(const client::RemoteExecutable silu_gate,
                           session->Load(fusion.executable_digest));
  client::Buffer buffers[3];  // x, gate, y
  for (client::Buffer& buffer : buffers) {
    FUSIOND_ASSIGN_OR_RETURN(buffer,
                             session->Allocate(1024 * sizeof(float), client::MemoryKind::kHost));
  }
  auto* x = reinterpret_cast<float*>(buffers[0].data());
  auto* gate = reinterpret_cast<float*>(buffers[1].data());
  auto* y = reinterpret_cast<const float*>(buffers[2].data());
  for (int i = 0; i < 1024; ++i) x[i] = 0.01F * static_cast<float>(i - 512), gate[i] = 2;

  // One ring entry; repeat at will.
  const client::Place places[] = {{&buffers[0]}, {&buffers[1]}, {&buffers[2]}};
  FUSIOND_RETURN_IF_ERROR(session->Run(silu_gate, places, {}).status());
  // README]

  for (int i = 0; i < 1024; ++i) {
    const double expected = 2.0 * x[i] / (1 + std::exp(-double{x[i]}));
    if (std::fabs(y[i] - expected) > 1e-6)
      return absl::InternalError("y[" + std::to_string(i) + "] is " + std::to_string(y[i]));
  }
  std::printf("y is silu(x) * gate\n");
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: silu_gate SOCKETS\n");
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
