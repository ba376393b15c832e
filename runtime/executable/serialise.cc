#include "runtime/executable/serialise.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/fusiond/v1/executable.pb.h"
#include "runtime/base/status_macros.h"

namespace fusiond::executable {
namespace {

// Limits of a record that may come from disk or from another machine.
constexpr int kMaxInputsAndOutputs = 4096;
constexpr int kMaxSteps = 65536;
constexpr int kMaxArguments = 4096;
constexpr uint32_t kMaxRank = 8;

// A number of the wire as one of our enums, all of which start at 1: what their byte cannot hold
// becomes 0, which the rules below refuse.
template <typename E>
E ToEnum(uint32_t number) {
  return static_cast<E>(number <= std::numeric_limits<uint8_t>::max() ? number : 0);
}

void ToProto(const Formula& formula, v1::Formula* out) {
  for (const FormulaTerm& term : formula.terms()) {
    v1::FormulaTerm* to = out->add_terms();
    to->set_kind(static_cast<v1::FormulaTerm::Kind>(term.kind));
    to->set_value(term.value);
    to->set_input(term.input);
    to->set_dim(term.dim);
  }
}

Formula FromProto(const v1::Formula& formula) {
  std::vector<FormulaTerm> terms;
  for (const v1::FormulaTerm& from : formula.terms()) {
    FormulaTerm term;
    term.kind = ToEnum<FormulaTerm::Kind>(from.kind());
    term.value = from.value();
    term.input = from.input();
    term.dim = from.dim();
    terms.push_back(term);
  }
  return Formula::FromTerms(terms);
}

void ToProto(const Guard& guard, v1::Guard* out) {
  out->set_kind(static_cast<v1::Guard::Kind>(guard.kind));
  out->set_input(guard.input);
  out->set_dim(guard.dim);
  if (guard.output) out->set_output(*guard.output);
  out->set_value(guard.value);
}

Guard FromProto(const v1::Guard& from) {
  Guard guard;
  guard.kind = ToEnum<Guard::Kind>(from.kind());
  guard.input = from.input();
  guard.dim = from.dim();
  if (from.has_output()) guard.output = from.output();
  guard.value = from.value();
  return guard;
}

void ToProto(const KernelStep& step, v1::KernelStep* out) {
  out->set_image(step.image);
  out->set_entry(step.entry);
  for (int i = 0; i < 3; ++i) {
    ToProto(step.grid[i], out->add_grid());
    ToProto(step.block[i], out->add_block());
    ToProto(step.cluster[i], out->add_cluster());
  }
  ToProto(step.dynamic_smem, out->mutable_dynamic_smem());
  out->set_pdl(step.pdl);
  for (const KernelArgument& argument : step.arguments) {
    v1::KernelArgument* to = out->add_arguments();
    to->set_kind(static_cast<v1::KernelArgument::Kind>(argument.kind));
    to->set_index(argument.index);
    to->set_dtype(static_cast<uint32_t>(argument.dtype));
    ToProto(argument.formula, to->mutable_formula());
  }
}

void ToProto(const MemsetStep& step, v1::MemsetStep* out) {
  if (step.output) out->set_output(*step.output);
  ToProto(step.offset, out->mutable_offset());
  ToProto(step.bytes, out->mutable_bytes());
  out->set_value(step.value);
}

void ToProto(const HostEvaluateStep& step, v1::HostEvaluateStep* out) {
  out->set_graph(step.graph);
  out->set_double_precision(step.double_precision);
}

absl::StatusOr<KernelStep> FromProto(const v1::KernelStep& from) {
  KernelStep step;
  if (from.grid_size() != 3 || from.block_size() != 3 || from.cluster_size() != 3) {
    return absl::InvalidArgumentError(
        "executable: a kernel step needs 3 grid, block and cluster extents");
  }
  step.image = from.image();
  step.entry = from.entry();
  for (int i = 0; i < 3; ++i) {
    step.grid[i] = FromProto(from.grid(i));
    step.block[i] = FromProto(from.block(i));
    step.cluster[i] = FromProto(from.cluster(i));
  }
  step.dynamic_smem = FromProto(from.dynamic_smem());
  step.pdl = from.pdl();
  for (const v1::KernelArgument& a : from.arguments()) {
    KernelArgument argument;
    argument.kind = ToEnum<KernelArgument::Kind>(a.kind());
    argument.index = a.index();
    argument.dtype = ToEnum<DType>(a.dtype());
    argument.formula = FromProto(a.formula());
    step.arguments.push_back(std::move(argument));
  }
  return step;
}

absl::StatusOr<Step> FromProto(const v1::Step& from) {
  switch (from.step_case()) {
    case v1::Step::kKernel: {
      FUSIOND_ASSIGN_OR_RETURN(KernelStep step, FromProto(from.kernel()));
      return Step(std::move(step));
    }
    case v1::Step::kMemset: {
      MemsetStep step;
      if (from.memset().has_output()) step.output = from.memset().output();
      step.offset = FromProto(from.memset().offset());
      step.bytes = FromProto(from.memset().bytes());
      if (from.memset().value() > 255) {
        return absl::InvalidArgumentError(
            absl::StrCat("executable: memset value: limit is 255, is ", from.memset().value()));
      }
      step.value = static_cast<uint8_t>(from.memset().value());
      return Step(std::move(step));
    }
    case v1::Step::kHostEvaluate: {
      HostEvaluateStep step;
      step.graph = from.host_evaluate().graph();
      step.double_precision = from.host_evaluate().double_precision();
      return Step(std::move(step));
    }
    default:
      return absl::InvalidArgumentError("executable: a step of unknown kind");
  }
}

absl::Status Rule(bool holds, absl::string_view what, int64_t limit, int64_t actual) {
  if (holds) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("executable: ", what, ": limit is ", limit, ", is ", actual));
}

bool IsDType(DType dtype) { return dtype >= DType::kBool && dtype <= DType::kDouble; }

// What Validate checks, and shapes that have every dim, made once: an executable may have thousands
// of inputs and of formulas.
struct Subject {
  explicit Subject(const Executable& executable) : e(executable) {
    static constexpr int64_t kOnes[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (const InputSpec& input : e.inputs) {
      ones.emplace_back(kOnes, std::min(input.rank(), kMaxRank));
    }
  }

  const Executable& e;
  std::vector<absl::Span<const int64_t>> ones;
};

// A formula is well formed when it evaluates: extents of 1 reach every term.
absl::Status CheckFormula(const Subject& subject, const Formula& formula) {
  return formula.Evaluate(subject.ones, 1).status();
}

// What a scalar's 8 bytes can become (ConvertScalar): integers stay integers, floats floats.
absl::Status CheckScalar(const KernelArgument& argument, DType from) {
  if (IsDType(argument.dtype) && base::ComputeType(argument.dtype) == argument.dtype &&
      base::IsFloatingPoint(argument.dtype) == base::IsFloatingPoint(from)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "executable: scalar argument: input ", argument.index, " of dtype ", static_cast<int>(from),
      " cannot be passed as dtype ", static_cast<int>(argument.dtype)));
}

absl::Status CheckArgument(const Subject& subject, const KernelArgument& argument) {
  const Executable& e = subject.e;
  switch (argument.kind) {
    case KernelArgument::Kind::kInput:
      return Rule(argument.index < e.inputs.size() && !e.inputs[argument.index].scalar,
                  "tensor argument's input", e.inputs.size(), argument.index);
    case KernelArgument::Kind::kScalar:
      FUSIOND_RETURN_IF_ERROR(
          Rule(argument.index < e.inputs.size() && e.inputs[argument.index].scalar,
               "scalar argument's input", e.inputs.size(), argument.index));
      return CheckScalar(argument, e.inputs[argument.index].dtype);
    case KernelArgument::Kind::kOutput:
      return Rule(argument.index < e.outputs.size(), "argument's output", e.outputs.size(),
                  argument.index);
    case KernelArgument::Kind::kWorkspace:
    case KernelArgument::Kind::kInt32:
    case KernelArgument::Kind::kInt64:
      return CheckFormula(subject, argument.formula);
  }
  return absl::InvalidArgumentError("executable: an argument of unknown kind");
}

absl::Status CheckStep(const Subject& subject, const Step& step) {
  const Executable& e = subject.e;
  if (const auto* memset = std::get_if<MemsetStep>(&step)) {
    if (memset->output) {
      FUSIOND_RETURN_IF_ERROR(Rule(*memset->output < e.outputs.size(), "memset's output",
                                   e.outputs.size(), *memset->output));
    }
    FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, memset->offset));
    return CheckFormula(subject, memset->bytes);
  }
  if (std::holds_alternative<HostEvaluateStep>(step)) return absl::OkStatus();
  const KernelStep& kernel = std::get<KernelStep>(step);
  FUSIOND_RETURN_IF_ERROR(
      Rule(kernel.image < e.images.size(), "step's image", e.images.size(), kernel.image));
  FUSIOND_RETURN_IF_ERROR(Rule(!kernel.entry.empty() && kernel.entry.size() <= 256,
                               "entry name length", 256, kernel.entry.size()));
  FUSIOND_RETURN_IF_ERROR(Rule(kernel.arguments.size() <= kMaxArguments, "kernel arguments",
                               kMaxArguments, kernel.arguments.size()));
  for (int i = 0; i < 3; ++i) {
    FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, kernel.grid[i]));
    FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, kernel.block[i]));
    FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, kernel.cluster[i]));
  }
  FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, kernel.dynamic_smem));
  for (const KernelArgument& argument : kernel.arguments) {
    FUSIOND_RETURN_IF_ERROR(CheckArgument(subject, argument));
  }
  return absl::OkStatus();
}

