//===- Collectives.cpp - Effects of collectives on the buffers of a mesh --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;
using sharding::ReduceKind;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The contribution of the other devices to a new partial.
static Scalar identityOf(ReduceKind kind, ElementType type) {
  bool isFloat = type.isFloat();
  double infinity = std::numeric_limits<double>::infinity();
  uint64_t signBit = uint64_t(1) << (type.width - 1);
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    return isFloat ? Scalar::ofFloat(0) : Scalar::ofInt(0);
  case ReduceKind::prod:
    return isFloat ? Scalar::ofFloat(1) : Scalar::ofInt(wrapTo(type, 1));
  case ReduceKind::max:
    return isFloat ? Scalar::ofFloat(-infinity)
                   : Scalar::ofInt(wrapTo(type, static_cast<int64_t>(signBit)));
  case ReduceKind::min:
    return isFloat ? Scalar::ofFloat(infinity)
                   : Scalar::ofInt(wrapTo(type, static_cast<int64_t>(signBit - 1)));
  }
  llvm_unreachable("all kinds are listed");
}

static double combine(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    return a + b;
  case ReduceKind::prod:
    return a * b;
  case ReduceKind::max:
  case ReduceKind::min:
    if (std::isnan(a) || std::isnan(b))
      return std::numeric_limits<double>::quiet_NaN();
    return (kind == ReduceKind::max) == (a > b) ? a : b;
  }
  llvm_unreachable("all kinds are listed");
}

static int64_t combine(ReduceKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case ReduceKind::prod:
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  case ReduceKind::max:
    return std::max(a, b);
  case ReduceKind::min:
    return std::min(a, b);
  }
  llvm_unreachable("all kinds are listed");
}

