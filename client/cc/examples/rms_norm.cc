// rms_norm SOCKETS GRAPHS TARGET [SEED]
//
// A client of a running daemon: launches RMSNorm forward and two definitions of its backward, bf16
// of the forward graph's size (2048x8192), on random inputs, and compares each result with plain
// double-precision loops.
//
//   SOCKETS  folder with control.sock and channel.sock
//   GRAPHS   folder with the graph files (tests/data/graphs)
//   TARGET   cpu, or the UUID of a GPU. Launches go through shared memory to the daemon's worker;
//            on a GPU each is then repeated in this process, from a leased executable.
//   SEED     of the inputs; a fresh one is printed if none is given
//
// Exit code: 0 all results agree, 1 they do not or something failed (said on stderr), 2 usage.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/client.h"
#include "client/cc/examples/rms_norm_reference.h"
#include "client/cc/local_context.h"
#include "compiler/ir/text.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::examples {
namespace {

constexpr char kPoison = '\xff';  // a NaN in every element that a launch leaves unwritten

// One tensor of a launch: what goes in, or room for what comes out.
struct HostTensor {
  std::vector<int64_t> shape;
  char* data = nullptr;
  size_t bytes = 0;
};

template <typename T>
HostTensor Tensor(std::vector<int64_t> shape, const std::vector<T>& values) {
  return {std::move(shape), reinterpret_cast<char*>(const_cast<T*>(values.data())),
          values.size() * sizeof(T)};
}

struct Launch {
  std::string graph;                // file name without ".fir"
  std::vector<HostTensor> inputs;   // in the graph's order
  std::vector<HostTensor> outputs;  // likewise
};

executable::TensorArg ToArg(const HostTensor& tensor, uint64_t address) {
  executable::TensorArg arg;
  arg.address = address;
  arg.shape.assign(tensor.shape.begin(), tensor.shape.end());
  arg.strides.resize(tensor.shape.size());
  int64_t stride = 1;
  for (size_t d = tensor.shape.size(); d-- > 0; stride *= tensor.shape[d]) arg.strides[d] = stride;
  return arg;
}

class Runner {
 public:
  Runner(client::Client* client, std::string graphs, std::string target)
      : client_(*client), graphs_(std::move(graphs)), target_(std::move(target)) {}

  absl::StatusOr<ir::Graph> Load(const std::string& graph) const {
    FUSIOND_ASSIGN_OR_RETURN(const std::string text,
                             base::ReadFile(absl::StrCat(graphs_, "/", graph, ".fir")));
    return ir::Parse(text);
  }

  absl::StatusOr<client::Fusion> Compile(const Launch& launch) {
    FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, Load(launch.graph));
    std::vector<client::Layout> layouts;
    for (const HostTensor& input : launch.inputs) layouts.push_back({input.shape, {}});
    return client_.Compile(graph, target_, layouts);
  }

