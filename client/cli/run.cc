// fusionctl run: inputs, a launch through the channel or in this process, and a comparison with the
// CPU device.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/inputs.h"
#include "client/cli/json.h"
#include "client/cli/local_run.h"
#include "client/cli/summary.h"
#include "client/cli/support.h"
#include "client/cli/tensors.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);  // with a worker that is restarting

// Allocates, copies in, launches, copies out.
absl::StatusOr<std::vector<HostArray>> RunRemotely(client::Session& session,
                                                   const client::Fusion& fusion,
                                                   const executable::Executable& executable,
                                                   const std::vector<HostArray>& inputs,
                                                   bool device_memory, int repeat,
                                                   RunReport& report) {
  FUSIOND_ASSIGN_OR_RETURN(std::vector<HostArray> outputs, OutputArrays(executable, inputs));
  FUSIOND_ASSIGN_OR_RETURN(client::RemoteExecutable remote, session.Load(fusion.executable_digest));
  // Host memory shared with the worker, and device memory beside it where the device has its own.
  std::vector<client::Buffer> host, device;
  std::vector<const HostArray*> arrays;
  std::vector<executable::TensorArg> input_args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool by_value = executable.inputs[i].scalar;
    input_args.push_back(ToArg(inputs[i], 0, by_value));
    if (!by_value) arrays.push_back(&inputs[i]);
  }
  const std::vector<int64_t> numbers = client::LaunchNumbers(executable, input_args);
  const size_t first_output = arrays.size();
  std::vector<size_t> fresh;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (executable.outputs[i].alias_input) continue;
    fresh.push_back(i);
    arrays.push_back(&outputs[i]);
  }
  std::vector<client::Place> places;
  for (const HostArray* array : arrays) {
    const uint64_t bytes = std::max<uint64_t>(array->data.size(), 1);
    FUSIOND_ASSIGN_OR_RETURN(client::Buffer buffer,
                             session.Allocate(bytes, client::MemoryKind::kHost));
    std::memcpy(buffer.data(), array->data.data(), array->data.size());
    host.push_back(std::move(buffer));
    if (!device_memory) continue;
    FUSIOND_ASSIGN_OR_RETURN(buffer, session.Allocate(bytes, client::MemoryKind::kDevice));
    device.push_back(std::move(buffer));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    places.push_back({device_memory ? &device[i] : &host[i], 0});
    if (!device_memory) continue;
    FUSIOND_ASSIGN_OR_RETURN(uint64_t copy,
                             session.Copy({&host[i], 0}, {&device[i], 0}, host[i].bytes));
    FUSIOND_RETURN_IF_ERROR(session.Wait(copy).status());
  }
  for (int i = 0; i < repeat; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(client::LaunchTimes times, session.Run(remote, places, numbers));
    report.device_times.push_back(times.on_device);
  }
  auto fetch = [&](size_t place, HostArray& to) -> absl::Status {
    if (device_memory) {
      FUSIOND_ASSIGN_OR_RETURN(
          uint64_t copy, session.Copy({&device[place], 0}, {&host[place], 0}, host[place].bytes));
      FUSIOND_RETURN_IF_ERROR(session.Wait(copy).status());
    }
    std::memcpy(to.data.data(), host[place].data(), to.data.size());
    return absl::OkStatus();
  };
  for (size_t i = 0; i < fresh.size(); ++i)
    FUSIOND_RETURN_IF_ERROR(fetch(first_output + i, outputs[fresh[i]]));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!executable.outputs[i].alias_input) continue;
    // The aliased input's place among the tensor inputs.
    size_t place = 0;
    for (uint32_t k = 0; k < *executable.outputs[i].alias_input; ++k)
      place += executable.inputs[k].scalar ? 0 : 1;
    FUSIOND_RETURN_IF_ERROR(fetch(place, outputs[i]));
  }
  return outputs;
}

absl::StatusOr<std::string> ChooseDevice(client::Client& client, const std::string& arch) {
  if (arch == "cpu") return std::string("cpu");
  FUSIOND_ASSIGN_OR_RETURN(v1::DevicesResponse devices, client.Devices());
  for (const v1::DevicesResponse::Device& device : devices.devices()) {
    if (device.arch() == arch && device.problem().empty()) return device.uuid();
  }
  return absl::FailedPreconditionError(absl::StrCat("no usable device of arch ", arch, " here",
                                                    devices.problem().empty() ? "" : ": ",
                                                    devices.problem()));
}

absl::StatusOr<std::vector<HostArray>> RunOnce(client::Client& client, const LoadedGraph& loaded,
                                               const RunArguments& arguments,
                                               const std::vector<HostArray>& inputs,
                                               RunReport& report) {
  FUSIOND_ASSIGN_OR_RETURN(client::Fusion fusion,
                           client.Compile(loaded.graph, arguments.graph.target, loaded.layouts,
                                          arguments.graph.options));
  FUSIOND_ASSIGN_OR_RETURN(executable::Executable executable,
                           client.Lease(fusion.executable_digest));
  report.source = fusion.response.source();
  report.arch = executable.arch;
  if (arguments.local)
    return RunLocally(executable, inputs, arguments.driver, arguments.repeat, report);
  std::string device = arguments.device;
  if (device.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(device, ChooseDevice(client, executable.arch));
  }
  report.device = device;
  client::SessionOptions options;
  options.answer_limit = absl::Seconds(arguments.wait_limit_s);
  options.timed = true;
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<client::Session> session,
                           client.OpenDevice(device, kPatience, options));
  return RunRemotely(*session, fusion, executable, inputs, device != "cpu", arguments.repeat,
                     report);
}

