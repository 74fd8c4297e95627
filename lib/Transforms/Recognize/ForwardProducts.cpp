//===- ForwardProducts.cpp - Outputs of attentions with derivatives only --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that only needs the derivatives of an attention has no product of shares
// and values, which is where attentions are matched. Of its other products two have
// the gradient of the output in common,
//
//   d_value[.., k, d] = sum over q of share[.., q, k] gradient[.., q, d]
//   d_share[.., q, k] = sum over d of gradient[.., q, d] value[.., k, d]
//
// from which follows
//
//   output[.., q, d] = sum over k of share[.., q, k] value[.., k, d]
//
// This product is added without readers, to programs whose other attentions have been
// matched. If the attention is matched, the output is part of it; if not, the product
// is dead.
//
//===----------------------------------------------------------------------===//

#include "MatchAttentionBackward.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// An operand of a product by its dimensions, seen from the other operand.
struct Factor {
  Value value;
  SmallVector<int> inOther;   ///< by dimension: that of the other operand with the same loop, or -1
  llvm::SmallBitVector isSum; ///< by dimension: whether its loop is summed
};

} // namespace

/// The operand `side` of a product; empty unless it is a tensor, and loops are dimensions.
static std::optional<Factor> factorOf(linalg::LinalgOp product, unsigned side) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  if (!isa<RankedTensorType>(product->getOperand(side).getType()) ||
      !llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  Factor factor{product->getOperand(side), {}, {}};
  for (AffineExpr loop : maps[side].getResults()) {
    auto place = maps[1 - side].getResultPosition(loop);
    factor.inOther.push_back(place ? static_cast<int>(*place) : -1);
    factor.isSum.push_back(!maps[2].getResultPosition(loop));
  }
  return factor;
}

static SmallVector<int64_t> ownExtents(const Factor &factor) {
  SmallVector<int64_t> extents;
  auto type = cast<RankedTensorType>(factor.value.getType());
  for (auto [dim, other] : llvm::enumerate(factor.inOther))
    if (other < 0)
      extents.push_back(type.getDimSize(dim));
  return extents;
}

/// Whether a product of `factor` sums over the dimensions that the other operand of it lacks.
static bool hasForward(const Factor &factor) {
  return llvm::any_of(factor.value.getUses(), [&](OpOperand &use) {
    auto product = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!product || !isProduct(product))
      return false;
    std::optional<Factor> other = factorOf(product, use.getOperandNumber());
    return other && llvm::all_of(llvm::enumerate(factor.inOther), [&](auto dim) {
             return other->isSum[dim.index()] == (dim.value() < 0);
           });
  });
}

/// The value of a product gradient · value that sums over exactly the dimensions that `gradient`
/// has and the shares lack.
static std::optional<Factor> valueFor(const Factor &gradient, const Factor &shares,
                                      Operation *before) {
  for (OpOperand &use : gradient.value.getUses()) {
    auto product = dyn_cast<linalg::LinalgOp>(use.getOwner());
    unsigned side = use.getOperandNumber();
    if (!product || side > 1 || product->getBlock() != before->getBlock() || !isProduct(product))
      continue;
    std::optional<Factor> own = factorOf(product, side), value = factorOf(product, 1 - side);
    if (!own || !value || value->value == shares.value ||
        !llvm::all_of(llvm::enumerate(gradient.inOther),
                      [&](auto dim) { return own->isSum[dim.index()] == (dim.value() < 0); }) ||
        ownExtents(*value) != ownExtents(shares))
      continue;
    Operation *source = value->value.getDefiningOp();
    if (!source || source->getBlock() != before->getBlock() || source->isBeforeInBlock(before))
      return value;
  }
  return std::nullopt;
}

/// The map of a factor over the dimensions of the gradient, then the keys.
static AffineMap mapOf(const Factor &factor, unsigned rank, unsigned numKeys,
                       MLIRContext *context) {
  SmallVector<AffineExpr> exprs;
  unsigned key = rank;
  for (int other : factor.inOther)
    exprs.push_back(getAffineDimExpr(other < 0 ? key++ : static_cast<unsigned>(other), context));
  return AffineMap::get(rank + numKeys, 0, exprs, context);
}

static bool addForwardProduct(linalg::LinalgOp product, unsigned side, int64_t leastBytes) {
  std::optional<Factor> shares = factorOf(product, side), gradient = factorOf(product, 1 - side);
  if (!shares || !gradient)
    return false;
  auto type = cast<RankedTensorType>(shares->value.getType());
  SmallVector<int64_t> keys = ownExtents(*shares);
  bool sumsQueries = shares->isSum.any();
  for (auto [dim, other] : llvm::enumerate(shares->inOther))
    sumsQueries &= other >= 0 || !shares->isSum[dim];
  constexpr int64_t kBytes = 4; // scores are f32 even if shares are rounded to 16 bits
  if (keys.empty() || ownExtents(*gradient).empty() || !sumsQueries ||
      type.getNumElements() * kBytes < leastBytes || hasForward(*shares))
    return false;
  std::optional<Factor> value = valueFor(*gradient, *shares, product);
  if (!value)
    return false;
  OpBuilder b(product);
  Location loc = product.getLoc();
  auto shape = cast<RankedTensorType>(gradient->value.getType()).getShape();
  Type element = getElementTypeOrSelf(product->getResult(0).getType());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  Value init = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  unsigned rank = shape.size();
  MLIRContext *context = b.getContext();
  AffineMap output = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<AffineMap> maps = {
      mapOf(*shares, rank, keys.size(), context), mapOf(*value, rank, keys.size(), context),
      AffineMap::get(rank + keys.size(), 0, output.getResults(), context)};
  linalg::ContractOp::create(b, loc, TypeRange{init.getType()},
                             ValueRange{shares->value, value->value}, ValueRange{init},
                             b.getAffineMapArrayAttr(maps));
  return true;
}

bool dist::addForwardProducts(Block &block, int64_t leastBytes) {
  SmallVector<linalg::LinalgOp> products;
  for (Operation &op : block)
    if (auto product = dyn_cast<linalg::LinalgOp>(op); product && isProduct(product))
      products.push_back(product);
  bool any = false;
  for (linalg::LinalgOp product : products)
    for (unsigned side : {0, 1})
      any |= addForwardProduct(product, side, leastBytes);
  return any;
}
