//===- BalancedRing.cpp - Write rings of a causal mask --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of 2n chunks of the sequence, device i of n computes chunk i, its head, and chunk 2n - 1 - i, its
// tail: queries, keys and other tensors with one element per query are exchanged first, the results
// at the end. With the chunks of device j, the mask hides half of the pairs in each turn:
//
//                    head of j < i   tail of j < i   head of j > i   tail of j > i
//   head of i        all             -               -               -
//   tail of i        all             -               all             all
//
// So a turn computes two pairs of chunks on every device: the tail and the head of j, then the head
// and the head of j, or the tail and the tail of j. The region still masks by global positions.
//
//===----------------------------------------------------------------------===//

#include "AttentionWriter.h"
#include "RingWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::TensorSharding;

namespace {

class BalancedRing : public RingWriter {
protected:
  /// A chunk: the operands with one element per query, or per key, by their index.
  struct Chunk {
    SmallVector<Value> operands;
    Value begin;
  };

  BalancedRing(const Part &part, Operation *op)
      : RingWriter(part, op), query(*part.ring), chunks(keys, devices) {
    limits = part.limits;
    if (chunks.isUneven(keys)) {
      limits.push_back({key, keys});
      if (isa<AttentionBackwardOp>(op) && !llvm::is_contained(limits, std::pair(query, keys)))
        limits.push_back({query, keys}); // gradients by keys sum over queries
    }
    for (bool isTail : {false, true}) {
      Value begin = beginOf(device, isTail);
      queryChunks[isTail] = {SmallVector<Value>(op->getNumOperands()), begin};
      keyChunks[isTail] = {SmallVector<Value>(op->getNumOperands()), begin};
      for (unsigned index = 0; index < op->getNumOperands(); ++index)
        if (index == 1 || index == 2)
          keyChunks[isTail].operands[index] = extractChunk(index, key, isTail, begin);
        else if (hasLoop(parts.maps[index], query))
          queryChunks[isTail].operands[index] = extractChunk(index, query, isTail, begin);
    }
  }

  /// One turn: the device whose keys arrive, and its chunks of keys.
  struct Turn {
    int64_t distance;
    Value isBehind;   ///< that device is before this one, else after it
    Value isFollowed; ///< the device that gets this one's keys is after this one
    Chunk heads, tails;
  };

  Turn arrive(int64_t distance) {
    Turn turn{distance, isAtLeast(device, distance), {}, {}, {}};
    turn.isFollowed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, device,
                                            write.index(devices - distance));
    Value number = arith::SubIOp::create(b, loc, device, write.index(distance));
    Value wrapped = arith::AddIOp::create(b, loc, number, write.index(devices));
    Value owner = select(turn.isBehind, number, wrapped);
    turn.heads = {SmallVector<Value>(op->getNumOperands()), beginOf(owner, false)};
    turn.tails = {SmallVector<Value>(op->getNumOperands()), beginOf(owner, true)};
    for (unsigned index : {1, 2}) {
      auto move = [&](bool isTail, int64_t blocks) {
        return moveChunks(keyChunks[isTail].operands[index], op->getOperand(index).getType(),
                          context.getOperandSharding(index), keyDim(index), blocks);
      };
      turn.heads.operands[index] =
          select(turn.isBehind, move(false, -distance), move(false, devices - distance));
      turn.tails.operands[index] = move(true, devices - distance);
    }
    return turn;
  }

  /// The second pair of chunks of a turn; the first is the tail and the received head.
  std::pair<Chunk, Chunk> otherPair(const Turn &turn) {
    return {select(turn.isBehind, queryChunks[0], queryChunks[1]),
            select(turn.isBehind, turn.heads, turn.tails)};
  }

  Block blockOf(const Chunk &queries, const Chunk &keys) {
    Block made{part.operands, keys.begin, limits};
    for (auto [index, operand] : llvm::enumerate(made.operands))
      if (Value own = index == 1 || index == 2 ? keys.operands[index] : queries.operands[index])
        operand = own;
    sliceExtras(made, chunks.size, chunks.positions());
    return made;
  }

