//===- CutScans.cpp - Loops along a cut dimension -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over the elements of a dimension that is cut over n devices reads, in each
// iteration, an element that one device has. If what it carries is affine in itself,
//
//   h' = a h + b
//
// where a and b do not depend on h, then n blocks of consecutive iterations are
// independent but for the value of h in front of each:
//
//   1. Each block computes its last h from h = 0, and the product p of its factors.
//   2. The value in front of block k + 1 is p[k] h[k] + last[k], a loop over n blocks.
//   3. Each block computes all that the loop computes.
//
// The blocks are a leading dimension of the tensors in 1 and 3, which takes the cut. In
// 2 one h and one p are sent for each device. Contributions that the loop only adds up
// are added up by block. A carry that the factors of another depend on comes before it.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/CutScans.h"

#include "CutScan.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Transforms/Passes.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTCUTSCANS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

Value CutScan::gathered(Value value, FlatSymbolRefAttr mesh, const MeshTable &meshes) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  auto sharding = sharding::TensorSharding::allOpen(meshes.get(mesh), rank);
  llvm::erase_if(sharding.open, [&](const sharding::AxisRef &axis) {
    return llvm::any_of(axes, [&](const sharding::AxisRef &cut) { return cut.axis == axis.axis; });
  });
  return ShardTensorOp::create(b, loc, value.getType(), value,
                               ShardingAttr::get(mesh, meshes.get(mesh), sharding, b.getContext()));
}

void CutScan::shift(Carry &carry, Value last) {
  auto type = cast<RankedTensorType>(last.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = 1;
  RankedTensorType one = type.clone(shape);
  SmallVector<ReassociationIndices> groups = groupsWith(type.getRank() - 1, 0);
  Value first = tensor::ExpandShapeOp::create(b, loc, one, initOf(carry), groups);
  int64_t n = blocks;
  SmallVector<int64_t> segments = isReverse
                                      ? SmallVector<int64_t>{0, 1, n - 1, 1, 1, 1, 1, 0, 1, n - 1}
                                      : SmallVector<int64_t>{0, 1, 0, 1, 1, 0, 1, 1, 1, n - 1};
  before[carry.argument] =
      RearrangeOp::create(b, loc, type, ValueRange{first, last}, /*dim=*/0, segments, TypedAttr());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t size : shape)
    sizes.push_back(b.getIndexAttr(size));
  offsets[0] = b.getIndexAttr(isReverse ? 0 : n - 1);
  Value slice = tensor::ExtractSliceOp::create(b, loc, one, last, offsets, sizes, strides);
  finals[carry.argument] =
      tensor::CollapseShapeOp::create(b, loc, carry.argument.getType(), slice, groups);
}