// What a guard needs wherever it stands. An unknown kind may be a later version's condition.
absl::Status CheckGuardAlone(const Guard& guard) {
  if (guard.kind < Guard::Kind::kExtentEquals || guard.kind > Guard::Kind::kNoOverlap) {
    return absl::InvalidArgumentError(
        absl::StrCat("guard: unknown kind ", static_cast<int>(guard.kind)));
  }
  if (guard.kind == Guard::Kind::kNoOverlap && !guard.output) {
    return absl::InvalidArgumentError("guard: NO_OVERLAP names no output");
  }
  return absl::OkStatus();
}

absl::Status CheckGuard(const Executable& e, const Guard& guard) {
  FUSIOND_RETURN_IF_ERROR(CheckGuardAlone(guard));
  if (guard.output) {
    FUSIOND_RETURN_IF_ERROR(
        Rule(*guard.output < e.outputs.size(), "guard's output", e.outputs.size(), *guard.output));
  }
  const bool about_output = guard.kind == Guard::Kind::kAligned && guard.output;
  if (about_output) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(
      Rule(guard.input < e.inputs.size(), "guard's input", e.inputs.size(), guard.input));
  const bool about_dim = guard.kind <= Guard::Kind::kStrideDivisible;
  if (!about_dim) return absl::OkStatus();
  return Rule(guard.dim < e.inputs[guard.input].rank(), "guard's dim", e.inputs[guard.input].rank(),
              guard.dim);
}

