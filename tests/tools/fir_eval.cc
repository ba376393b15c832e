// fir_eval: evaluates a .fir graph on raw buffers, so that the evaluator can be held against other
// programs.
//
//   fir_eval [--precision=double] [--extents=2x3,3] --output=out.bin graph.fir x.bin w.bin
//
// An input file holds the elements of one graph input, row-major, little-endian, in its dtype. The
// output file holds every output in order, likewise; with --precision=double floats are written as
// f64. Stdout has one line an output: its type.
// Exit status: 0 done; 1 the graph or an input was refused, with the reason on stderr; 2 wrong
// usage.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/evaluate.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond {
namespace {

struct Flags {
  std::string graph;
  std::vector<std::string> inputs;
  std::string extents;
  std::string precision = "native";
  std::string output;
};

absl::StatusOr<cpu::HostTensor> ReadInput(const std::string& path, const ir::Type& type) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(path));
  const int64_t expected = ir::ElementCount(type).value_or(0) * ir::ByteSize(type.dtype);
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", ir::Print(type), " takes ", expected,
                                                   " bytes, the file has ", bytes.size()));
  }
  return cpu::ReadBuffer(type, bytes.data(), ir::ContiguousStrides(type.shape));
}

// Prints the type, returns the bytes.
std::string WriteOutput(cpu::HostTensor tensor, bool double_precision) {
  std::printf("%s\n", ir::Print(ir::TensorType(tensor.type.dtype, tensor.type.shape)).c_str());
  if (double_precision && ir::IsFloatingPoint(tensor.type.dtype)) {
    tensor.type.dtype = ir::DType::kDouble;
  }
  std::string bytes(tensor.size() * static_cast<size_t>(ir::ByteSize(tensor.type.dtype)), '\0');
  cpu::WriteBuffer(tensor, bytes.data(), ir::ContiguousStrides(tensor.type.shape));
  return bytes;
}

absl::Status Run(const Flags& flags) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags.graph));
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(text));
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kImported));
  if (!flags.extents.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(const std::vector<ir::Dims> extents,
                             ir::ParseExtents(flags.extents, graph));
    FUSIOND_ASSIGN_OR_RETURN(graph, ir::Specialise(graph, extents));
  }
  if (flags.inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat("the graph has ", graph.inputs().size(),
                                                   " inputs, given ", flags.inputs.size()));
  }
  std::vector<cpu::HostTensor> inputs;
  for (size_t i = 0; i < flags.inputs.size(); ++i) {
    FUSIOND_ASSIGN_OR_RETURN(cpu::HostTensor input,
                             ReadInput(flags.inputs[i], graph.type(graph.inputs()[i])));
    inputs.push_back(std::move(input));
  }
  cpu::EvaluateOptions options;
  options.double_precision = flags.precision == "double";
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cpu::HostTensor> outputs,
                           cpu::Evaluate(graph, std::move(inputs), options));
  std::string bytes;
  for (cpu::HostTensor& output : outputs) {
    absl::StrAppend(&bytes, WriteOutput(std::move(output), options.double_precision));
  }
  return base::WriteFileAtomically(flags.output, bytes);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Evaluates a graph in .fir text on raw buffers.", "fir_eval");
  app.add_option("graph", flags.graph, "The graph")->required();
  app.add_option("inputs", flags.inputs, "One file an input");
  app.add_option("--extents", flags.extents, "The inputs' shapes, as 2048x8192,8192");
  app.add_option("--precision", flags.precision)
      ->check(CLI::IsMember({"native", "double"}))
      ->capture_default_str();
  app.add_option("--output", flags.output, "Where the outputs go")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = Run(flags);
  if (!status.ok()) std::fprintf(stderr, "fir_eval: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace fusiond

int main(int argc, char** argv) { return fusiond::Main(argc, argv); }