// How the executable came to this run.
const char* Origin(v1::Source source) {
  switch (source) {
    case v1::COMPILED:
      return "compiled now";
    case v1::MEMORY:
      return "from the daemon's memory";
    case v1::DISK:
      return "from disk";
    case v1::REMOTE:
      return "from the remote cache";
    default:
      return "of unknown origin";
  }
}

// As ToJson lays it out.
void PrintReportAsJson(const RunReport& report, int64_t median, uint64_t seed,
                       const std::vector<Summary>& outputs,
                       const std::vector<Comparison>& comparisons) {
  std::cout << "{\n  \"arch\": " << JsonString(report.arch)
            << ",\n  \"device\": " << JsonString(report.device)
            << ",\n  \"local\": " << (report.local ? "true" : "false")
            << ",\n  \"source\": " << JsonString(v1::Source_Name(report.source))
            << ",\n  \"seed\": " << seed << ",\n  \"launches\": " << report.device_times.size()
            << ",\n  \"median_device_ns\": " << median << ",\n  \"outputs\": [";
  for (size_t i = 0; i < outputs.size(); ++i)
    std::cout << (i > 0 ? "," : "") << "\n    {" << ToJsonMembers(outputs[i]) << "}";
  std::cout << (outputs.empty() ? "]" : "\n  ]") << ",\n  \"checks\": [";
  for (size_t i = 0; i < comparisons.size(); ++i) {
    std::cout << (i > 0 ? "," : "") << "\n    {\"elements\": " << comparisons[i].elements
              << ", \"off\": " << comparisons[i].off
              << ", \"worst\": " << JsonNumber(comparisons[i].worst) << "}";
  }
  std::cout << (comparisons.empty() ? "]\n}" : "\n  ]\n}") << std::endl;
}

void PrintReport(const Common& common, const RunReport& report, uint64_t seed,
                 const std::vector<Summary>& outputs, const std::vector<Comparison>& comparisons) {
  std::vector<absl::Duration> times = report.device_times;
  std::sort(times.begin(), times.end());
  const int64_t median = absl::ToInt64Nanoseconds(times[times.size() / 2]);
  if (common.json) return PrintReportAsJson(report, median, seed, outputs, comparisons);
  std::cout << "arch      " << report.arch << " on " << report.device
            << (report.local ? ", in this process" : "") << "; executable " << Origin(report.source)
            << "\n"
            << "seed      " << seed << "\n"
            << "launches  " << times.size() << ", median " << Duration(median)
            << " on the device\n";
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << "output " << i << "  " << ToText(outputs[i]) << "\n";
    if (comparisons.empty()) continue;
    const Comparison& c = comparisons[i];
    std::cout << "          " << c.elements - c.off << " of " << Counted(c.elements, "element")
              << absl::StrFormat(" within tolerance, worst at %.2f of it", c.worst) << "\n";
  }
}

// Flags that contradict each other, and --input.
absl::StatusOr<std::vector<InputSetting>> CheckArguments(const RunArguments& arguments) {
  if (arguments.local && arguments.graph.target == "cpu") {
    return absl::InvalidArgumentError(
        "--local launches on a GPU from this process; arch cpu runs in the daemon's worker: leave "
        "--local out, or name a GPU's --target");
  }
  std::vector<InputSetting> settings;
  for (const std::string& text : arguments.inputs) {
    FUSIOND_ASSIGN_OR_RETURN(settings.emplace_back(), ParseInputSetting(text));
  }
  return settings;
}

}  // namespace

int Run(const Common& common, const RunArguments& arguments) {
  const absl::StatusOr<std::vector<InputSetting>> settings = CheckArguments(arguments);
  if (!settings.ok()) return Fail(common, WrongUsage(settings.status()));
  absl::StatusOr<LoadedGraph> loaded = LoadGraph(arguments.graph);
  if (!loaded.ok()) return Fail(common, loaded.status());
  const uint64_t seed = arguments.seed != 0 ? arguments.seed : std::random_device()();
  const absl::StatusOr<std::vector<HostArray>> inputs =
      MakeInputs(loaded->graph, loaded->layouts, *settings, seed);
  if (!inputs.ok()) return Fail(common, inputs.status());
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  RunReport report;
  absl::StatusOr<std::vector<HostArray>> outputs =
      RunOnce(**client, *loaded, arguments, *inputs, report);
  if (!outputs.ok()) return Fail(common, outputs.status());
  std::vector<Comparison> comparisons;
  bool all_good = true;
  if (arguments.check) {
    RunArguments reference = arguments;
    reference.graph.target = "cpu";
    reference.graph.options["precision"] = "double";
    reference.device = "cpu";
    reference.local = false;
    reference.repeat = 1;
    RunReport unused;
    absl::StatusOr<std::vector<HostArray>> expected =
        RunOnce(**client, *loaded, reference, *inputs, unused);
    if (!expected.ok()) return Fail(common, expected.status());
    for (size_t i = 0; i < outputs->size(); ++i) {
      comparisons.push_back(Compare((*outputs)[i], (*expected)[i]));
      all_good = all_good && comparisons.back().off == 0;
    }
  }
  std::vector<Summary> summaries;
  for (const HostArray& output : *outputs) summaries.push_back(Summarise(output));
  PrintReport(common, report, seed, summaries, comparisons);
  return all_good ? kExitOk : kExitCheckFailed;
}

}  // namespace fusiond::cli
