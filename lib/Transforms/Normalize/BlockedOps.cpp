//===- BlockedOps.cpp - Ops of several blocks of iterations ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockedOps.h"

#include "SplitLoops.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool BlockedOps::supports(Operation *op) {
  if (isAnnotated(op))
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.hasPureTensorSemantics() && op->getNumRegions() == 1 &&
           llvm::all_of(linalgOp.getStaticLoopRanges(), [](int64_t n) { return n >= 0; });
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return pad.getConstantPaddingValue() && pad.getLow().empty() && pad.getHigh().empty();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice.getSizes().empty() && slice.getStrides().empty();
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return slice.getSizes().empty() && slice.getStrides().empty();
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ConcatOp, RearrangeOp,
             ext::ScanOp, ext::SortOp>(op);
}

void BlockedOps::replace(Value value, Value to, bool isBlocked) {
  map.map(value, to);
  if (isBlocked)
    blocked.insert(value);
}

RankedTensorType BlockedOps::typeForAll(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape = {blocks};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

AffineMap BlockedOps::mapForAll(AffineMap map, bool isBlocked) {
  AffineMap shifted = map.shiftDims(1);
  SmallVector<AffineExpr> exprs;
  if (isBlocked)
    exprs.push_back(getAffineDimExpr(0, map.getContext()));
  llvm::append_range(exprs, shifted.getResults());
  return AffineMap::get(shifted.getNumDims(), 0, exprs, map.getContext());
}

Value BlockedOps::forAll(Value value) {
  if (isBlocked(value))
    return of(value);
  RankedTensorType type = typeForAll(value.getType());
  Location loc = value.getLoc();
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(b, loc, splat.resizeSplat(type));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  if (value.getDefiningOp<tensor::EmptyOp>())
    return empty;
  return linalg::BroadcastOp::create(b, loc, of(value), empty, ArrayRef<int64_t>{0})->getResult(0);
}

/// The init of an op; one that is not read has no value.
Value BlockedOps::initForAll(linalg::LinalgOp op, OpOperand &init) {
  if (isBlocked(init.get()) || op.payloadUsesValueFromOperand(&init))
    return forAll(init.get());
  RankedTensorType type = typeForAll(init.get().getType());
  return tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
}

Operation *BlockedOps::writeLinalg(linalg::LinalgOp op) {
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isInit = op.isDpsInit(&operand);
    maps.push_back(
        mapForAll(op.getMatchingIndexingMap(&operand), isInit || isBlocked(operand.get())));
    if (isInit)
      inits.push_back(initForAll(op, operand));
    else
      inputs.push_back(of(operand.get()));
  }
  Operation *made = nullptr;
  Location loc = op.getLoc();
  if (auto transpose = dyn_cast<linalg::TransposeOp>(*op)) {
    SmallVector<int64_t> permutation = {0};
    for (int64_t d : transpose.getPermutation())
      permutation.push_back(d + 1);
    made = linalg::TransposeOp::create(b, loc, inputs[0], inits[0], permutation);
  } else if (isa<linalg::ContractOp>(op) ||
             (isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op) && !op->hasAttr("cast"))) {
    made = linalg::ContractOp::create(b, loc, TypeRange(ValueRange(inits)), inputs, inits,
                                      b.getAffineMapArrayAttr(maps));
    if (Attribute cast = op->getAttr("cast"))
      made->setAttr("cast", cast);
  } else {
    SmallVector<utils::IteratorType> iterators = {utils::IteratorType::parallel};
    llvm::append_range(iterators, op.getIteratorTypesArray());
    auto generic = linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)), inputs, inits,
                                             maps, iterators);
    IRMapping inner(map);
    op->getRegion(0).cloneInto(&generic.getRegion(), inner);
    generic.walk([&](linalg::IndexOp index) { index.setDim(index.getDim() + 1); });
    made = generic;
  }
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return made;
}