/// Reduces one element over its contributions, in their order.
static Scalar reduce(ReduceKind kind, double scale, ElementType type, ArrayRef<Scalar> values) {
  // 16-bit floats accumulate in f32 and are rounded once, on the store.
  ElementType accumulator = type;
  if (type.isFloat() && type.width == 16)
    accumulator = {ElementType::f32, 32};
  Scalar result = values.front();
  for (Scalar value : values.drop_front())
    result = type.isFloat()
                 ? Scalar::ofFloat(roundTo(accumulator, combine(kind, result.f, value.f)))
                 : Scalar::ofInt(wrapTo(type, combine(kind, result.i, value.i)));
  if (scale != 1.0)
    result = Scalar::ofFloat(roundTo(accumulator, result.f * scale));
  return result;
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

static int64_t positionIn(const Tensor &buffer, const std::vector<int64_t> &spanOffset,
                          const sharding::Box &box, ArrayRef<int64_t> index) {
  int64_t position = 0;
  for (size_t d = 0; d < index.size(); ++d)
    position = position * buffer.shape()[d] + box.offset[d] + index[d] - spanOffset[d];
  return position;
}

Buffers interpreter::executeMove(const Move &move, const Buffers &sources, Scalar padding) {
  Type elementType = sources.front().getElementType();
  ElementType type = sources.front().element();
  sharding::Redistribution plan =
      sharding::redistribute(move.sourceMesh, move.source, move.targetMesh, move.target);

  auto offsets = [](const sharding::Mesh &mesh, const sharding::Layout &layout) {
    std::vector<std::vector<int64_t>> result;
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      result.push_back(layout.span(mesh, mesh.coordinate(position)).offset);
    return result;
  };
  std::vector<std::vector<int64_t>> sourceOffsets = offsets(move.sourceMesh, move.source);
  std::vector<std::vector<int64_t>> targetOffsets = offsets(move.targetMesh, move.target);

  Buffers results(move.targetMesh.numDevices(),
                  Tensor::filled(elementType, move.target.localShape(), padding));
  SmallVector<Scalar> values;
  for (const sharding::Piece &piece : plan.pieces)
    forEachIndex(piece.box.size, [&](ArrayRef<int64_t> index) {
      values.clear();
      for (int64_t source : piece.sources)
        values.push_back(sources[source].load(
            positionIn(sources[source], sourceOffsets[source], piece.box, index)));
      Scalar value = reduce(plan.kind, plan.scale, type, values);
      for (int64_t target : piece.targets)
        results[target].store(positionIn(results[target], targetOffsets[target], piece.box, index),
                              value);
      return true;
    });
  for (auto &[target, box] : plan.fills)
    forEachIndex(box.size, [&, &target = target, &box = box](ArrayRef<int64_t> index) {
      results[target].store(positionIn(results[target], targetOffsets[target], box, index),
                            identityOf(plan.fillKind, type));
      return true;
    });
  return results;
}

sharding::Mesh interpreter::hostMesh() {
  return {"host", {1}, {"host"}, {0}};
}

sharding::Layout interpreter::hostLayout(const std::vector<int64_t> &shape) {
  return sharding::makeLayout(
      sharding::TensorSharding::replicated(static_cast<int64_t>(shape.size())), shape);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// The move of operand `index`. Source and target may be on different meshes of the same devices.
static FailureOr<Move> moveOf(Program &program, dist::CollectiveOpInterface op, unsigned index) {
  Move move;
  move.sourceMesh = move.targetMesh = program.meshes.get(op.getMeshAttr());
  dist::ShardingAttr target;
  if (ArrayAttr targets = op.getTargetsAttr())
    target = cast<dist::ShardingAttr>(targets[index]);
  else if (auto exchange = dyn_cast<dist::ExchangeOp>(op.getOperation()))
    target = exchange.getTo();
  auto layouts = op.getLayouts(move.sourceMesh, index);
  if (failed(layouts))
    return failure();
  std::tie(move.source, move.target) = *layouts;
  if (!target || target.getMesh() == op.getMeshAttr())
    return move;
  move.targetMesh = program.meshes.get(target.getMesh());
  Type global = RankedTensorType::get(move.source.globalShape,
                                      getElementTypeOrSelf(op->getOperand(index).getType()));
  auto resolved =
      target.resolve(move.targetMesh, global, [&]() { return mlir::emitError(op->getLoc()); });
  if (failed(resolved))
    return failure();
  move.target = sharding::makeLayout(*resolved, move.source.globalShape);
  return move;
}

/// The group of each position.
static FailureOr<std::vector<std::vector<int64_t>>> groupsOf(dist::CollectiveOpInterface op,
                                                             const sharding::Mesh &mesh) {
  auto axes =
      dist::resolveAxes(op.getGroupAxes(), mesh, [&]() { return mlir::emitError(op->getLoc()); });
  if (failed(axes))
    return failure();
  return sharding::deviceGroups(mesh, *axes);
}

static LogicalResult checkMember(Operation *op, int64_t member, size_t groupSize) {
  if (member >= 0 && member < static_cast<int64_t>(groupSize))
    return success();
  return mlir::emitError(op->getLoc())
         << "'" << op->getName() << "' names device " << member << " of a group of " << groupSize;
}

/// Permutes the buffers of a group: device i gets that of device permutation[i].
static FailureOr<Buffers> permute(dist::PermuteOp op, const Move &move, const Buffers &sources) {
  auto groups = groupsOf(op, move.sourceMesh);
  if (failed(groups))
    return failure();
  ArrayRef<int64_t> permutation = *op.getPermutation();
  Buffers results(sources.size());
  for (const std::vector<int64_t> &group : *groups) {
    if (permutation.size() != group.size())
      return mlir::emitError(op->getLoc())
             << "'" << op->getName() << "' permutes " << permutation.size()
             << " devices of a group of " << group.size();
    for (size_t i = 0; i < group.size(); ++i) {
      if (failed(checkMember(op, permutation[i], group.size())))
        return failure();
      results[group[i]] = sources[group[permutation[i]]];
    }
  }
  return results;
}

/// Broadcast and scatter: every device takes its part from the root's buffer only. Gather and
/// reduce: the root gets the result, the results of the others are undefined.
static FailureOr<Buffers> rooted(dist::CollectiveOpInterface op, int64_t root, const Move &move,
                                 const Buffers &sources, Scalar undefined) {
  auto groups = groupsOf(op, move.sourceMesh);
  if (failed(groups))
    return failure();
  bool toRoot = isa<dist::GatherOp, dist::ReduceOp>(op.getOperation());
  Tensor nothing =
      Tensor::filled(sources.front().getElementType(), move.target.localShape(), undefined);
  Buffers results =
      toRoot ? executeMove(move, sources, undefined) : Buffers(sources.size(), nothing);
  for (const std::vector<int64_t> &group : *groups) {
    if (failed(checkMember(op, root, group.size())))
      return failure();
    std::vector<int64_t> rootCoordinate = move.sourceMesh.coordinate(group[root]);
    sharding::Box held = move.source.valid(move.sourceMesh, rootCoordinate);
    for (int64_t device : group) {
      if (toRoot) {
        if (device != group[root])
          results[device] = nothing;
        continue;
      }
      std::vector<int64_t> coordinate = move.targetMesh.coordinate(device);
      sharding::Box wanted = move.target.valid(move.targetMesh, coordinate);
      if (!held.contains(wanted))
        return mlir::emitError(op->getLoc())
               << "'" << op->getName() << "' reads data that its root does not hold";
      copyBox(sources[group[root]], move.source.span(move.sourceMesh, rootCoordinate).offset,
              results[device], move.target.span(move.targetMesh, coordinate).offset, wanted);
    }
  }
  return results;
}

/// The value of elements outside the tensor: the op's `fill`, or poison.
static FailureOr<Scalar> paddingOf(Program &program, Operation *op, Type elementType) {
  auto fill = dyn_cast_or_null<TypedAttr>(op->getAttr("fill"));
  if (!fill)
    return poisonOf(*ElementType::get(elementType), program.options.poison);
  Tensor value = toTensor(fill);
  if (!value || value.rank() != 0 || value.getElementType() != elementType)
    return mlir::emitError(op->getLoc())
           << "'" << op->getName() << "' fills " << elementType << " with " << fill;
  return value.item();
}

static FailureOr<Buffers> executeOne(Program &program, dist::CollectiveOpInterface op,
                                     unsigned index, const Buffers &sources) {
  FailureOr<Move> move = moveOf(program, op, index);
  FailureOr<Scalar> padding = paddingOf(program, op, sources.front().getElementType());
  if (failed(move) || failed(padding))
    return failure();
  if (auto permutation = dyn_cast<dist::PermuteOp>(op.getOperation());
      permutation && permutation.getPermutation() && !op.getSourcesAttr())
    return permute(permutation, *move, sources);
  if (isa<dist::BroadcastOp, dist::ScatterOp, dist::GatherOp, dist::ReduceOp>(op.getOperation()))
    return rooted(op, op->getAttrOfType<IntegerAttr>("root").getInt(), *move, sources, *padding);
  return executeMove(*move, sources, *padding);
}

FailureOr<std::vector<SmallVector<Tensor>>>
interpreter::executeCollective(Program &program, dist::CollectiveOpInterface op,
                               ArrayRef<SmallVector<Tensor>> operands) {
  std::vector<SmallVector<Tensor>> results(operands.size());
  for (unsigned index = 0; index < op->getNumOperands(); ++index) {
    Buffers sources;
    for (const SmallVector<Tensor> &device : operands)
      sources.push_back(device[index]);
    FailureOr<Buffers> moved = executeOne(program, op, index, sources);
    if (failed(moved))
      return failure();
    for (auto [result, buffer] : llvm::zip_equal(results, *moved))
      result.push_back(buffer);
  }
  return results;
}
