//===- PrepareScalars.cpp - Scalars that cross steps as tensors -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps read and write slots, so a scalar passed from one step to another becomes a
// rank-0 tensor. Scalars computed from such tensors are unchanged: each user
// recomputes them, which costs less than a step.
//
//===----------------------------------------------------------------------===//

#include "PrepareScalars.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

static bool isScalar(Type type) {
  return type.isIntOrIndexOrFloat();
}
static Type asTensor(Type type) {
  return isScalar(type) ? Type(RankedTensorType::get({}, type)) : type;
}

/// `tensor.from_elements` of a scalar; a tensor is passed through.
static Value wrap(OpBuilder &builder, Location loc, Value value) {
  if (!isScalar(value.getType()))
    return value;
  // A rank-0 tensor that is extracted and wrapped again.
  if (auto extract = value.getDefiningOp<tensor::ExtractOp>())
    if (extract.getTensor().getType() == asTensor(value.getType()))
      return extract.getTensor();
  return tensor::FromElementsOp::create(
      builder, loc, cast<RankedTensorType>(asTensor(value.getType())), ValueRange{value});
}

static Value unwrap(OpBuilder &builder, Location loc, Value tensor) {
  return tensor::ExtractOp::create(builder, loc, tensor, ValueRange{});
}

/// Puts a rank-0 tensor between a scalar and all its users except the wrapper.
static void materialize(OpBuilder &builder, Value scalar) {
  Location loc = scalar.getLoc();
  auto type = cast<RankedTensorType>(asTensor(scalar.getType()));
  auto tensor = tensor::FromElementsOp::create(builder, loc, type, ValueRange{scalar});
  Value again = unwrap(builder, loc, tensor);
  scalar.replaceUsesWithIf(again, [&](OpOperand &use) { return use.getOwner() != tensor; });
}

/// Replaces the scalar arguments of a block by rank-0 tensors.
static void wrapArguments(Block &block, unsigned first) {
  OpBuilder builder(block.getParentOp()->getContext());
  builder.setInsertionPointToStart(&block);
  for (BlockArgument argument : block.getArguments().drop_front(first)) {
    if (!isScalar(argument.getType()))
      continue;
    argument.setType(asTensor(argument.getType()));
    auto extract = tensor::ExtractOp::create(builder, argument.getLoc(), argument, ValueRange{});
    argument.replaceAllUsesExcept(extract, extract);
  }
}

static void wrapOperands(Operation *op, unsigned first = 0) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands().drop_front(first))
    operand.set(wrap(builder, op->getLoc(), operand.get()));
}

/// Replaces the scalar results of a loop or branch by rank-0 tensors.
static void wrapResults(Operation *op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    if (!isScalar(result.getType()))
      continue;
    result.setType(asTensor(result.getType()));
    auto extract = tensor::ExtractOp::create(builder, op->getLoc(), result, ValueRange{});
    result.replaceAllUsesExcept(extract, extract);
  }
}

/// Reads a bound or condition from a rank-0 tensor, unless it is a constant.
static void wrapControl(Operation *op, OpOperand &operand) {
  Value value = operand.get();
  if (matchPattern(value, m_Constant()))
    return;
  if (auto extract = value.getDefiningOp<tensor::ExtractOp>())
    if (extract.getTensor().getType() == asTensor(value.getType()))
      return;
  OpBuilder builder(op);
  operand.set(unwrap(builder, op->getLoc(), wrap(builder, op->getLoc(), value)));
}

/// Loops over other integers count in `index`.
static void useIndex(scf::ForOp loop) {
  Type type = loop.getInductionVar().getType();
  if (type.isIndex())
    return;
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  for (OpOperand &bound : loop->getOpOperands().take_front(3))
    bound.set(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), bound.get()));
  BlockArgument iv = cast<BlockArgument>(loop.getInductionVar());
  iv.setType(builder.getIndexType());
  builder.setInsertionPointToStart(loop.getBody());
  auto cast = arith::IndexCastOp::create(builder, loc, type, iv);
  iv.replaceAllUsesExcept(cast, cast);
}