  // Through the channel: buffers that the worker and this process share, one ring entry a launch.
  absl::StatusOr<absl::Duration> LaunchRemotely(const Launch& launch,
                                                const client::Fusion& fusion) {
    client::SessionOptions options;
    options.timed = true;
    FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::Session> session,
                             client_.OpenDevice(target_, absl::Seconds(10), options));
    FUSIOND_ASSIGN_OR_RETURN(client::RemoteExecutable remote,
                             session->Load(fusion.executable_digest));
    FUSIOND_ASSIGN_OR_RETURN(const executable::Executable executable,
                             client_.Lease(fusion.executable_digest));
    std::vector<executable::TensorArg> inputs;
    for (const HostTensor& input : launch.inputs) inputs.push_back(ToArg(input, 0));
    std::vector<HostTensor> tensors = launch.inputs;
    tensors.insert(tensors.end(), launch.outputs.begin(), launch.outputs.end());
    std::vector<client::Buffer> host, device;
    for (const HostTensor& tensor : tensors) {
      FUSIOND_ASSIGN_OR_RETURN(client::Buffer buffer,
                               session->Allocate(tensor.bytes, client::MemoryKind::kHost));
      std::copy(tensor.data, tensor.data + tensor.bytes, buffer.data());
      host.push_back(std::move(buffer));
      if (!on_gpu()) continue;
      FUSIOND_ASSIGN_OR_RETURN(buffer,
                               session->Allocate(tensor.bytes, client::MemoryKind::kDevice));
      device.push_back(std::move(buffer));
    }
    std::vector<client::Place> places;
    for (size_t i = 0; i < tensors.size(); ++i) {
      places.push_back({on_gpu() ? &device[i] : &host[i], 0});
      if (on_gpu()) FUSIOND_RETURN_IF_ERROR(Copy(*session, host[i], device[i]));
    }
    FUSIOND_ASSIGN_OR_RETURN(
        client::LaunchTimes times,
        session->Run(remote, places, client::LaunchNumbers(executable, inputs)));
    for (size_t i = launch.inputs.size(); i < tensors.size(); ++i) {
      if (on_gpu()) FUSIOND_RETURN_IF_ERROR(Copy(*session, device[i], host[i]));
      std::copy(host[i].data(), host[i].data() + tensors[i].bytes, tensors[i].data);
    }
    return times.on_device;
  }

  // From a lease: this process loads the kernels and launches them itself.
  absl::StatusOr<absl::Duration> LaunchLocally(const Launch& launch, const client::Fusion& fusion) {
    FUSIOND_ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::Driver::Open());
    FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::LocalContext> context,
                             client::LocalContext::Open(*driver, fusion.response.target_arch()));
    FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::LocalExecutable> loaded,
                             client_.LoadLocally(fusion, *driver, context->device().info.sm_count));
    std::vector<executable::TensorArg> inputs, outputs;
    for (const HostTensor& input : launch.inputs) {
      FUSIOND_ASSIGN_OR_RETURN(cuda::CUdeviceptr address,
                               context->Upload({input.data, input.bytes}));
      inputs.push_back(ToArg(input, address));
    }
    for (const HostTensor& output : launch.outputs) {
      FUSIOND_ASSIGN_OR_RETURN(cuda::CUdeviceptr address,
                               context->Upload({output.data, output.bytes}));
      outputs.push_back(ToArg(output, address));
    }
    FUSIOND_ASSIGN_OR_RETURN(int64_t workspace_bytes, loaded->WorkspaceBytes(inputs));
    FUSIOND_ASSIGN_OR_RETURN(cuda::CUdeviceptr workspace,
                             context->Allocate(static_cast<uint64_t>(workspace_bytes)));
    FUSIOND_ASSIGN_OR_RETURN(absl::Duration took,
                             context->Launch(*loaded, inputs, outputs, workspace));
    for (size_t i = 0; i < outputs.size(); ++i) {
      FUSIOND_RETURN_IF_ERROR(
          context->Download(outputs[i].address, launch.outputs[i].bytes, launch.outputs[i].data));
    }
    return took;
  }

  bool on_gpu() const { return target_ != "cpu"; }

 private:
  static absl::Status Copy(client::Session& session, const client::Buffer& from,
                           const client::Buffer& to) {
    FUSIOND_ASSIGN_OR_RETURN(uint64_t copy, session.Copy({&from, 0}, {&to, 0}, from.bytes));
    return session.Wait(copy).status();
  }

  client::Client& client_;
  const std::string graphs_;
  const std::string target_;
};

// One line of figures for `outputs`; true when all are within what rounding allows.
struct Named {
  const char* name;
  Distance distance;
};
bool Report(const Launch& launch, const char* how, absl::Duration took,
            const std::vector<Named>& outputs) {
  std::printf("   %s, %s: ran %.1f ms;", launch.graph.c_str(), how,
              absl::ToDoubleMilliseconds(took));
  bool good = true;
  for (const Named& output : outputs) {
    std::printf(" error of %s at most %.0f %% of the allowed%s", output.name,
                100 * output.distance.worst, &output == &outputs.back() ? "" : ",");
    good = good && output.distance.worst <= 1;
  }
  std::printf("%s\n", good ? "" : "  WRONG");
  std::fflush(stdout);
  return good;
}