/// Reassociation behind a leading dimension that stays, of a tensor of `rank` without it. A scalar
/// has no groups for the other's dimensions of extent 1.
static SmallVector<ReassociationIndices> behindBlocks(ArrayRef<ReassociationIndices> groups,
                                                      int64_t rank) {
  SmallVector<ReassociationIndices> result = {{0}};
  if (groups.empty())
    for (int64_t d = 0; d < rank; ++d)
      result[0].push_back(d + 1);
  for (const ReassociationIndices &group : groups)
    result.push_back(llvm::map_to_vector<2>(group, [](int64_t d) { return d + 1; }));
  return result;
}

Operation *BlockedOps::writeBlocked(Operation *op) {
  Location loc = op->getLoc();
  auto replaced = [&](ArrayRef<OpFoldResult> values) {
    return llvm::map_to_vector(values, [&](OpFoldResult value) -> OpFoldResult {
      return isa<Value>(value) ? OpFoldResult(of(cast<Value>(value))) : value;
    });
  };
  auto with = [&](OpFoldResult first, ArrayRef<OpFoldResult> values) {
    SmallVector<OpFoldResult> result = {first};
    llvm::append_range(result, replaced(values));
    return result;
  };
  Attribute zero = b.getIndexAttr(0), one = b.getIndexAttr(1), all = b.getIndexAttr(blocks);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return writeLinalg(linalgOp);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(
        b, loc, typeForAll(expand.getType()), of(expand.getSrc()),
        behindBlocks(expand.getReassociationIndices(), expand.getType().getRank()));
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(
        b, loc, typeForAll(collapse.getType()), of(collapse.getSrc()),
        behindBlocks(collapse.getReassociationIndices(), collapse.getSrcType().getRank()));
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return tensor::ExtractSliceOp::create(
        b, loc, typeForAll(slice.getType()), of(slice.getSource()),
        with(zero, slice.getMixedOffsets()), with(all, slice.getMixedSizes()),
        with(one, slice.getMixedStrides()));
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return tensor::InsertSliceOp::create(b, loc, forAll(slice.getSource()), forAll(slice.getDest()),
                                         with(zero, slice.getMixedOffsets()),
                                         with(all, slice.getMixedSizes()),
                                         with(one, slice.getMixedStrides()));
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return tensor::PadOp::create(
        b, loc, typeForAll(pad.getType()), of(pad.getSource()), with(zero, pad.getMixedLowPad()),
        with(zero, pad.getMixedHighPad()), of(pad.getConstantPaddingValue()), pad.getNofold());
  SmallVector<Value> inputs =
      llvm::map_to_vector(op->getOperands(), [&](Value value) { return forAll(value); });
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return tensor::ConcatOp::create(b, loc, concat.getDim() + 1, inputs);
  if (auto scan = dyn_cast<ext::ScanOp>(op)) {
    auto made = ext::ScanOp::create(
        b, loc, TypeRange(inputs), b.getI64IntegerAttr(scan.getDimension() + 1),
        scan.getExclusiveAttr(), scan.getReverseAttr(), inputs, scan.getIdentityAttr());
    scan.getCombiner().cloneInto(&made.getCombiner(), map);
    return made;
  }
  if (auto sort = dyn_cast<ext::SortOp>(op)) {
    SmallVector<Type> types = llvm::map_to_vector(
        sort->getResultTypes(), [&](Type type) -> Type { return typeForAll(type); });
    Operation *made =
        b.create(loc, sort->getName().getIdentifier(), inputs, types, sort->getAttrs());
    cast<ext::SortOp>(made).setDimension(sort.getDimension() + 1);
    return made;
  }
  auto move = cast<RearrangeOp>(op);
  return RearrangeOp::create(b, loc, typeForAll(move.getType()), inputs, move.getDim() + 1,
                             move.getSegments(), move.getFillAttr());
}

void BlockedOps::write(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value value) { return isBlocked(value); })) {
    b.clone(*op, map);
    return;
  }
  Operation *made = writeBlocked(op);
  for (auto [value, to] : llvm::zip_equal(op->getResults(), made->getResults()))
    replace(value, to, /*isBlocked=*/true);
}
