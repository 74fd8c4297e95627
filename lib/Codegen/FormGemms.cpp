//===- FormGemms.cpp - Rewrite contractions as matrix products ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves all reorderings of a contraction's operands and result into its maps:
//
//   t = transpose x [0, 2, 1, 3]; c = collapse t [[0, 1], [2], [3]]; matmul(c, …)
//
// has the operand x with two batch loops instead of one. If the result is a gemm, the copies
// disappear; if not, the contraction is unchanged; and if that is not a gemm either, the operand
// that does not fit is copied into rows. Before that, operands of different floats are extended to
// the type of the result, since products have a single type.
//
//===----------------------------------------------------------------------===//

#include "GemmFormer.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMGEMMS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

bool GemmFormer::pack(Contraction &contraction) {
  std::optional<dist::GemmLoops> packed = dist::packGemm(
      {contraction.operands[0].loops, contraction.operands[1].loops, contraction.result},
      contraction.extents, op.getContext());
  if (!packed)
    return false;
  contraction.operands[0].loops = (*packed)[0];
  contraction.operands[1].loops = (*packed)[1];
  contraction.result = (*packed)[2];
  return true;
}

/// A generic that reorders `value`, whose dimensions are `from`, to dimensions `to`.
static Value reorder(OpBuilder &builder, Location loc, Value value, ArrayRef<unsigned> from,
                     ArrayRef<unsigned> to) {
  if (from == to)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs(to.size());
  for (auto [position, loop] : llvm::enumerate(to)) {
    size_t source = llvm::find(from, loop) - from.begin();
    shape.push_back(type.getDimSize(source));
    exprs[source] = builder.getAffineDimExpr(position);
  }
  Value empty = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  AffineMap in = AffineMap::get(to.size(), 0, exprs, builder.getContext());
  SmallVector<utils::IteratorType> loops(to.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange{empty.getType()}, ValueRange{value}, ValueRange{empty},
             ArrayRef<AffineMap>{in, builder.getMultiDimIdentityMap(to.size())}, loops,
             [](OpBuilder &inner, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(inner, loc, arguments[0]);
             })
      .getResult(0);
}

/// `wanted` is the order of the dimensions of `replaced`, in loops.
void GemmFormer::rewrite(const Contraction &contraction, ArrayRef<unsigned> wanted) {
  Location loc = op.getLoc();
  Value init = op.getDpsInits()[0];
  Type element = cast<RankedTensorType>(init.getType()).getElementType();
  auto type = RankedTensorType::get(contraction.shapeOf(contraction.result), element);
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
    init = linalg::FillOp::create(builder, loc, fill.getInputs()[0], empty).getResult(0);
  } else {
    SmallVector<int64_t> shape = contraction.shapeOf(wanted);
    if (cast<RankedTensorType>(init.getType()).getShape() != ArrayRef<int64_t>(shape))
      init = tensor::ExpandShapeOp::create(
          builder, loc, RankedTensorType::get(shape, element), init,
          gemmGroupsOf(parts, gemmLoopsOf(op.getIndexingMapsArray()[2])));
    init = reorder(builder, loc, init, wanted, contraction.result);
  }
  auto maps = builder.getAffineMapArrayAttr(contraction.maps(op.getContext()));
  Value result = linalg::ContractOp::create(
                     builder, loc, TypeRange{type},
                     ValueRange{contraction.operands[0].value, contraction.operands[1].value},
                     ValueRange{init}, maps)
                     .getResult(0);
  result = reorder(builder, loc, result, contraction.result, wanted);
  if (result.getType() != replaced.getType())
    result = tensor::CollapseShapeOp::create(
        builder, loc, cast<RankedTensorType>(replaced.getType()), result,
        gemmGroupsOf(parts, gemmLoopsOf(op.getIndexingMapsArray()[2])));
  replaced.replaceAllUsesWith(result);
}