  auto indices(const Chunk &queries, const Chunk &keys) const {
    return [this, first = queries.begin, begin = keys.begin](OpBuilder &at, Location loc,
                                                             unsigned loop, Value local) -> Value {
      if (loop == key || loop == query)
        return arith::AddIOp::create(at, loc, local, loop == key ? begin : first);
      return part.globalIndex(at, loc, loop, local);
    };
  }

  using RingWriter::select;
  SmallVector<Value> select(Value condition, ArrayRef<Value> yes, ArrayRef<Value> no) {
    SmallVector<Value> chosen;
    for (auto [a, b] : llvm::zip_equal(yes, no))
      chosen.push_back(a ? select(condition, a, b) : Value());
    return chosen;
  }
  Chunk select(Value condition, const Chunk &yes, const Chunk &no) {
    return {select(condition, yes.operands, no.operands), select(condition, yes.begin, no.begin)};
  }

  /// Moves chunks like blocks of a ring. `like` has the shape of all chunks except along `dim`.
  Value moveChunks(Value own, Type like, const TensorSharding &sharding, unsigned dim,
                   int64_t blocks) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(like).getShape());
    shape[dim] = devices * chunks.size;
    return moveBlocks(own, RankedTensorType::get(shape, getElementTypeOrSelf(own.getType())),
                      sharding, dim, chunks.size, blocks);
  }

  /// A result from the chunks of the devices; `loop` is the loop over the sequence.
  Value assembleResult(unsigned result, unsigned loop, Value head, Value tail) {
    auto global = cast<RankedTensorType>(op->getResult(result).getType());
    unsigned dim = dimOf(parts.maps[op->getNumOperands() + result], loop);
    int64_t block = context.getLocalType(result).getDimSize(dim);
    SmallVector<Value> halves{head, tail};
    for (bool isTail : {false, true}) {
      ChunkMove move =
          chunks.home(global.getShape(), context.getResultSharding(result), dim, block, isTail);
      halves[isTail] = context.reshard(halves[isTail],
                                       RankedTensorType::get(move.shape, global.getElementType()),
                                       move.source, move.target);
    }
    Value begin = times(device, block), middle = write.index(devices * chunks.size);
    return pointwise(halves, [&](OpBuilder &b, ValueRange in) -> Value {
      Value position = arith::AddIOp::create(b, loc, linalg::IndexOp::create(b, loc, dim), begin);
      Value isHead = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, middle);
      return arith::SelectOp::create(b, loc, isHead, in[0], in[1]);
    });
  }

  unsigned query;
  RingChunks chunks;
  SmallVector<std::pair<unsigned, int64_t>> limits;
  Chunk queryChunks[2], keyChunks[2]; ///< the head, the tail

private:
  /// The begin of the chunk of a device in the sequence.
  Value beginOf(Value number, bool isTail) {
    if (isTail)
      number = arith::SubIOp::create(b, loc, write.index(2 * devices - 1), number);
    return times(number, chunks.size);
  }

  /// The device's chunk of an operand; zero beyond the sequence.
  Value extractChunk(unsigned index, unsigned loop, bool isTail, Value begin) {
    auto global = cast<RankedTensorType>(op->getOperand(index).getType());
    unsigned dim = dimOf(parts.maps[index], loop);
    TensorSharding source = context.getOperandSharding(index);
    Value moved =
        context.reshard(part.operands[index], global, source, chunks.of(source, dim, isTail));
    return chunks.isUneven(keys) ? write.zeroOutside(moved, dim, begin, keys) : moved;
  }
};

class BalancedForward : public BalancedRing {
public:
  BalancedForward(const Part &part, AttentionOp op) : BalancedRing(part, op), attention(op) {}

