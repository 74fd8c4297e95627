//===- FormGemms.cpp - Make contractions readable as matrix products ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction is looked at with all that reorders its operands and its result
// taken into its maps:
//
//   t = transpose x [0, 2, 1, 3]; c = collapse t [[0, 1], [2], [3]]; matmul(c, …)
//
// has the operand x with two batch loops instead of one. If that is a gemm the
// copies are gone; if not, the contraction stays as it is; and if that is none
// either, the operand that does not fit is copied into rows.
//
//===----------------------------------------------------------------------===//

#include "GemmFormer.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/IR/Matchers.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMGEMMS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// A contraction of fewer multiplications is not worth a copy of its operands.
static constexpr int64_t kMinPacked = 4096;

bool GemmFormer::pack(Contraction &contraction) {
  // Rows of batch, m, k; batch, k, n; batch, m, n always are a gemm.
  llvm::SmallDenseSet<unsigned> in[3];
  for (int i = 0; i < 2; ++i)
    in[i].insert(contraction.operands[i].loops.begin(), contraction.operands[i].loops.end());
  in[2].insert(contraction.result.begin(), contraction.result.end());
  SmallVector<unsigned> batch, m, n, k;
  for (unsigned loop = 0; loop < contraction.extents.size(); ++loop) {
    bool a = in[0].contains(loop), b = in[1].contains(loop), c = in[2].contains(loop);
    if (a && b)
      (c ? batch : k).push_back(loop);
    else if (c && (a || b))
      (a ? m : n).push_back(loop);
    else
      return false;
  }
  auto join = [](std::initializer_list<ArrayRef<unsigned>> lists) {
    SmallVector<unsigned> all;
    for (ArrayRef<unsigned> list : lists)
      llvm::append_range(all, list);
    return all;
  };
  SmallVector<unsigned> rows[3] = {join({batch, m, k}), join({batch, k, n}), join({batch, m, n})};
  std::optional<Contraction> best;
  int64_t least = 0;
  for (int choice = 1; choice < 8; ++choice) {
    Contraction tried = contraction;
    int64_t elements = 0;
    for (int i = 0; i < 3; ++i) {
      if (!(choice & (1 << i)))
        continue;
      SmallVector<unsigned> &loops = i < 2 ? tried.operands[i].loops : tried.result;
      loops = rows[i];
      elements += ShapedType::getNumElements(tried.shapeOf(loops));
    }
    if (tried.isGemm(op.getContext()) && (!best || elements < least)) {
      best = tried;
      least = elements;
    }
  }
  if (!best)
    return false;
  contraction = *best;
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
  if (original.isGemm(context) || ShapedType::getNumElements(original.extents) < kMinPacked)
    return;
  // As it was, with copies.
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

namespace {
struct CodegenFormGemms : codegen::impl::CodegenFormGemmsBase<CodegenFormGemms> {
  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    // Later ones first: a reordering between two is better taken by the one that reads it than by
    // the one that would have to write in pieces.
    SmallVector<linalg::LinalgOp> contractions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isGemmLike(op))
        contractions.push_back(op);
    });
    for (linalg::LinalgOp op : llvm::reverse(contractions))
      GemmFormer(op).run();
    eraseDead(getOperation().getBody());
  }

  /// What nothing uses any more, users before what they use.
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