absl::Status CheckInput(const InputSpec& input) {
  FUSIOND_RETURN_IF_ERROR(Rule(IsDType(input.dtype), "dtype", static_cast<int>(DType::kDouble),
                               static_cast<int>(input.dtype)));
  const int64_t limit = input.scalar ? 0 : kMaxRank;
  FUSIOND_RETURN_IF_ERROR(Rule(input.rank() <= limit, "input rank", limit, input.rank()));
  FUSIOND_RETURN_IF_ERROR(Rule(input.strides.size() == input.shape.size(), "input strides",
                               input.rank(), input.strides.size()));
  for (uint32_t d = 0; d < input.rank(); ++d) {
    FUSIOND_RETURN_IF_ERROR(Rule(input.shape[d] >= -1, "extent (at least)", -1, input.shape[d]));
    FUSIOND_RETURN_IF_ERROR(
        Rule(input.strides[d] >= -1, "stride (at least)", -1, input.strides[d]));
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const Subject& subject, const OutputSpec& output) {
  const Executable& e = subject.e;
  FUSIOND_RETURN_IF_ERROR(Rule(IsDType(output.dtype), "dtype", static_cast<int>(DType::kDouble),
                               static_cast<int>(output.dtype)));
  FUSIOND_RETURN_IF_ERROR(
      Rule(output.shape.size() <= kMaxRank && output.shape.size() == output.strides.size(),
           "output rank", kMaxRank, output.shape.size()));
  if (output.alias_input) {
    FUSIOND_RETURN_IF_ERROR(
        Rule(*output.alias_input < e.inputs.size() && !e.inputs[*output.alias_input].scalar,
             "alias's tensor input", e.inputs.size(), *output.alias_input));
  }
  for (const Formula& extent : output.shape) FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, extent));
  for (const Formula& stride : output.strides)
    FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, stride));
  return absl::OkStatus();
}

}  // namespace

