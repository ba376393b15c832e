// The numbered rules of a graph, and the one way to report a broken one.
//
// Numbers are part of the interface: they appear in error messages and tests and are never reused.
// README.md has the table; a test holds the two together.
//
// Thread-safety: immutable.
#ifndef FUSIOND_COMPILER_IR_RULES_H_
#define FUSIOND_COMPILER_IR_RULES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fusiond::ir {

enum class Rule : uint8_t {
  kNodeLimit = 1,
  kInterfaceLimit = 2,
  kByteLimit = 3,
  kElementLimit = 4,
  kRankLimit = 5,
  kDefinedBeforeUse = 6,
  kHasOutput = 7,
  kArity = 8,
  kAttributes = 9,
  kExtents = 10,
  kContiguity = 11,
  kStrideOrder = 12,
  kHost = 13,
  kScalarInput = 14,
  kConstant = 15,
  kOperandKind = 16,
  kDType = 17,
  kExtentsMeet = 18,
  kReductionDims = 19,
  kCorrection = 20,
  kBroadcast = 21,
  kBroadcastInDim = 22,
  kShapeOperands = 23,
  kExpand = 24,
  kSqueeze = 25,
  kSizeDim = 26,
  kOutputIsTensor = 27,
  kAlias = 28,
  kStoredType = 29,
  kOpKnown = 30,
  kPermute = 31,
  kSlice = 32,
  kReshape = 33,
  kPad = 34,
  kCat = 35,
  kIndexing = 36,
  kTriu = 37,
  kStatic = 40,
  kNoSize = 41,
  kComputeType = 50,
  kNarrow = 51,
  kReduction = 52,
  kViews = 53,
};

struct RuleInfo {
  Rule rule;
  absl::StatusCode code;   // of the status that reports a broken rule
  absl::string_view text;  // what holds when the rule is kept
};

absl::Span<const RuleInfo> RuleTable();  // by number
std::string RuleName(Rule rule);         // "IR-07"

// "IR-07: <detail>" with the rule's code.
absl::Status RuleError(Rule rule, absl::string_view detail);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_RULES_H_