void GemmFormer::run() {
  MLIRContext *context = op.getContext();
  Contraction contraction;
  contraction.extents = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (int i = 0; i < 2; ++i)
    contraction.operands[i] = {op->getOperand(i), gemmLoopsOf(maps[i])};
  contraction.result = gemmLoopsOf(maps[2]);
  // A generic may sum over a loop of extent 1 that one operand lacks; linalg.contract may not.
  auto isSummable = [&](unsigned loop) {
    return llvm::is_contained(contraction.result, loop) ||
           llvm::all_of(contraction.operands, [&](const ContractionOperand &operand) {
             return llvm::is_contained(operand.loops, loop);
           });
  };
  if (!llvm::all_of(llvm::seq<unsigned>(0, contraction.extents.size()), isSummable))
    return;
  replaced = op->getResult(0);
  Contraction original = contraction;

  takeReorderings(contraction);
  splitLoops(contraction);
  takeReorderings(contraction);
  takeResultReorderings(contraction);
  if (tookAny && contraction.isGemm(context)) {
    rewrite(contraction, contraction.result);
    return;
  }
  if (original.isGemm(context) || !dist::isWorthPacking(original.extents))
    return;
  // Use the original contraction, with copies.
  parts.clear();
  for (unsigned loop = 0; loop < original.extents.size(); ++loop)
    parts.push_back({loop});
  replaced = op->getResult(0);
  Contraction packed = original;
  if (!pack(packed))
    return;
  for (int i = 0; i < 2; ++i)
    packed.operands[i].value = reorder(builder, op.getLoc(), original.operands[i].value,
                                       original.operands[i].loops, packed.operands[i].loops);
  rewrite(packed, original.result);
}

/// A generic that extends the elements of `value`.
static Value extend(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, TypeRange{empty.getType()}, ValueRange{value},
                                   ValueRange{empty}, ArrayRef<AffineMap>{map, map}, loops,
                                   [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                                     Value wide =
                                         arith::ExtFOp::create(inner, loc, element, arguments[0]);
                                     linalg::YieldOp::create(inner, loc, wide);
                                   })
      .getResult(0);
}

static void widen(linalg::LinalgOp op) {
  std::array<bool, 2> widened = dist::widenedOperands(op);
  if (!widened[0] && !widened[1])
    return;
  OpBuilder builder(op);
  Type element = getElementTypeOrSelf(op->getOperand(2).getType());
  SmallVector<Value> operands(op.getDpsInputs());
  for (unsigned i = 0; i < 2; ++i)
    if (widened[i])
      operands[i] = extend(builder, op.getLoc(), operands[i], element);
  auto made = linalg::ContractOp::create(builder, op.getLoc(), op->getResultTypes(), operands,
                                         op.getDpsInits(),
                                         builder.getAffineMapArrayAttr(op.getIndexingMapsArray()));
  op->replaceAllUsesWith(made);
  op->erase();
}

namespace {
struct CodegenFormGemms : codegen::impl::CodegenFormGemmsBase<CodegenFormGemms> {
  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    SmallVector<linalg::LinalgOp> reductions;
    getOperation().walk([&](linalg::LinalgOp op) { reductions.push_back(op); });
    llvm::for_each(reductions, widen);
    // Later contractions first: a reordering between two is better absorbed by its reader than by
    // its producer, which would have to write in pieces.
    SmallVector<linalg::LinalgOp> contractions = gemmLikeOps(getOperation());
    for (linalg::LinalgOp op : llvm::reverse(contractions))
      GemmFormer(op).run();
    eraseDead(getOperation().getBody());
  }

  /// Erases unused ops, users before their operands.
  static void eraseDead(Region &region) {
    for (Block &block : region)
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
        if (isOpTriviallyDead(&op)) {
          op.erase();
          continue;
        }
        if (!isa<linalg::LinalgOp>(op))
          for (Region &inner : op.getRegions())
            eraseDead(inner);
      }
  }
};
} // namespace
