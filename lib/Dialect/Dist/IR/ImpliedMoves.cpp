//===- ImpliedMoves.cpp - Moves of evenly divided tensors -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

namespace {

/// The source and target of one operand of a collective.
struct Move {
  TensorSharding &source, &target; ///< whole at first
  std::vector<int64_t> &shape;     ///< of the operand at first; becomes that of the whole tensor
  sharding::AxisList axes;         ///< of the group
  int64_t n = 1;                   ///< devices of the group
};

} // namespace

/// The group's contributions.
static std::vector<sharding::PartialAxis> partialOver(const sharding::AxisList &axes,
                                                      ReduceKind kind) {
  std::vector<sharding::PartialAxis> result;
  for (const sharding::AxisRef &axis : axes)
    result.push_back({axis, toAlgebra(kind)});
  return result;
}

/// Multiplies the local extent of a cut dimension by the number of parts.
static LogicalResult joinParts(Operation *op, std::vector<int64_t> &shape, int64_t dim, int64_t n) {
  int64_t local = shape[dim];
  if (llvm::MulOverflow(local, n, shape[dim]))
    return op->emitOpError() << "joins " << n << " parts of extent " << local << " along dimension "
                             << dim << "; extents must fit in 63 bits"; // (C3)
  return success();
}

template <typename Op>
  requires llvm::is_one_of<Op, AllReduceOp, ReduceOp>::value
static LogicalResult writeMove(Op op, Move &move) {
  move.source.partial = partialOver(move.axes, op.getReduction());
  return success();
}

static LogicalResult writeMove(MakePartialOp op, Move &move) {
  move.target.partial = partialOver(move.axes, op.getReduction());
  return success();
}

template <typename Op>
  requires llvm::is_one_of<Op, AllGatherOp, GatherOp>::value
static LogicalResult writeMove(Op op, Move &move) {
  move.source.dims[op.getDim()] = move.axes;
  return joinParts(op, move.shape, op.getDim(), move.n);
}

template <typename Op>
  requires llvm::is_one_of<Op, ScatterOp, SliceOp>::value
static LogicalResult writeMove(Op op, Move &move) {
  move.target.dims[op.getDim()] = move.axes;
  return success();
}

static LogicalResult writeMove(ReduceScatterOp op, Move &move) {
  move.source.partial = partialOver(move.axes, op.getReduction());
  move.target.dims[op.getDim()] = move.axes;
  return success();
}

static LogicalResult writeMove(AllToAllOp op, Move &move) {
  if (failed(joinParts(op, move.shape, op.getConcatDim(), move.n)))
    return failure();
  move.source.dims[op.getConcatDim()] = move.axes;
  move.target.dims[op.getSplitDim()] = move.axes;
  return success();
}

static LogicalResult writeMove(BroadcastOp, Move &) {
  return success();
}

/// Each device's buffer is a shard along a leading dimension; without one there is no move to
/// write.
static LogicalResult writeMove(PermuteOp, Move &) {
  return success();
}

static LogicalResult writeMove(HaloExchangeOp op, Move &move) {
  auto dim = static_cast<int64_t>(op.getDim()), low = static_cast<int64_t>(op.getLow());
  int64_t local = move.shape[dim];
  if (failed(joinParts(op, move.shape, dim, move.n)))
    return failure();
  move.source.dims[dim] = move.target.dims[dim] = move.axes;
  move.target.windows.push_back(
      {dim, local, -low, local + low + static_cast<int64_t>(op.getHigh())});
  return success();
}

/// Starts from a whole tensor of the operand's shape, which the kind modifies.
template <typename Op>
static LogicalResult implyMove(Op op, const sharding::Mesh &mesh, unsigned index,
                               TensorSharding &source, TensorSharding &target,
                               std::vector<int64_t> &shape) {
  shape = shapeOf(op->getOperand(index).getType());
  source = target = TensorSharding::replicated(shape.size());
  Move move{source, target, shape, {}};
  if (AxisListAttr attr = op.getGroupAxes()) {
    auto list = resolveAxes(attr, mesh, [&]() { return op->emitOpError(); });
    if (failed(list))
      return failure();
    move.axes = *list;
  }
  move.n = sharding::sizeOf(move.axes);
  return writeMove(op, move);
}

#define IMPLIED_MOVE(Op)                                                                           \
  LogicalResult Op::getImpliedMove(const sharding::Mesh &mesh, unsigned index,                     \
                                   TensorSharding &source, TensorSharding &target,                 \
                                   std::vector<int64_t> &shape) {                                  \
    return implyMove(*this, mesh, index, source, target, shape);                                   \
  }
IMPLIED_MOVE(AllReduceOp)
IMPLIED_MOVE(ReduceOp)
IMPLIED_MOVE(MakePartialOp)
IMPLIED_MOVE(AllGatherOp)
IMPLIED_MOVE(GatherOp)
IMPLIED_MOVE(ReduceScatterOp)
IMPLIED_MOVE(ScatterOp)
IMPLIED_MOVE(SliceOp)
IMPLIED_MOVE(AllToAllOp)
IMPLIED_MOVE(BroadcastOp)
IMPLIED_MOVE(PermuteOp)
IMPLIED_MOVE(HaloExchangeOp)
#undef IMPLIED_MOVE

LogicalResult ExchangeOp::getImpliedMove(const sharding::Mesh &mesh, unsigned index,
                                         TensorSharding &source, TensorSharding &target,
                                         std::vector<int64_t> &shape) {
  // The extent of a cut dimension is the sum of its parts: exact if sizes divide.
  Type type = getOperand(index).getType();
  auto emitError = [&]() { return emitOpError(); };
  auto before = getFrom().resolve(mesh, type, emitError);
  auto after = getTo().resolve(mesh, type, emitError);
  if (failed(before) || failed(after))
    return failure();
  source = *before;
  target = *after;
  shape = shapeOf(type);
  for (size_t d = 0; d < shape.size(); ++d)
    if (failed(joinParts(*this, shape, d, sharding::sizeOf(source.dims[d]))))
      return failure();
  return success();
}
