//===- KernelInsert.cpp - Insertions by blocks of the destination ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor that is filled and into which others are inserted (a pad, a concatenation)
// is written block by block along its leading dimensions, if all insertions have these
// whole:
//
//   for %i = 0 to 512:                       // images times channels
//     %plane = fill(slice of %dest at %i)
//     insert (slice of %source at %i) into %plane
//
// A block stays in the first level cache between the fill and the insertions, and the
// iterations are the kernel's tasks.
//
//===----------------------------------------------------------------------===//

#include "CpuStages.h"

#include "../Kernels/KernelGroup.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {

/// Smaller blocks take longer to begin than to write.
static constexpr int64_t kLeastBlockBytes = 2 << 10;
static constexpr int64_t kFewestBlocks = 4;

namespace {
/// The insertions that make a result of a kernel, in reverse order, and what they start from.
struct Insertions {
  SmallVector<tensor::InsertSliceOp> inserts;
  linalg::GenericOp fill; ///< null if all elements are inserted
  Value start;
};
} // namespace

static Insertions insertionsInto(Value result, unsigned reads) {
  Insertions found;
  Value value = result;
  while (auto insert = value.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!insert->hasOneUse() ||
        insert.getSourceType().getRank() != insert.getDestType().getRank() ||
        llvm::any_of(insert.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(insert.getStaticSizes(), ShapedType::isDynamic) ||
        llvm::any_of(insert.getStaticStrides(), ShapedType::isDynamic))
      return {};
    found.inserts.push_back(insert);
    value = insert.getDest();
  }
  if (auto fill = value.getDefiningOp<linalg::GenericOp>()) {
    if (!filledScalar(fill) || !fill->hasOneUse())
      return {};
    found.fill = fill;
    value = fill.getDpsInits()[0];
  }
  // A destination of the kernel: an argument that it reads would be copied first.
  auto start = dyn_cast<BlockArgument>(value);
  if (!start || start.getArgNumber() < reads)
    return {};
  found.start = value;
  return found;
}

/// The number of leading dimensions by which blocks are cut.
static unsigned leadingDims(const Insertions &all) {
  auto type = cast<RankedTensorType>(all.start.getType());
  int64_t bytes = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  unsigned leading = 0;
  for (int64_t extent : type.getShape()) {
    bool isWhole = llvm::all_of(all.inserts, [&](tensor::InsertSliceOp insert) {
      return insert.getStaticOffset(leading) == 0 && insert.getStaticStride(leading) == 1 &&
             insert.getStaticSize(leading) == extent;
    });
    if (!isWhole || extent == 0 || bytes / extent < kLeastBlockBytes)
      break;
    bytes /= extent;
    ++leading;
  }
  return leading;
}

static int64_t numBlocks(const Insertions &all, unsigned leading) {
  return ShapedType::getNumElements(
      cast<RankedTensorType>(all.start.getType()).getShape().take_front(leading));
}

namespace {
/// The place of a block in a tensor: unit sizes along the leading dimensions, at `index`.
struct BlockPlace {
  BlockPlace(OpBuilder &b, Value tensor, ArrayRef<OpFoldResult> index) : offsets(index) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
    offsets.resize(shape.size(), b.getIndexAttr(0));
    steps.resize(shape.size(), b.getIndexAttr(1));
    for (auto [d, extent] : llvm::enumerate(shape))
      sizes.push_back(b.getIndexAttr(d < index.size() ? 1 : extent));
  }
  SmallVector<OpFoldResult> offsets, sizes, steps;
};
} // namespace

static Value blockOf(OpBuilder &b, Location loc, Value tensor, ArrayRef<OpFoldResult> index) {
  BlockPlace place(b, tensor, index);
  return tensor::ExtractSliceOp::create(b, loc, tensor, place.offsets, place.sizes, place.steps);
}

static void writeByBlocks(const Insertions &all, unsigned leading) {
  tensor::InsertSliceOp last = all.inserts.front();
  auto type = cast<RankedTensorType>(all.start.getType());
  Location loc = last.getLoc();
  OpBuilder b(last);
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); };
  auto loop =
      scf::ForOp::create(b, loc, number(0), number(numBlocks(all, leading)), number(1), all.start);
  loop->setAttr(kTaskLoopAttr, b.getUnitAttr());
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<OpFoldResult> index(leading);
  Value rest = loop.getInductionVar();
  for (unsigned d = leading; d-- > 0;) {
    Value extent = number(type.getDimSize(d));
    index[d] = d ? arith::RemUIOp::create(b, loc, rest, extent).getResult() : rest;
    if (d)
      rest = arith::DivUIOp::create(b, loc, rest, extent);
  }
  Value whole = loop.getRegionIterArg(0), block = blockOf(b, loc, whole, index);
  if (linalg::GenericOp fill = all.fill)
    block = linalg::FillOp::create(b, loc, filledScalar(fill), block).getResult(0);
  for (tensor::InsertSliceOp insert : llvm::reverse(all.inserts)) {
    SmallVector<OpFoldResult> sizes = insert.getMixedSizes();
    std::fill_n(sizes.begin(), leading, b.getIndexAttr(1));
    block =
        tensor::InsertSliceOp::create(b, loc, blockOf(b, loc, insert.getSource(), index), block,
                                      insert.getMixedOffsets(), sizes, insert.getMixedStrides());
  }
  BlockPlace place(b, whole, index);
  Value written =
      tensor::InsertSliceOp::create(b, loc, block, whole, place.offsets, place.sizes, place.steps);
  scf::YieldOp::create(b, loc, written);
  last.getResult().replaceAllUsesWith(loop.getResult(0));
  for (tensor::InsertSliceOp insert : all.inserts)
    insert->erase();
  if (all.fill)
    linalg::GenericOp(all.fill)->erase();
}

void insertByBlocks(func::FuncOp kernel) {
  auto results = kernel.getBody().front().getTerminator()->getOperands();
  auto reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  SmallVector<Insertions> found;
  size_t members = 0;
  for (Value result : results) {
    found.push_back(insertionsInto(result, reads));
    if (found.back().inserts.empty())
      return;
    members += found.back().inserts.size() + (found.back().fill ? 1 : 0);
  }
  // Other ops would be the only task of the kernel.
  size_t others = llvm::count_if(kernel.getBody().front().without_terminator(), [](Operation &op) {
    return isa<linalg::LinalgOp, tensor::InsertSliceOp>(op) || op.getNumRegions() > 0;
  });
  if (others != members)
    return;
  SmallVector<unsigned> leading;
  for (const Insertions &all : found) {
    leading.push_back(leadingDims(all));
    if (numBlocks(all, leading.back()) < kFewestBlocks)
      return;
  }
  for (auto [all, dims] : llvm::zip_equal(found, leading))
    writeByBlocks(all, dims);
}

} // namespace tessera::codegen
