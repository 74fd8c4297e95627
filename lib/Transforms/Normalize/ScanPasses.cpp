//===- ScanPasses.cpp - Passes over blocks of iterations ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CutScan.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

Value CutScan::splat(RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute attr = isa<FloatType>(element)
                       ? Attribute(b.getFloatAttr(element, value))
                       : Attribute(b.getIntegerAttr(element, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, attr));
}

/// The permutation that moves a dimension, as linalg.transpose has it.
static SmallVector<int64_t> moved(int64_t rank, int64_t from, int64_t to) {
  SmallVector<int64_t> permutation;
  for (int64_t d = 0; d < rank; ++d)
    if (d != from)
      permutation.push_back(d);
  permutation.insert(permutation.begin() + to, from);
  return permutation;
}

static Value transpose(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape =
      llvm::map_to_vector(permutation, [&](int64_t d) { return type.getDimSize(d); });
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(b, loc, value, empty, permutation)->getResult(0);
}

SmallVector<ReassociationIndices> dist::groupsWith(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t first = d + (d > dim);
    groups.push_back(d == dim ? ReassociationIndices{first, first + 1}
                              : ReassociationIndices{first});
  }
  return groups;
}

Value CutScan::inBlocks(Value value, int64_t dim) {
  Value &known = sources[{value, dim}];
  if (known)
    return known;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = perBlock();
  shape.insert(shape.begin() + dim, blocks);
  known = tensor::ExpandShapeOp::create(b, loc, type.clone(shape), value,
                                        groupsWith(type.getRank(), dim));
  if (dim > 0)
    known = transpose(b, loc, known, moved(type.getRank() + 1, dim, 0));
  return known;
}

Value CutScan::outOfBlocks(Value value, int64_t dim) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  if (dim > 0)
    value = transpose(b, loc, value, moved(rank, 0, dim));
  return tensor::CollapseShapeOp::create(b, loc, value, groupsWith(rank - 1, dim));
}

/// Applies what multiplies a recurrence to the product of the factors before.
Value CutScan::writeFactor(BlockedOps &ops, const Carry &carry, Value product) {
  ArrayRef<unsigned> dims = carry.affine.dims;
  int64_t rank = cast<RankedTensorType>(carry.argument.getType()).getRank();
  auto type = cast<RankedTensorType>(product.getType());
  SmallVector<unsigned> loops(rank, 0);
  for (auto [position, dim] : llvm::enumerate(dims))
    loops[dim] = position + 1;
  MLIRContext *context = b.getContext();
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  llvm::DenseMap<Value, Value> products = {{carry.argument, product}};
  for (const LinearPart &part : carry.affine.parts) {
    linalg::LinalgOp op = part.op;
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    SmallVector<BlockArgument> arguments;
    for (OpOperand &operand : op->getOpOperands()) {
      if (auto known = products.find(operand.get()); known != products.end()) {
        inputs.push_back(known->second);
        maps.push_back(all);
      } else if (part.reads(operand.getOperandNumber())) {
        SmallVector<AffineExpr> exprs;
        if (ops.isBlocked(operand.get()))
          exprs.push_back(getAffineDimExpr(0, context));
        for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
          auto loopOf = dyn_cast<AffineDimExpr>(expr);
          exprs.push_back(loopOf ? getAffineDimExpr(loops[loopOf.getPosition()], context) : expr);
        }
        inputs.push_back(ops.of(operand.get()));
        maps.push_back(AffineMap::get(type.getRank(), 0, exprs, context));
      } else {
        continue;
      }
      arguments.push_back(op.getBlock()->getArgument(operand.getOperandNumber()));
    }
    maps.push_back(all);
    Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(
        b, loc, TypeRange(type), inputs, ValueRange(empty), maps, iterators,
        [&](OpBuilder &inner, Location at, ValueRange values) {
          IRMapping map;
          for (auto [argument, value] : llvm::zip(arguments, values))
            map.map(argument, value);
          linalg::YieldOp::create(inner, at, part.write(inner, map, loops));
        });
    products[op->getResult(0)] = made.getResult(0);
  }
  return products.lookup(carry.yielded);
}

