//===- RingWriter.cpp - Writing rings of blocks ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The turns are written one after the other, not as a loop: a move names the distance
// that it goes. Rows are merged within the loops over blocks of rows (AttentionLoops.cpp),
// so that a turn has kernels of its own.
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

/// What both directions need: blocks of keys as they arrive.
class RingWriter {
public:
  RingWriter(const Part &part, Operation *op)
      : part(part), op(op), context(part.context), b(context.builder), loc(op->getLoc()),
        write{b, loc}, parts(part.parts), key(parts.domain.key), keys(parts.domain.extents[key]),
        axes(context.getFactorAxes()[parts.factors()[*part.ring]]), devices(sharding::sizeOf(axes)),
        block(sharding::ceilDiv(keys, devices)), isUneven(keys % devices != 0),
        device(context.getDeviceIndex(axes)),
        turns(ringTurnsOf(parts, *part.ring, devices)) {}

protected:
  /// The operands of one turn, and where its keys begin.
  struct Block {
    SmallVector<Value> operands;
    Value begin;
    SmallVector<std::pair<unsigned, int64_t>> limits;
  };

  Block own() {
    Block made{part.operands, times(device, block), part.limits};
    finish(made, isUneven);
    return made;
  }

  Block arrive(const RingTurn &turn) {
    Value number = arith::SubIOp::create(b, loc, device, write.index(turn.distance));
    Value wrapped = arith::AddIOp::create(b, loc, number, write.index(devices));
    Value isBehind = isAtLeast(device, turn.distance);
    Block made{part.operands, {}, part.limits};
    for (unsigned index : {1, 2}) {
      auto move = [&](int64_t blocks) {
        auto global = cast<RankedTensorType>(op->getOperand(index).getType());
        BlockMove moved(global.getShape(), context.getOperandSharding(index), keyDim(index), block,
                        blocks);
        return context.reshard(part.operands[index], global, moved.source, moved.target);
      };
      made.operands[index] = choose(turn, isBehind, [&](bool behind) {
        return move(behind ? -turn.distance : devices - turn.distance);
      });
    }
    Value chosen = turn.behind && turn.ahead
                       ? arith::SelectOp::create(b, loc, isBehind, number, wrapped).getResult()
                   : turn.behind ? number
                                 : wrapped;
    made.begin = times(chosen, block);
    finish(made, isUneven || !turn.behind || !turn.ahead);
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

  /// What `make` gives for the turn: of two blocks, each device has the one that is there.
  Value choose(const RingTurn &turn, Value isBehind, llvm::function_ref<Value(bool)> make) {
    if (!turn.behind || !turn.ahead)
      return make(turn.behind);
    Value behind = make(true), ahead = make(false);
    return pointwise({behind, ahead}, [&](OpBuilder &b, ValueRange in) -> Value {
      return arith::SelectOp::create(b, loc, isBehind, in[0], in[1]);
    });
  }

  Value isAtLeast(Value index, int64_t least) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, write.index(least));
  }
  Value times(Value index, int64_t factor) {
    return arith::MulIOp::create(b, loc, index, write.index(factor));
  }
  unsigned keyDim(unsigned map) const { return dimOf(parts.maps[map], key); }

  /// Elements of tensors of one shape, all of the type of the first.
  Value pointwise(ValueRange inputs, llvm::function_ref<Value(OpBuilder &, ValueRange)> body,
                  Type element = {}) {
    auto type = cast<RankedTensorType>(inputs.front().getType());
    SmallVector<AffineMap> maps(inputs.size(), b.getMultiDimIdentityMap(type.getRank()));
    return write.pointwise(
        inputs, maps, type.getShape(), {element ? element : type.getElementType()},
        [&](OpBuilder &b, ValueRange in) { return SmallVector<Value>{body(b, in)}; })[0];
  }
  Value convert(Value x, Type element) {
    if (getElementTypeOrSelf(x.getType()) == element)
      return x;
    return pointwise(
        x, [&](OpBuilder &b, ValueRange in) { return convertFloat(b, loc, in[0], element); },
        element);
  }

  const Part &part;
  Operation *op;
  dist::PartitionContext &context;
  OpBuilder &b;
  Location loc;
  Local write;
  const AttentionParts &parts;
  unsigned key;
  int64_t keys;
  const sharding::AxisList &axes;
  int64_t devices, block;
  bool isUneven;
  Value device;
  SmallVector<RingTurn> turns;

