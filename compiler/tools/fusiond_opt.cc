// fusiond-opt: the compiler's stages on the command line.
//
//   fusiond-opt rms_norm.fir                              parse, verify, print
//   fusiond-opt --specialise=2048x8192,8192 --hash -      the hash of a graph bound to extents
//
// Exit status: 0 done; 1 the graph was refused, with the reason on stderr; 2 wrong usage or an
// unreadable file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "compiler/ir/hash.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond {
namespace {

struct Flags {
  std::string file = "-";
  std::string specialise;
  std::string emit = "ir";
  bool verify_only = false;
  bool hash = false;
};

// What goes to stdout.
absl::StatusOr<std::string> Run(const std::string& text, const Flags& flags) {
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(text));
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kImported));
  if (!flags.specialise.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(const std::vector<ir::Dims> extents,
                             ir::ParseExtents(flags.specialise));
    FUSIOND_ASSIGN_OR_RETURN(graph, ir::Specialise(graph, extents));
    FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kSpecialised));
  }
  if (flags.hash) return ir::GraphHash(graph).Hex() + "\n";
  return flags.verify_only ? "" : ir::Print(graph);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Runs stages of the fusiond compiler on a graph in .fir text.", "fusiond-opt");
  app.add_option("file", flags.file, "The graph; - is standard input")->capture_default_str();
  app.add_option("--specialise", flags.specialise,
                 "Bind symbolic extents first: the inputs' shapes in order, as 2048x8192,8192; "
                 "nothing between commas for a scalar or a tensor of rank 0");
  app.add_option("--emit", flags.emit, "What to print")
      ->check(CLI::IsMember({"ir"}))
      ->capture_default_str();
  app.add_flag("--verify", flags.verify_only, "Print nothing; the exit status tells");
  app.add_flag("--hash", flags.hash, "Print the graph's hash");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<std::string> text =
      base::ReadFile(flags.file == "-" ? "/dev/stdin" : flags.file);
  if (!text.ok()) {
    std::fprintf(stderr, "fusiond-opt: %s\n", text.status().ToString().c_str());
    return 2;
  }
  const absl::StatusOr<std::string> output = Run(*text, flags);
  if (!output.ok()) {
    std::fprintf(stderr, "fusiond-opt: %s: %s\n", flags.file.c_str(),
                 output.status().ToString().c_str());
    return 1;
  }
  std::fwrite(output->data(), 1, output->size(), stdout);
  return 0;
}

}  // namespace
}  // namespace fusiond

int main(int argc, char** argv) { return fusiond::Main(argc, argv); }