std::string Serialise(const Executable& executable) {
  v1::Executable out;
  out.set_version(executable.version);
  out.set_arch(executable.arch);
  out.set_profile(executable.profile);
  for (const InputSpec& input : executable.inputs) {
    v1::InputSpec* to = out.add_inputs();
    to->set_dtype(static_cast<uint32_t>(input.dtype));
    to->set_scalar(input.scalar);
    to->set_host(input.space == MemorySpace::kHost);
    to->mutable_shape()->Add(input.shape.begin(), input.shape.end());
    to->mutable_strides()->Add(input.strides.begin(), input.strides.end());
  }
  for (const OutputSpec& output : executable.outputs) {
    v1::OutputSpec* to = out.add_outputs();
    to->set_dtype(static_cast<uint32_t>(output.dtype));
    for (const Formula& extent : output.shape) ToProto(extent, to->add_shape());
    for (const Formula& stride : output.strides) ToProto(stride, to->add_strides());
    if (output.alias_input) to->set_alias_input(*output.alias_input);
  }
  for (const Guard& guard : executable.guards) ToProto(guard, out.add_guards());
  for (const Image& image : executable.images) {
    v1::Image* to = out.add_images();
    to->set_key(image.key.bytes.data(), image.key.bytes.size());
    to->set_cubin(image.cubin);
  }
  for (const Step& step : executable.steps) {
    v1::Step* to = out.add_steps();
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      ToProto(*kernel, to->mutable_kernel());
    } else if (const auto* memset = std::get_if<MemsetStep>(&step)) {
      ToProto(*memset, to->mutable_memset());
    } else {
      ToProto(std::get<HostEvaluateStep>(step), to->mutable_host_evaluate());
    }
  }
  ToProto(executable.workspace_bytes, out.mutable_workspace_bytes());
  out.set_workspace_alignment(executable.workspace_alignment);
  out.mutable_provenance()->set_compiler_version(executable.provenance.compiler_version);
  out.mutable_provenance()->set_nvrtc_version(executable.provenance.nvrtc_version);
  out.mutable_provenance()->set_schedule(executable.provenance.schedule);

  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    out.SerializeToCodedStream(&coded);
  }
  return bytes;
}