// Launches in every way that the target has; `compare` looks at the outputs each time.
absl::StatusOr<bool> RunAll(Runner& runner, const Launch& launch,
                            const std::function<std::vector<Named>()>& compare) {
  FUSIOND_ASSIGN_OR_RETURN(client::Fusion fusion, runner.Compile(launch));
  auto poison = [&] {
    for (const HostTensor& output : launch.outputs)
      std::fill(output.data, output.data + output.bytes, kPoison);
  };
  poison();
  FUSIOND_ASSIGN_OR_RETURN(absl::Duration took, runner.LaunchRemotely(launch, fusion));
  bool good = Report(launch, "by the daemon's worker", took, compare());
  if (!runner.on_gpu()) return good;
  poison();
  FUSIOND_ASSIGN_OR_RETURN(took, runner.LaunchLocally(launch, fusion));
  return Report(launch, "in this process, from a lease", took, compare()) && good;
}

absl::StatusOr<bool> Run(const std::string& sockets, const std::string& graphs,
                         const std::string& target, uint64_t seed) {
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::Client> client,
                           client::Client::Connect(sockets));
  Runner runner(client.get(), graphs, target);
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, runner.Load("rms_norm_forward"));
  const ir::Dims& shape = graph.type(graph.inputs()[0]).shape;
  const int64_t rows = shape[0], columns = shape[1];
  const RmsNormInputs in = RandomRmsNorm(rows, columns, seed);
  std::vector<uint16_t> matrix(rows * columns), row(columns);
  std::vector<float> column(rows);
  const HostTensor x = Tensor({rows, columns}, in.x), g = Tensor({rows, columns}, in.g),
                   w = Tensor({columns}, in.w), rms = Tensor({rows, 1}, in.rms),
                   rstd = Tensor({rows, 1}, in.rstd), y = Tensor({rows, columns}, matrix),
                   rstd_out = Tensor({rows, 1}, column), dw = Tensor({columns}, row);

  FUSIOND_ASSIGN_OR_RETURN(
      bool forward,
      RunAll(runner, {"rms_norm_forward", {x, w}, {y, rstd_out}}, [&]() -> std::vector<Named> {
        const ForwardDistance distance = CompareForward(in, matrix, column);
        return {{"y", distance.y}, {"1/rms", distance.rstd}};
      }));
  auto backward = [&](const std::vector<double>& r) -> std::vector<Named> {
    const BackwardDistance distance = CompareBackward(in, r, matrix, row);
    return {{"dx", distance.dx}, {"dw", distance.dw}};
  };
  const std::vector<double> given_rstd(in.rstd.begin(), in.rstd.end());
  std::vector<double> given_rms;
  for (float value : in.rms) given_rms.push_back(1 / double{value});
  FUSIOND_ASSIGN_OR_RETURN(bool thunder,
                           RunAll(runner, {"rms_norm_backward_thunder", {w, g, x, rstd}, {dw, y}},
                                  [&] { return backward(given_rstd); }));
  FUSIOND_ASSIGN_OR_RETURN(bool manual,
                           RunAll(runner, {"rms_norm_backward_manual", {x, rms, g, w}, {y, dw}},
                                  [&] { return backward(given_rms); }));
  return forward && thunder && manual;
}

int Main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    std::fprintf(stderr, "usage: rms_norm SOCKETS GRAPHS TARGET [SEED]\n");
    return 2;
  }
  const uint64_t seed =
      argc == 5 ? std::strtoull(argv[4], nullptr, 10) : uint64_t{std::random_device()()};
  std::printf("   seed %llu, target %s\n", static_cast<unsigned long long>(seed), argv[3]);
  const absl::StatusOr<bool> good = Run(argv[1], argv[2], argv[3], seed);
  if (!good.ok()) {
    std::fprintf(stderr, "rms_norm: %s\n", good.status().ToString().c_str());
    return 1;
  }
  return *good ? 0 : 1;
}

}  // namespace
}  // namespace fusiond::examples

int main(int argc, char** argv) { return fusiond::examples::Main(argc, argv); }