void CutScan::writeBody(BlockedOps &ops, Value position, const SetVector<Operation *> &needed) {
  llvm::DenseSet<Operation *> stacks;
  for (Carry &carry : carries)
    if (carry.stack)
      stacks.insert(carry.stack);
  auto offsetsWith = [&](OffsetSizeAndStrideOpInterface slice, int64_t dim) {
    SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0)};
    for (auto [d, offset] : llvm::enumerate(slice.getMixedOffsets())) {
      auto value = dyn_cast<Value>(offset);
      offsets.push_back(static_cast<int64_t>(d) == dim ? OpFoldResult(position)
                        : value                        ? OpFoldResult(ops.of(value))
                                                       : offset);
    }
    return offsets;
  };
  auto with = [&](int64_t first, ArrayRef<OpFoldResult> others) {
    SmallVector<OpFoldResult> result = {b.getIndexAttr(first)};
    llvm::append_range(result, others);
    return result;
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!needed.contains(&op) || stacks.contains(&op) ||
        (isa<arith::SubIOp>(op) && isCounter(OpFoldResult(op.getResult(0)))))
      continue;
    auto found = slices.find(&op);
    if (found == slices.end()) {
      ops.write(&op);
      continue;
    }
    auto slice = cast<tensor::ExtractSliceOp>(op);
    Value made = tensor::ExtractSliceOp::create(
        b, op.getLoc(), ops.typeForAll(slice.getType()),
        sources.lookup({slice.getSource(), found->second}), offsetsWith(slice, found->second),
        with(blocks, slice.getMixedSizes()), with(1, slice.getMixedStrides()));
    ops.replace(slice, made, /*isBlocked=*/true);
  }
  for (Carry &carry : carries)
    if (carry.stack && needed.contains(carry.stack)) {
      tensor::InsertSliceOp stack = carry.stack;
      Value made = tensor::InsertSliceOp::create(
          b, stack.getLoc(), ops.forAll(stack.getSource()), ops.of(carry.argument),
          offsetsWith(stack, carry.dim), with(blocks, stack.getMixedSizes()),
          with(1, stack.getMixedStrides()));
      ops.replace(stack, made, /*isBlocked=*/true);
    }
}

CutScan::PassResults CutScan::writePass(int level, bool isLast) {
  SmallVector<Carry *> taken;
  SmallVector<Value> inits, yielded;
  BlockedOps types(b, blocks);
  auto isAdded = [&](Carry &carry) { return carry.isRecurrence() && carry.level == level; };
  SetVector<Value> reached;
  for (Carry &carry : carries)
    if (isLast || isAdded(carry))
      reached.insert(carry.yielded);
  // Recurrences of lower levels on which these depend.
  for (size_t count = 0; count != reached.size();) {
    count = reached.size();
    SetVector<Operation *> ops = opsBehind(loop, reached.getArrayRef());
    for (Carry &carry : carries)
      if (carry.isRecurrence() && carry.level < level &&
          llvm::any_of(carry.argument.getUsers(), [&](Operation *op) { return ops.contains(op); }))
        reached.insert(carry.yielded);
  }
  SetVector<Operation *> needed = opsBehind(loop, reached.getArrayRef());
  SmallVector<Carry *> products;
  for (Carry &carry : carries) {
    if (!reached.contains(carry.yielded))
      continue;
    taken.push_back(&carry);
    auto type = cast<RankedTensorType>(carry.argument.getType());
    if (carry.stack) {
      SmallVector<int64_t> shape(type.getShape());
      shape[carry.dim] = perBlock();
      inits.push_back(splat(types.typeForAll(type.clone(shape)), 0));
    } else if (carry.affine.isSum || isAdded(carry)) {
      inits.push_back(splat(types.typeForAll(type), 0));
    } else {
      inits.push_back(before.lookup(carry.argument));
    }
    if (isAdded(carry) && carry.affine.factor == CarryFactor::any)
      products.push_back(&carry);
  }
  for (Carry *carry : products) {
    auto type = cast<RankedTensorType>(carry->argument.getType());
    SmallVector<int64_t> shape;
    for (unsigned dim : carry->affine.dims)
      shape.push_back(type.getDimSize(dim));
    inits.push_back(splat(types.typeForAll(type.clone(shape)), 1));
  }
  for (auto [op, dim] : slices)
    if (needed.contains(op))
      (void)inBlocks(cast<tensor::ExtractSliceOp>(op).getSource(), dim);
  auto made = scf::ForOp::create(b, loc, index(0), index(perBlock()), index(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  Value position = made.getInductionVar();
  if (isReverse)
    position = arith::SubIOp::create(b, loc, index(perBlock() - 1), position);
  BlockedOps ops(b, blocks);
  for (auto [carry, argument] : llvm::zip(taken, made.getRegionIterArgs()))
    ops.replace(carry->argument, argument, /*isBlocked=*/true);
  writeBody(ops, position, needed);
  for (Carry *carry : taken)
    yielded.push_back(ops.forAll(carry->yielded));
  for (auto [carry, product] :
       llvm::zip(products, made.getRegionIterArgs().drop_front(taken.size())))
    yielded.push_back(writeFactor(ops, *carry, product));
  scf::YieldOp::create(b, loc, yielded);
  PassResults results;
  for (auto [carry, result] : llvm::zip(taken, made.getResults()))
    results.carries[carry->argument] = result;
  for (auto [carry, result] : llvm::zip(products, made.getResults().drop_front(taken.size())))
    results.products[carry->argument] = result;
  return results;
}
