#include "compiler/schedule/cost.h"

#include "compiler/ir/op_table.h"

namespace fusiond::schedule {

using ir::Op;

int IssueSlots(Op op) {
  switch (op) {
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog10:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kDiv:
    case Op::kTruediv:
    case Op::kReciprocal:
    case Op::kSigmoid:
    case Op::kSilu:
      return 12;
    case Op::kRandomBits:
      return 16;  // a block of four takes about 60
    case Op::kAcos:
    case Op::kAcosh:
    case Op::kAsin:
    case Op::kAsinh:
    case Op::kAtan:
    case Op::kAtanh:
    case Op::kCos:
    case Op::kCosh:
    case Op::kErf:
    case Op::kErfc:
    case Op::kErfcinv:
    case Op::kErfinv:
    case Op::kExpm1:
    case Op::kLgamma:
    case Op::kLog1p:
    case Op::kSin:
    case Op::kSinh:
    case Op::kTan:
    case Op::kTanh:
    case Op::kAtan2:
    case Op::kFmod:
    case Op::kGcd:
    case Op::kMod:
    case Op::kPow:
    case Op::kRemainder:
    case Op::kNextafter:
      return 30;
    default:
      return IsView(op) || IsMap(op) ? 0 : 2;
  }
}

bool IsView(Op op) {
  switch (op) {
    case Op::kBroadcast:
    case Op::kBroadcastInDim:
    case Op::kExpand:
    case Op::kPermute:
    case Op::kSqueeze:
    case Op::kSet:
    case Op::kSegmentSet:
    case Op::kReal:
      return true;
    default:
      return false;
  }
}

bool IsMap(Op op) { return ir::Info(op).op_class == ir::OpClass::kMap && op != Op::kPermute; }

}  // namespace fusiond::schedule
