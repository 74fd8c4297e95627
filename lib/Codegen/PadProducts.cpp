//===- PadProducts.cpp - Products with aligned rows -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y = a b            y: 8192x50257             50257 is no multiple of 8
//   y = slice (a pad b)     pad b: 768x50264, product: 8192x50264
//
// Zeros in a summed loop add nothing; a result's additional elements are not read. A result that is
// only rounded is rounded before it is sliced, so that the product still writes 16 bits.
//
//===----------------------------------------------------------------------===//

#include "PadProducts.h"
#include "RoundResults.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera::codegen {

/// Elements of 16 bits in 16 bytes.
static constexpr int64_t kAligned = 8;
/// Multiplications for which the copies, of at least 10 us, are worth their time.
static constexpr double kLeastProducts = 1 << 30;
/// Multiplications for each copied element: a GPU does 400 T/s, and copies 1 T/s, with aligned
/// rows, and four times as few without.
static constexpr double kLeastForElement = 150;

/// On a tensor.pad that this pass made.
static constexpr StringLiteral kForProduct = "codegen.for_product";

/// The extents with those of unaligned rows rounded up; none if all rows are aligned.
static SmallVector<int64_t> alignedExtents(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  bool changes = false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() < 2)
      continue;
    int64_t &extent = extents[cast<AffineDimExpr>(map.getResults().back()).getPosition()];
    changes |= extent % kAligned != 0;
    extent = llvm::alignTo(extent, kAligned);
  }
  return changes ? extents : SmallVector<int64_t>();
}

static SmallVector<int64_t> shapeOf(AffineMap map, ArrayRef<int64_t> extents) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return extents[cast<AffineDimExpr>(expr).getPosition()];
  });
}

static bool isLargeProduct(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || op.hasDynamicShape() || op->getNumOperands() != 3 ||
      op->getNumResults() != 1)
    return false;
  double products = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    products *= static_cast<double>(extent);
  return products >= kLeastProducts && llvm::all_of(op.getDpsInputs(), [](Value operand) {
           Type element = getElementTypeOrSelf(operand);
           return element.isBF16() || element.isF16();
         });
}

static Value pad(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  // An earlier product reads the same.
  for (Operation *user : value.getUsers())
    if (auto known = dyn_cast<tensor::PadOp>(user); known && known->hasAttr(kForProduct) &&
                                                    known.getType().getShape() == shape &&
                                                    known->getBlock() == b.getBlock())
      return known;
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return arith::ConstantOp::create(b, loc, splat.resizeSplat(type.clone(shape)));
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
    return linalg::FillOp::create(b, loc, fill.getInputs()[0], empty).getResult(0);
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high;
  for (auto [extent, wanted] : llvm::zip_equal(type.getShape(), shape))
    high.push_back(b.getIndexAttr(wanted - extent));
  auto padded = tensor::PadOp::create(b, loc, type.clone(shape), value, low, high, zero);
  padded->setAttr(kForProduct, b.getUnitAttr());
  return padded;
}

static void padProduct(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = alignedExtents(op);
  if (extents.empty())
    return;
  double products = 1, copied = 0;
  for (int64_t extent : extents)
    products *= static_cast<double>(extent);
  SmallVector<SmallVector<int64_t>> shapes;
  for (OpOperand &operand : op->getOpOperands()) {
    shapes.push_back(shapeOf(op.getMatchingIndexingMap(&operand), extents));
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (type.getShape() != ArrayRef<int64_t>(shapes.back()))
      copied += static_cast<double>(type.getNumElements());
  }
  if (products < kLeastForElement * copied)
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> operands;
  for (auto [operand, shape] : llvm::zip_equal(op->getOperands(), shapes))
    operands.push_back(pad(b, loc, operand, shape));
  Operation *padded = clone(b, op, operands.back().getType(), operands);
  Value wide = padded->getResult(0), result = op->getResult(0);
  if (wide.getType() == result.getType()) {
    result.replaceAllUsesWith(wide);
    op.erase();
    return;
  }
  linalg::GenericOp rounding = roundingOf(result);
  if (rounding) {
    b.setInsertionPoint(rounding);
    auto type = cast<RankedTensorType>(rounding.getResult(0).getType()).clone(shapes.back());
    Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    wide = clone(b, rounding, TypeRange(Type(type)), {wide, empty})->getResult(0);
    result = rounding.getResult(0);
  }
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<OpFoldResult> zeros(type.getRank(), b.getIndexAttr(0)),
      ones(type.getRank(), b.getIndexAttr(1));
  Value slice = tensor::ExtractSliceOp::create(
      b, loc, type, wide, zeros, getAsIndexOpFoldResult(b.getContext(), type.getShape()), ones);
  result.replaceAllUsesWith(slice);
  if (rounding)
    rounding.erase();
  op.erase();
}

void padProducts(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> products;
  function.walk([&](linalg::LinalgOp op) {
    if (isLargeProduct(op))
      products.push_back(op);
  });
  for (linalg::LinalgOp op : products)
    padProduct(op);
  function.walk([](tensor::PadOp op) { op->removeAttr(kForProduct); });
}

} // namespace tessera::codegen
