#include "runtime/channel/entry.h"

namespace fusiond::channel {
namespace {

Outcome Invalid(CompletionReason reason, uint64_t limit, uint64_t actual, uint32_t index = 0) {
  Outcome outcome;
  outcome.code = CompletionCode::kInvalidArgument;
  outcome.reason = reason;
  outcome.index = index;
  outcome.limit = limit;
  outcome.actual = actual;
  return outcome;
}

Outcome CheckLaunch(const LaunchBody& launch, const EntryLimits& limits) {
  for (uint64_t word : launch.reserved) {
    if (word != 0) return Invalid(CompletionReason::kReserved, 0, word);
  }
  if (launch.tensors > kMaxTensors) {
    return Invalid(CompletionReason::kTensorCount, kMaxTensors, launch.tensors);
  }
  if (launch.extents > kMaxExtents) {
    return Invalid(CompletionReason::kExtentCount, kMaxExtents, launch.extents);
  }
  const uint64_t expected =
      launch.tensors * sizeof(TensorArgument) + launch.extents * sizeof(int64_t);
  if (launch.arguments_bytes != expected) {
    return Invalid(CompletionReason::kArgumentLength, expected, launch.arguments_bytes);
  }
  if (launch.arguments_offset % 8 != 0) {
    return Invalid(CompletionReason::kArgumentAlignment, 8, launch.arguments_offset);
  }
  if (!InRange(launch.arguments_offset, launch.arguments_bytes, limits.slab_bytes)) {
    return Invalid(CompletionReason::kArgumentRange, limits.slab_bytes,
                   SaturatedEnd(launch.arguments_offset, launch.arguments_bytes));
  }
  return Outcome();
}

Outcome CheckCopy(const CopyBody& copy, const EntryLimits& limits) {
  if ((limits.features & kFeatureCopy) == 0) {
    Outcome outcome = Invalid(CompletionReason::kFeatureNotNegotiated, 0, kFeatureCopy);
    outcome.code = CompletionCode::kUnimplemented;
    return outcome;
  }
  const uint64_t offsets[2] = {copy.source_offset, copy.destination_offset};
  for (uint32_t i = 0; i < 2; ++i) {
    if (!InRange(offsets[i], copy.bytes, ~uint64_t{0})) {
      return Invalid(CompletionReason::kBufferRange, ~uint64_t{0},
                     SaturatedEnd(offsets[i], copy.bytes), i);
    }
  }
  return Outcome();
}

}  // namespace

Outcome CheckEntry(const SubmissionEntry& entry, const EntryLimits& limits) {
  if ((entry.flags & ~kTimed) != 0)
    return Invalid(CompletionReason::kReserved, kTimed, entry.flags);
  if (entry.stream_slot >= limits.stream_slots) {
    return Invalid(CompletionReason::kStreamSlot, limits.stream_slots, entry.stream_slot);
  }
  switch (static_cast<Opcode>(entry.opcode)) {
    case Opcode::kNop:
      for (uint64_t word : entry.words) {
        if (word != 0) return Invalid(CompletionReason::kReserved, 0, word);
      }
      return Outcome();
    case Opcode::kLaunch:
      return CheckLaunch(entry.launch, limits);
    case Opcode::kCopy:
      return CheckCopy(entry.copy, limits);
  }
  return Invalid(CompletionReason::kOpcode, 0, entry.opcode);
}

}  // namespace fusiond::channel