void CutScan::passOn(Carry &carry, Value last, Value product) {
  auto type = cast<RankedTensorType>(carry.argument.getType());
  int64_t rank = type.getRank();
  Value stack = splat(cast<RankedTensorType>(last.getType()), 0);
  auto made = scf::ForOp::create(b, loc, index(0), index(blocks), index(1),
                                 ValueRange{initOf(carry), stack});
  before[carry.argument] = made.getResult(1);
  finals[carry.argument] = made.getResult(0);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  Value block = made.getInductionVar();
  if (isReverse)
    block = arith::SubIOp::create(b, loc, index(blocks - 1), block);
  auto elementOf = [&](Value value, bool isInserted) {
    auto whole = cast<RankedTensorType>(value.getType());
    SmallVector<OpFoldResult> offsets(whole.getRank(), b.getIndexAttr(0)), sizes,
        strides(whole.getRank(), b.getIndexAttr(1));
    offsets[0] = block;
    for (int64_t size : whole.getShape())
      sizes.push_back(b.getIndexAttr(size));
    sizes[0] = b.getIndexAttr(1);
    if (!isInserted)
      return tensor::ExtractSliceOp::create(b, loc, value, offsets, sizes, strides).getResult();
    SmallVector<int64_t> shape(whole.getShape());
    shape[0] = 1;
    Value one = tensor::ExpandShapeOp::create(b, loc, whole.clone(shape), made.getRegionIterArg(0),
                                              groupsWith(rank, 0));
    return tensor::InsertSliceOp::create(b, loc, one, value, offsets, sizes, strides).getResult();
  };
  Value stacked = elementOf(made.getRegionIterArg(1), /*isInserted=*/true);
  SmallVector<Value> inputs = {made.getRegionIterArg(0), elementOf(last, /*isInserted=*/false)};
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  SmallVector<AffineExpr> first = {b.getAffineConstantExpr(0)};
  SmallVector<AffineExpr> ofLast = first, ofProduct = first;
  llvm::append_range(ofLast, identity.getResults());
  SmallVector<AffineMap> maps = {identity, AffineMap::get(rank, 0, ofLast, b.getContext())};
  if (product) {
    inputs.push_back(elementOf(product, /*isInserted=*/false));
    for (unsigned dim : carry.affine.dims)
      ofProduct.push_back(b.getAffineDimExpr(dim));
    maps.push_back(AffineMap::get(rank, 0, ofProduct, b.getContext()));
  }
  maps.push_back(identity);
  bool isFloat = isa<FloatType>(type.getElementType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto next = linalg::GenericOp::create(
      b, loc, TypeRange(type), inputs, ValueRange(empty), maps, iterators,
      [&](OpBuilder &inner, Location at, ValueRange values) {
        Value h = values[0];
        if (product && isFloat) {
          // The product of many factors above 1 may be infinite where the state stays 0.
          Value zero =
              arith::ConstantOp::create(inner, at, inner.getZeroAttr(type.getElementType()));
          Value isZero =
              arith::CmpFOp::create(inner, at, arith::CmpFPredicate::OEQ, h, zero).getResult();
          Value scaled = arith::MulFOp::create(inner, at, h, values[2]);
          h = arith::SelectOp::create(inner, at, isZero, h, scaled);
        } else if (product) {
          h = arith::MulIOp::create(inner, at, h, values[2]);
        }
        h = isFloat ? arith::AddFOp::create(inner, at, h, values[1]).getResult()
                    : arith::AddIOp::create(inner, at, h, values[1]).getResult();
        linalg::YieldOp::create(inner, at, h);
      });
  scf::YieldOp::create(b, loc, ValueRange{next.getResult(0), stacked});
}

/// Adds the contributions of all blocks to `init`.
static Value addBlocks(OpBuilder &b, Location loc, Value contributions, Value init) {
  auto type = cast<RankedTensorType>(contributions.getType());
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  AffineMap kept = AffineMap::get(type.getRank(), 0, all.getResults().drop_front(), b.getContext());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  iterators[0] = utils::IteratorType::reduction;
  bool isFloat = isa<FloatType>(type.getElementType());
  return linalg::GenericOp::create(
             b, loc, TypeRange(init.getType()), ValueRange(contributions), ValueRange(init),
             ArrayRef<AffineMap>{all, kept}, iterators,
             [&](OpBuilder &inner, Location at, ValueRange values) {
               Value sum = isFloat
                               ? arith::AddFOp::create(inner, at, values[1], values[0]).getResult()
                               : arith::AddIOp::create(inner, at, values[1], values[0]).getResult();
               linalg::YieldOp::create(inner, at, sum);
             })
      .getResult(0);
}

void CutScan::rewrite(FlatSymbolRefAttr mesh, const MeshTable &meshes) {
  int levels = 0;
  for (const Carry &carry : carries)
    levels = std::max(levels, carry.level);
  for (int level = 1; level <= levels; ++level) {
    PassResults results = writePass(level, /*isLast=*/false);
    for (Carry &carry : carries) {
      if (carry.level != level)
        continue;
      Value last = results.carries.lookup(carry.argument);
      Value product = results.products.lookup(carry.argument);
      if (carry.affine.factor == CarryFactor::zero) {
        shift(carry, last);
        continue;
      }
      if (mesh) {
        last = gathered(last, mesh, meshes);
        product = product ? gathered(product, mesh, meshes) : product;
      }
      passOn(carry, last, product);
    }
  }
  PassResults results = writePass(levels + 1, /*isLast=*/true);
  for (Carry &carry : carries) {
    Value value = results.carries.lookup(carry.argument);
    if (carry.stack)
      value = outOfBlocks(value, carry.dim);
    else if (carry.affine.isSum)
      value = addBlocks(b, loc, value, initOf(carry));
    else
      value = finals.lookup(carry.argument);
    carry.result.replaceAllUsesWith(value);
  }
  loop.erase();
}

bool dist::cutScans(ModuleOp module, bool gathersStates) {
  MeshTable meshes(module);
  if (meshes.empty())
    return false;
  bool hasCut = false;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    FlatSymbolRefAttr mesh = meshes.single();
    if (function.isDeclaration() || isLocalView(function) || !mesh)
      continue;
    std::vector<CutScan> scans;
    function.walk([&](scf::ForOp loop) {
      if (std::optional<CutScan> scan = CutScan::match(loop))
        scans.push_back(std::move(*scan));
    });
    std::optional<ConnectedDims> dims;
    if (!scans.empty())
      dims = ConnectedDims::of(function, meshes);
    if (!dims)
      continue;
    llvm::erase_if(scans, [&](CutScan &scan) { return !scan.chooseBlocks(*dims); });
    for (CutScan &scan : scans)
      scan.rewrite(gathersStates ? mesh : FlatSymbolRefAttr(), meshes);
    hasCut |= !scans.empty();
  }
  return hasCut;
}

namespace {
struct DistCutScans : dist::impl::DistCutScansBase<DistCutScans> {
  using Base::Base;
  void runOnOperation() override { cutScans(getOperation(), gathersStates); }
};
} // namespace