  SmallVector<Value> run() {
    const Chunk &head = queryChunks[0], &tail = queryChunks[1];
    SmallVector<Value> rows = attend(head, keyChunks[0], {});
    SmallVector<Value> tailRows = attend(tail, keyChunks[0], {});
    tailRows = attend(tail, keyChunks[1], tailRows);
    for (int64_t distance = 1; distance < devices; ++distance) {
      Turn turn = arrive(distance);
      tailRows = attend(tail, turn.heads, tailRows);
      auto [queries, keys] = otherPair(turn);
      SmallVector<Value> more =
          attend(queries, keys, select(turn.isBehind, ArrayRef(rows), ArrayRef(tailRows)));
      rows = select(turn.isBehind, ArrayRef(more), ArrayRef(rows));
      tailRows = select(turn.isBehind, ArrayRef(tailRows), ArrayRef(more));
    }
    SmallVector<Value> results;
    for (auto [result, pair] : llvm::enumerate(llvm::zip_equal(finish(rows), finish(tailRows))))
      results.push_back(assembleResult(result, query, std::get<0>(pair), std::get<1>(pair)));
    return results;
  }

private:
  /// The accumulators of rows, merged with those of the previous turns.
  SmallVector<Value> attend(const Chunk &queries, const Chunk &keys, ArrayRef<Value> before) {
    Block block = blockOf(queries, keys);
    return writeTurn(b, attention, block.operands, before, block.limits, indices(queries, keys));
  }

  AttentionOp attention;
};

class BalancedBackward : public BalancedRing {
public:
  BalancedBackward(const Part &part, AttentionBackwardOp op)
      : BalancedRing(part, op), attention(op), type(parts.scoreType()) {}

  SmallVector<Value> run() {
    const Chunk &head = queryChunks[0], &tail = queryChunks[1];
    // By query, key and value.
    SmallVector<Value> heads = differentiate(head, keyChunks[0], {});
    SmallVector<Value> more = differentiate(tail, keyChunks[0], {});
    SmallVector<Value> tails = differentiate(tail, keyChunks[1], more[0]);
    for (unsigned result : {1, 2})
      heads[result] = add(heads[result], more[result]);
    for (int64_t distance = 1; distance < devices; ++distance) {
      Turn turn = arrive(distance);
      SmallVector<Value> first = differentiate(tail, turn.heads, tails[0]);
      auto [queries, keys] = otherPair(turn);
      SmallVector<Value> second =
          differentiate(queries, keys, select(turn.isBehind, heads[0], first[0]));
      heads[0] = select(turn.isBehind, second[0], heads[0]);
      tails[0] = select(turn.isBehind, first[0], second[0]);
      for (unsigned result : {1, 2})
        returnKeyGradients(turn, result, first[result], second[result], heads[result],
                           tails[result]);
    }
    SmallVector<Value> results;
    for (unsigned result = 0; result < 3; ++result) {
      Type element = context.getLocalType(result).getElementType();
      results.push_back(assembleResult(result, result == 0 ? query : key,
                                       convert(heads[result], element),
                                       convert(tails[result], element)));
    }
    return results;
  }

private:
  SmallVector<Value> differentiate(const Chunk &queries, const Chunk &keys, Value before) {
    Block block = blockOf(queries, keys);
    return writeTurn(b, attention, block.operands, before, block.limits, indices(queries, keys));
  }

  /// Adds the contributions of the device that has seen this device's keys to their sums: `first`
  /// of the heads, and `second` of the heads or, if that device is before this one, of the tails.
  void returnKeyGradients(const Turn &turn, unsigned result, Value first, Value second, Value &head,
                          Value &tail) {
    auto add = [&](OpBuilder &b, ValueRange in) -> Value {
      return arith::AddFOp::create(b, loc, in[0], in[1]);
    };
    auto move = [&](Value seen, int64_t blocks) {
      return moveChunks(seen, op->getResult(result).getType(), context.getResultSharding(result),
                        keyDim(result), blocks);
    };
    Value ofHeads = pointwise({first, second}, [&](OpBuilder &b, ValueRange in) -> Value {
      return arith::SelectOp::create(b, loc, turn.isBehind, add(b, in), in[0]);
    });
    Value received = select(turn.isFollowed, move(ofHeads, turn.distance),
                            move(ofHeads, turn.distance - devices));
    head = inLoop(head, received, add);
    tail = inLoop(tail, move(second, turn.distance - devices),
                  [&](OpBuilder &b, ValueRange in) -> Value {
                    return arith::SelectOp::create(b, loc, turn.isFollowed, in[0], add(b, in));
                  });
  }

  AttentionBackwardOp attention;
  FloatType type;
};

} // namespace

SmallVector<Value> ext::writeBalancedRing(const Part &part, AttentionOp op) {
  return BalancedForward(part, op).run();
}

SmallVector<Value> ext::writeBalancedRing(const Part &part, AttentionBackwardOp op) {
  return BalancedBackward(part, op).run();
}