static void prepareFor(scf::ForOp loop) {
  useIndex(loop);
  wrapOperands(loop, 3);
  wrapOperands(loop.getBody()->getTerminator());
  wrapArguments(*loop.getBody(), 1);
  wrapResults(loop);
  for (OpOperand &bound : loop->getOpOperands().take_front(3)) {
    // A cast of a constant is one.
    IntegerAttr number;
    if (auto cast = bound.get().getDefiningOp<arith::IndexCastOp>();
        cast && matchPattern(cast.getIn(), m_Constant(&number))) {
      OpBuilder builder(loop);
      bound.set(arith::ConstantIndexOp::create(builder, loop.getLoc(), number.getInt()));
    }
    wrapControl(loop, bound);
  }
  OpBuilder builder(loop.getContext());
  builder.setInsertionPointToStart(loop.getBody());
  if (!loop.getInductionVar().use_empty())
    materialize(builder, loop.getInductionVar());
}

static void prepareWhile(scf::WhileOp loop) {
  wrapOperands(loop);
  wrapArguments(*loop.getBeforeBody(), 0);
  wrapArguments(*loop.getAfterBody(), 0);
  wrapOperands(loop.getConditionOp(), 1);
  wrapOperands(loop.getYieldOp());
  wrapResults(loop);
  wrapControl(loop.getConditionOp(), loop.getConditionOp().getConditionMutable());
}

static void prepareIf(scf::IfOp branch) {
  wrapOperands(branch.thenYield());
  if (branch.elseBlock())
    wrapOperands(branch.elseYield());
  wrapResults(branch);
  wrapControl(branch, branch.getConditionMutable());
}

/// One `dist.axis_index` for each mesh and axes, at the top of the function.
static void prepareCoordinates(func::FuncOp function) {
  llvm::MapVector<std::pair<Attribute, Attribute>, dist::AxisIndexOp> first;
  SmallVector<dist::AxisIndexOp> all;
  function.walk([&](dist::AxisIndexOp op) { all.push_back(op); });
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  for (dist::AxisIndexOp op : all) {
    dist::AxisIndexOp &one = first[{op.getMeshAttr(), op.getAxesAttr()}];
    if (one) {
      op.replaceAllUsesWith(one.getResult());
      op.erase();
      continue;
    }
    one = op;
    op->moveBefore(builder.getBlock(), builder.getInsertionPoint());
    builder.setInsertionPointAfter(op);
  }
  for (auto &[key, op] : first) {
    builder.setInsertionPointAfter(op);
    materialize(builder, op.getResult());
  }
}

/// Replaces rank-0 tensors that copy another one.
static void dropRewrapped(func::FuncOp function) {
  SmallVector<tensor::FromElementsOp> wrappers;
  function.walk([&](tensor::FromElementsOp op) { wrappers.push_back(op); });
  for (tensor::FromElementsOp op : wrappers) {
    if (op.getType().getRank() != 0)
      continue;
    auto extract = op.getElements()[0].getDefiningOp<tensor::ExtractOp>();
    if (!extract || extract.getTensor().getType() != op.getType())
      continue;
    op.replaceAllUsesWith(extract.getTensor());
    op.erase();
    if (extract->use_empty())
      extract.erase();
  }
}

void codegen::prepareScalars(func::FuncOp function) {
  prepareCoordinates(function);
  // Outer loops first: their carries are wrapped before inner loops are visited.
  function.walk<WalkOrder::PreOrder>([](Operation *op) {
    // Loops and branches of a group, and of the body of an op, are not steps.
    if (isa<rt::GroupOp, linalg::LinalgOp>(op) ||
        (op->getNumRegions() && !isa<func::FuncOp, scf::ForOp, scf::WhileOp, scf::IfOp>(op)))
      return WalkResult::skip();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      prepareFor(loop);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      prepareWhile(loop);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      prepareIf(branch);
    return WalkResult::advance();
  });
  // An element of a larger tensor is extracted once: extracted by each user it would keep the
  // tensor live.
  SmallVector<tensor::ExtractOp> extracts;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<rt::GroupOp, linalg::LinalgOp>(op))
      return WalkResult::skip();
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      if (extract.getTensor().getType().getNumElements() != 1)
        extracts.push_back(extract);
    return WalkResult::advance();
  });
  for (tensor::ExtractOp extract : extracts) {
    OpBuilder builder(extract->getContext());
    builder.setInsertionPointAfter(extract);
    materialize(builder, extract.getResult());
  }
  dropRewrapped(function);
}