absl::StatusOr<Executable> Deserialise(absl::string_view bytes) {
  v1::Executable from;
  if (!from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("executable: not a fusiond.v1.Executable");
  }
  if (from.version() != kExecutableVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("executable: version ", kExecutableVersion, " expected, is ", from.version()));
  }
  Executable e;
  e.arch = from.arch();
  e.profile = from.profile();
  for (const v1::InputSpec& input : from.inputs()) {
    e.inputs.push_back({.dtype = ToEnum<DType>(input.dtype()),
                        .scalar = input.scalar(),
                        .space = input.host() ? MemorySpace::kHost : MemorySpace::kDevice,
                        .shape = {input.shape().begin(), input.shape().end()},
                        .strides = {input.strides().begin(), input.strides().end()}});
  }
  for (const v1::OutputSpec& output : from.outputs()) {
    OutputSpec spec;
    spec.dtype = ToEnum<DType>(output.dtype());
    for (const v1::Formula& extent : output.shape()) spec.shape.push_back(FromProto(extent));
    for (const v1::Formula& stride : output.strides()) spec.strides.push_back(FromProto(stride));
    if (output.has_alias_input()) spec.alias_input = output.alias_input();
    e.outputs.push_back(std::move(spec));
  }
  for (const v1::Guard& guard : from.guards()) e.guards.push_back(FromProto(guard));
  for (const v1::Image& image : from.images()) {
    Image to;
    FUSIOND_ASSIGN_OR_RETURN(to.key, base::DigestFromBytes(image.key()));
    to.cubin = image.cubin();
    e.images.push_back(std::move(to));
  }
  for (const v1::Step& step : from.steps()) {
    FUSIOND_ASSIGN_OR_RETURN(Step to, FromProto(step));
    e.steps.push_back(std::move(to));
  }
  e.workspace_bytes = FromProto(from.workspace_bytes());
  e.workspace_alignment = from.workspace_alignment();
  e.provenance.compiler_version = from.provenance().compiler_version();
  e.provenance.nvrtc_version = from.provenance().nvrtc_version();
  e.provenance.schedule = from.provenance().schedule();
  FUSIOND_RETURN_IF_ERROR(Validate(e));
  return e;
}

absl::Status Validate(const Executable& e) {
  FUSIOND_RETURN_IF_ERROR(Rule(e.inputs.size() + e.outputs.size() <= kMaxInputsAndOutputs,
                               "inputs and outputs", kMaxInputsAndOutputs,
                               e.inputs.size() + e.outputs.size()));
  FUSIOND_RETURN_IF_ERROR(Rule(e.steps.size() <= kMaxSteps, "steps", kMaxSteps, e.steps.size()));
  for (const InputSpec& input : e.inputs) FUSIOND_RETURN_IF_ERROR(CheckInput(input));
  const Subject subject(e);
  for (const OutputSpec& output : e.outputs) FUSIOND_RETURN_IF_ERROR(CheckOutput(subject, output));
  for (const Guard& guard : e.guards) FUSIOND_RETURN_IF_ERROR(CheckGuard(e, guard));
  for (const Step& step : e.steps) FUSIOND_RETURN_IF_ERROR(CheckStep(subject, step));
  FUSIOND_RETURN_IF_ERROR(CheckFormula(subject, e.workspace_bytes));
  const int64_t alignment = e.workspace_alignment;
  return Rule(alignment > 0 && alignment <= 4096 && (alignment & (alignment - 1)) == 0,
              "workspace alignment (a power of two)", 4096, alignment);
}

std::string SerialiseGuards(const std::vector<Guard>& guards) {
  v1::Guards out;
  for (const Guard& guard : guards) ToProto(guard, out.add_guards());
  return out.SerializeAsString();  // no map inside: the same guards give the same bytes
}

absl::StatusOr<std::vector<Guard>> DeserialiseGuards(absl::string_view bytes) {
  v1::Guards from;
  if (!from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("guards: not a fusiond.v1.Guards");
  }
  std::vector<Guard> guards;
  for (const v1::Guard& guard : from.guards()) {
    guards.push_back(FromProto(guard));
    FUSIOND_RETURN_IF_ERROR(CheckGuardAlone(guards.back()));
  }
  return guards;
}

base::Digest ExecutableDigest(absl::string_view serialised) { return base::Sha256(serialised); }

}  // namespace fusiond::executable