private:
  /// Takes the keys of the block from the extras, and zeroes what lies beyond the keys.
  void finish(Block &made, bool mayLieBeyond) {
    if (mayLieBeyond) {
      made.limits.push_back({key, keys});
      for (unsigned index : {1, 2})
        made.operands[index] =
            write.zeroOutside(made.operands[index], keyDim(index), made.begin, keys);
    }
    Value begin;
    for (unsigned extra = parts.firstExtra; extra < made.operands.size(); ++extra)
      if (hasLoop(parts.maps[extra], key)) {
        if (!begin)
          begin = clamp(made.begin);
        made.operands[extra] =
            write.slice(padded(made.operands[extra], keyDim(extra)), keyDim(extra), begin, block);
      }
  }

  Value clamp(Value begin) {
    Value least = arith::MaxSIOp::create(b, loc, begin, write.index(0));
    return arith::MinSIOp::create(b, loc, least, write.index((devices - 1) * block));
  }

  /// An extra with room for all blocks along a dimension over keys.
  Value padded(Value extra, unsigned dim) {
    if (!isUneven)
      return extra;
    auto type = cast<RankedTensorType>(extra.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = devices * block;
    SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high(low);
    high[dim] = b.getIndexAttr(devices * block - keys);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    return tensor::PadOp::create(b, loc, type.clone(shape), extra, low, high, zero);
  }
};

class ForwardRing : public RingWriter {
public:
  ForwardRing(const Part &part, AttentionOp op) : RingWriter(part, op), attention(op) {}

  SmallVector<Value> run() {
    SmallVector<Value> rows = attend(own(), {});
    for (const RingTurn &turn : turns)
      rows = attend(arrive(turn), rows);
    Value output = rows[0], largest = rows[1], sum = rows[2];
    SmallVector<Value> results{divide(output, sum)};
    if (attention.getLogsumexp()) {
      Type element = context.getLocalType(1).getElementType();
      results.push_back(pointwise(
          {largest, sum},
          [&](OpBuilder &b, ValueRange in) -> Value {
            Value log = math::LogOp::create(b, loc, in[1]);
            return convertFloat(b, loc, arith::AddFOp::create(b, loc, in[0], log), element);
          },
          element));
    }
    return results;
  }

private:
  /// sum_n exp(score - largest) * value, the largest score and sum_n exp(score - largest) so far.
  SmallVector<Value> attend(const Block &keys, ArrayRef<Value> before) {
    return writeTurn(b, attention, keys.operands, before, keys.limits, indices(keys));
  }

  /// The output divided by the sum of its row.
  Value divide(Value output, Value sum) {
    auto type = cast<RankedTensorType>(output.getType());
    auto rank = static_cast<unsigned>(type.getRank());
    SmallVector<AffineExpr> row;
    for (unsigned loop : parts.rows)
      row.push_back(b.getAffineDimExpr(dimOf(parts.output, loop)));
    Type element = context.getLocalType(0).getElementType();
    return write.pointwise(
        {output, sum},
        {b.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, row, b.getContext())},
        type.getShape(), {element}, [&](OpBuilder &b, ValueRange in) {
          Value share = arith::DivFOp::create(b, loc, in[0], in[1]);
          return SmallVector<Value>{convertFloat(b, loc, share, element)};
        })[0];
  }

  AttentionOp attention;
};

/// The gradients by keys and values are sums of what all devices that see a block have of it.
class BackwardRing : public RingWriter {
public:
  BackwardRing(const Part &part, AttentionBackwardOp op)
      : RingWriter(part, op), attention(op), type(parts.scoreType()) {}

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

  /// The sum for a device's own keys, with what the device that has seen them in this turn has.
  Value addFromOthers(Value sum, Value seen, const RingTurn &turn, unsigned result) {
    unsigned dim = keyDim(result);
    SmallVector<int64_t> shape(cast<RankedTensorType>(op->getResult(result).getType()).getShape());
    shape[dim] = devices * block; // every device has a whole block: what lies beyond is zero
    TensorSharding sharding = context.getResultSharding(result);
    Value isFollowed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, device,
                                             write.index(devices - turn.distance));
    Value received = choose(turn, isFollowed, [&](bool behind) {
      int64_t blocks = behind ? turn.distance : turn.distance - devices;
      BlockMove move(shape, sharding, dim, block, blocks);
      return context.reshard(seen, RankedTensorType::get(shape, type), move.source, move.target);
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

  /// Elements of two tensors, in a loop over parts: a kernel of its own. Kernels that are joined
  /// with those of later turns would keep what arrived until then.
  Value inLoop(Value sum, Value received, llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
    auto shape = cast<RankedTensorType>(sum.getType()).getShape();
    auto dim = llvm::find_if(shape, [](int64_t extent) { return extent > 1; }) - shape.begin();
    if (dim == static_cast<int64_t>(shape.size()))
      return pointwise({sum, received}, body);
    int64_t count = 2; // the least divisor
    while (shape[dim] % count != 0)
      ++count;
    int64_t size = shape[dim] / count;
    auto loop =
        scf::ForOp::create(b, loc, write.index(0), write.index(shape[dim]), write.index(size), sum);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value begin = loop.getInductionVar(), carry = loop.getRegionIterArg(0);
    Value part = pointwise(
        {write.slice(carry, dim, begin, size), write.slice(received, dim, begin, size)}, body);
    auto type = cast<RankedTensorType>(part.getType());
    SmallVector<OpFoldResult> at(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    at[dim] = begin;
    Value next = tensor::InsertSliceOp::create(
        b, loc, part, carry, at, getAsIndexOpFoldResult(b.getContext(), type.getShape()), strides);
    scf::YieldOp::create(b, loc, next);
    return loop.getResult(0);
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
