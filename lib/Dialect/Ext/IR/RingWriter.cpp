//===- RingWriter.cpp - Write ring attention ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The turns are unrolled instead of a loop, since the distance of a move is static. Rows are merged
// within the loops over blocks of rows (AttentionLoops.cpp), so that a turn has separate kernels.
//
//===----------------------------------------------------------------------===//

#include "RingWriter.h"

#include "AttentionWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::TensorSharding;

namespace {

/// Receives blocks of keys in turns.
class PlainRing : public RingWriter {
protected:
  PlainRing(const Part &part, Operation *op)
      : RingWriter(part, op), block(sharding::ceilDiv(keys, devices)),
        isUneven(keys % devices != 0), turns(ringTurnsOf(parts, *part.ring, devices)) {}

  Block own() {
    Block made{part.operands, times(device, block), part.limits};
    complete(made, isUneven);
    return made;
  }

  Block arrive(const RingTurn &turn) {
    Value number = arith::SubIOp::create(b, loc, device, write.index(turn.distance));
    Value wrapped = arith::AddIOp::create(b, loc, number, write.index(devices));
    Value isBehind = isAtLeast(device, turn.distance);
    Block made{part.operands, {}, part.limits};
    for (unsigned index : {1, 2}) {
      auto global = cast<RankedTensorType>(op->getOperand(index).getType());
      made.operands[index] = choose(turn, isBehind, [&](bool behind) {
        return moveBlocks(part.operands[index], global, context.getOperandSharding(index),
                          keyDim(index), block, behind ? -turn.distance : devices - turn.distance);
      });
    }
    Value chosen = choose(turn, isBehind, [&](bool behind) { return behind ? number : wrapped; });
    made.begin = times(chosen, block);
    complete(made, isUneven || !turn.behind || !turn.ahead);
    return made;
  }

  auto indices(const Block &block) const {
    return [this, begin = block.begin](OpBuilder &at, Location loc, unsigned loop,
                                       Value local) -> Value {
      if (loop == key)
        return arith::AddIOp::create(at, loc, local, begin);
      return part.globalIndex(at, loc, loop, local);
    };
  }

  int64_t block;
  bool isUneven;
  SmallVector<RingTurn> turns;

private:
  /// Slices the extras at the keys of the block, and zeroes positions beyond the keys.
  void complete(Block &made, bool mayLieBeyond) {
    if (mayLieBeyond) {
      made.limits.push_back({key, keys});
      for (unsigned index : {1, 2})
        made.operands[index] =
            write.zeroOutside(made.operands[index], keyDim(index), made.begin, keys);
    }
    sliceExtras(made, block, devices * block);
  }
};

class ForwardRing : public PlainRing {
public:
  ForwardRing(const Part &part, AttentionOp op) : PlainRing(part, op), attention(op) {}

  SmallVector<Value> run() {
    SmallVector<Value> rows = attend(own(), {});
    for (const RingTurn &turn : turns)
      rows = attend(arrive(turn), rows);
    return finish(rows);
  }

private:
  /// sum_n exp(score - largest) * value, the largest score and sum_n exp(score - largest) so far.
  SmallVector<Value> attend(const Block &keys, ArrayRef<Value> before) {
    return writeTurn(b, attention, keys.operands, before, keys.limits, indices(keys));
  }

  AttentionOp attention;
};

/// The gradients by keys and values are sums of the contributions of all devices that see a block.
class BackwardRing : public PlainRing {
public:
  BackwardRing(const Part &part, AttentionBackwardOp op)
      : PlainRing(part, op), attention(op), type(parts.scoreType()) {}

  SmallVector<Value> run() {
    SmallVector<Value> sums = differentiate(own(), {});
    for (const RingTurn &turn : turns) {
      SmallVector<Value> more = differentiate(arrive(turn), sums[0]);
      sums[0] = more[0];
      for (unsigned result : {1, 2})
        sums[result] = addFromOthers(sums[result], more[result], turn, result);
    }
    for (auto [index, sum] : llvm::enumerate(sums))
      sum = convert(sum, context.getLocalType(index).getElementType());
    return sums;
  }

private:
  SmallVector<Value> differentiate(const Block &keys, Value before) {
    return writeTurn(b, attention, keys.operands, before, keys.limits, indices(keys));
  }

  /// Adds the contribution of the device that has seen this device's keys in this turn to their
  /// sum.
  Value addFromOthers(Value sum, Value seen, const RingTurn &turn, unsigned result) {
    unsigned dim = keyDim(result);
    SmallVector<int64_t> shape(cast<RankedTensorType>(op->getResult(result).getType()).getShape());
    shape[dim] = devices * block; // every device has a whole block, padded with zeros
    TensorSharding sharding = context.getResultSharding(result);
    Value isFollowed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, device,
                                             write.index(devices - turn.distance));
    Value received = choose(turn, isFollowed, [&](bool behind) {
      int64_t blocks = behind ? turn.distance : turn.distance - devices;
      return moveBlocks(seen, RankedTensorType::get(shape, type), sharding, dim, block, blocks);
    });
    bool isAlways = turn.behind && turn.ahead;
    return inLoop(sum, received, [&](OpBuilder &b, ValueRange in) -> Value {
      Value both = arith::AddFOp::create(b, loc, in[0], in[1]);
      if (isAlways)
        return both;
      return turn.behind ? arith::SelectOp::create(b, loc, isFollowed, both, in[0])
                         : arith::SelectOp::create(b, loc, isFollowed, in[0], both);
    });
  }

  AttentionBackwardOp attention;
  FloatType type;
};

} // namespace

SmallVector<Value> ext::writeRing(const Part &part, AttentionOp op) {
  return ForwardRing(part, op).run();
}

SmallVector<Value> ext::writeRing(const Part &part, AttentionBackwardOp op) {
  return BackwardRing(part, op).run();
}
