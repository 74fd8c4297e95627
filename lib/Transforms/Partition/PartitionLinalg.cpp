//===- PartitionLinalg.cpp - Linalg ops on local shapes --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::FactorKind;
using sharding::TensorSharding;

/// Where a cut loop's part ends unevenly, so that some iterations lie beyond the tensor.
static bool isUneven(const ShardedOp &own, unsigned loop) {
  return own.rule.factors[loop].size % sharding::sizeOf(own.axesOf(loop)) != 0;
}

static Value indexConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value Partitioner::globalIndex(OpBuilder &body, Location loc, Part &part,
                               const ShardedOp &own, unsigned loop, Value local) {
  const sharding::AxisList &axes = own.axesOf(loop);
  int64_t chunk = sharding::ceilDiv(own.rule.factors[loop].size, sharding::sizeOf(axes));
  Value begin = arith::MulIOp::create(body, loc, axisIndex(part, own.mesh, axes),
                                      indexConstant(body, loc, chunk));
  return arith::AddIOp::create(body, loc, local, begin);
}

Value Partitioner::zeroBeyondValid(Part &part, Location loc, Value local, RankedTensorType global,
                                   const TensorSharding &sharding, const sharding::Mesh &mesh,
                                   FlatSymbolRefAttr meshName, ArrayRef<int64_t> dims) {
  OpBuilder &b = part.builder;
  auto type = cast<RankedTensorType>(local.getType());
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  SmallVector<std::pair<int64_t, Value>> begins;
  for (int64_t d : dims) {
    Value begin = arith::MulIOp::create(b, loc, axisIndex(part, meshName, sharding.dims[d]),
                                        indexConstant(b, loc, type.getDimSize(d)));
    begins.push_back({d, begin});
  }
  auto generic = linalg::GenericOp::create(
      b, loc, type, local, init, ArrayRef<AffineMap>{identity, identity}, iterators,
      [&](OpBuilder &body, Location bodyLoc, ValueRange arguments) {
        Value valid;
        for (auto [d, begin] : begins) {
          Value index = arith::AddIOp::create(
              body, bodyLoc, linalg::IndexOp::create(body, bodyLoc, d).getResult(), begin);
          Value inside = arith::CmpIOp::create(body, bodyLoc, arith::CmpIPredicate::slt, index,
                                               indexConstant(body, bodyLoc, global.getDimSize(d)));
          valid = valid ? arith::AndIOp::create(body, bodyLoc, valid, inside).getResult() : inside;
        }
        Value zero =
            arith::ConstantOp::create(body, bodyLoc, body.getZeroAttr(type.getElementType()));
        Value chosen = arith::SelectOp::create(body, bodyLoc, valid, arguments[0], zero);
        linalg::YieldOp::create(body, bodyLoc, chosen);
      });
  Value result = generic.getResult(0);
  annotate(result, ShardingAttr::get(meshName, mesh, sharding, b.getContext()), global);
  return result;
}

/// A device's buffer begins where its first window does: what the map adds to it is already in it.
static void dropWindowShifts(linalg::GenericOp op, const ShardedOp &own) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [map, dims] : llvm::zip(maps, own.rule.operands)) {
    SmallVector<AffineExpr> exprs(map.getResults());
    for (auto [expr, dim] : llvm::zip(exprs, dims))
      if (dim.isWindow && !own.axesOf(dim.factors[0]).empty())
        expr = expr - dim.shift;
    map = AffineMap::get(map.getNumDims(), 0, exprs, op.getContext());
  }
  op.setIndexingMapsAttr(Builder(op.getContext()).getAffineMapArrayAttr(maps));
}

LogicalResult Partitioner::lowerLinalg(linalg::LinalgOp op, Part &part) {
  const ShardedOp &own = shardings.of(op);
  const sharding::Mesh &mesh = meshes.get(own.mesh);
  Location loc = op.getLoc();

  SmallVector<unsigned> cut, unevenReductions;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    if (own.axesOf(loop).empty())
      continue;
    cut.push_back(loop);
    if (isUneven(own, loop) && own.rule.factors[loop].kind == FactorKind::reduction)
      unevenReductions.push_back(loop);
  }

  // A contraction stays one: both operands are zero beyond the edge (0 * NaN would be NaN).
  IRMapping inputs = part.mapping;
  bool contraction = linalg::isaContractionOpInterface(op);
  if (contraction && !unevenReductions.empty()) {
    for (OpOperand *input : op.getDpsInputOperands()) {
      SmallVector<int64_t> dims;
      for (auto [d, rule] : llvm::enumerate(own.rule.operands[input->getOperandNumber()]))
        if (rule.factors.size() == 1 && llvm::is_contained(unevenReductions, rule.factors[0]))
          dims.push_back(d);
      if (dims.empty())
        continue;
      TensorSharding lies = resolveVerified(own.operands[input->getOperandNumber()], meshes,
                                            input->get().getType());
      inputs.map(input->get(), zeroBeyondValid(part, loc, part.mapping.lookup(input->get()),
                                               cast<RankedTensorType>(input->get().getType()), lies,
                                               mesh, own.mesh, dims));
    }
  }

  auto local = cast<linalg::LinalgOp>(cloneInto(part, op, inputs));
  for (auto [result, original] : llvm::zip(local->getResults(), op->getResults()))
    result.setType(localTypeOf(original));
  if (auto generic = dyn_cast<linalg::GenericOp>(local.getOperation()))
    dropWindowShifts(generic, own);

  bool mask = !unevenReductions.empty() && !contraction;
  if (mask && !isa<linalg::GenericOp>(local)) {
    IRRewriter rewriter(part.builder);
    rewriter.setInsertionPoint(local);
    SmallVector<NamedAttribute> attributes(local->getDiscardableAttrs());
    FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, local);
    if (failed(generic))
      return op.emitError()
             << "'" << op->getName()
             << "' has an uneven edge that cannot be masked; cut a dimension that divides";
    local = cast<linalg::LinalgOp>(generic->getOperation());
    for (NamedAttribute attribute : attributes)
      local->setAttr(attribute.getName(), attribute.getValue());
    part.builder.setInsertionPointAfter(local);
  }

  Block *body = local.getBlock();
  // Where a body reads an index it means the global one.
  SmallVector<linalg::IndexOp> reads;
  for (auto index : body->getOps<linalg::IndexOp>())
    if (llvm::is_contained(cut, index.getDim()))
      reads.push_back(index);
  for (linalg::IndexOp index : reads) {
    OpBuilder builder(index->getBlock(), std::next(index->getIterator()));
    Value global = globalIndex(builder, loc, part, own, index.getDim(), index);
    index.getResult().replaceAllUsesExcept(global, global.getDefiningOp());
  }

  if (mask) {
    Operation *yield = body->getTerminator();
    OpBuilder builder(yield);
    Value valid;
    for (unsigned loop : unevenReductions) {
      Value index = globalIndex(builder, loc, part, own, loop,
                                linalg::IndexOp::create(builder, loc, loop));
      Value inside =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index,
                                indexConstant(builder, loc, own.rule.factors[loop].size));
      valid = valid ? arith::AndIOp::create(builder, loc, valid, inside).getResult() : inside;
    }
    for (auto [index, accumulator] : llvm::enumerate(local.getRegionOutputArgs()))
      yield->setOperand(index, arith::SelectOp::create(builder, loc, valid,
                                                       yield->getOperand(index), accumulator));
  }
  for (auto [original, result] : llvm::zip(op->getResults(), local->getResults()))
    define(part, original, result);
  return success();
}
