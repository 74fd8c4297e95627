//===- FormGemms.cpp - Make contractions readable as matrix products -------===//
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

#include "tessera/Codegen/Gemm.h"
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

namespace {

/// An operand or the result, with its map over the loops.
struct View {
  Value value;
  SmallVector<unsigned> loops; ///< loop of each dimension
};

/// A contraction that does not exist yet.
struct Contraction {
  SmallVector<int64_t> extents; ///< of the loops
  View operands[2];
  SmallVector<unsigned> result;

  SmallVector<AffineMap> maps(MLIRContext *context) const {
    SmallVector<AffineMap> maps;
    for (ArrayRef<unsigned> loops :
         {ArrayRef(operands[0].loops), ArrayRef(operands[1].loops), ArrayRef(result)}) {
      SmallVector<AffineExpr> exprs;
      for (unsigned loop : loops)
        exprs.push_back(getAffineDimExpr(loop, context));
      maps.push_back(AffineMap::get(extents.size(), 0, exprs, context));
    }
    return maps;
  }
  bool isGemm(MLIRContext *context) const { return matchGemm(maps(context), extents).has_value(); }
  SmallVector<int64_t> shapeOf(ArrayRef<unsigned> loops) const {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return extents[loop]; });
  }
};

/// Rewrites one contraction.
class Former {
public:
  explicit Former(linalg::LinalgOp op) : op(op), builder(op) {}
  void run();

private:
  void splitLoops(Contraction &contraction);
  void takeReorderings(Contraction &contraction);
  void takeResultReorderings(Contraction &contraction);
  /// Copies of as few elements as possible that make it a gemm. False when there are none.
  bool pack(Contraction &contraction);
  void rewrite(const Contraction &contraction, ArrayRef<unsigned> wanted);

  linalg::LinalgOp op;
  OpBuilder builder;
  SmallVector<SmallVector<unsigned>> parts; ///< the loops that each original loop became
  Value replaced;                           ///< what the new result stands for
  bool tookAny = false;                     ///< a reordering is in the maps
};

} // namespace

/// The permutation of a generic that only reorders dimensions: result dimension i is dimension
/// permutation[i] of its operand. Dimensions of its result that the operand lacks are -1.
static std::optional<SmallVector<int>> reordering(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 1 || generic.getNumDpsInits() != 1 ||
      generic.getNumReductionLoops() != 0 || generic.hasDynamicShape())
    return std::nullopt;
  Block &body = *generic.getBody();
  if (body.getTerminator()->getOperand(0) != body.getArgument(0))
    return std::nullopt;
  AffineMap in = generic.getIndexingMapsArray()[0], out = generic.getIndexingMapsArray()[1];
  if (!in.isProjectedPermutation() || !out.isPermutation() ||
      !isa<RankedTensorType>(generic.getInputs()[0].getType()))
    return std::nullopt;
  SmallVector<int> result;
  for (AffineExpr expr : out.getResults()) {
    std::optional<unsigned> position = in.getResultPosition(expr);
    result.push_back(position ? static_cast<int>(*position) : -1);
  }
  return result;
}

static SmallVector<unsigned> loopsOf(AffineMap map) {
  return llvm::map_to_vector(
      map.getResults(), [](AffineExpr expr) { return cast<AffineDimExpr>(expr).getPosition(); });
}

/// Which dimensions of an operand with its loops split are one of the operand before.
static SmallVector<ReassociationIndices> groupsOf(ArrayRef<SmallVector<unsigned>> parts,
                                                  ArrayRef<unsigned> loops) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (unsigned loop : loops) {
    ReassociationIndices &group = groups.emplace_back();
    for (size_t i = 0; i < parts[loop].size(); ++i)
      group.push_back(next++);
  }
  return groups;
}

/// Splits loops where an operand is the collapse of something reordered, so that the reordering can
/// be taken; the other operands are expanded, which costs nothing.
void Former::splitLoops(Contraction &contraction) {
  SmallVector<SmallVector<int64_t>> split(contraction.extents.size());
  for (View &view : contraction.operands) {
    auto collapse = view.value.getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || !reordering(collapse.getSrc()))
      continue;
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices()))
      if (group.size() > 1 && split[view.loops[dim]].empty())
        for (int64_t source : group)
          split[view.loops[dim]].push_back(shape[source]);
  }
  // The result, too, is often expanded before it is reordered.
  if (replaced.hasOneUse())
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(*replaced.user_begin())) {
      ArrayRef<int64_t> shape = expand.getResultType().getShape();
      for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices()))
        if (group.size() > 1 && split[contraction.result[dim]].empty())
          for (int64_t target : group)
            split[contraction.result[dim]].push_back(shape[target]);
    }
  SmallVector<int64_t> extents;
  for (auto [loop, sizes] : llvm::enumerate(split)) {
    if (sizes.empty())
      sizes.push_back(contraction.extents[loop]);
    SmallVector<unsigned> &mine = parts.emplace_back();
    for (int64_t size : sizes) {
      mine.push_back(extents.size());
      extents.push_back(size);
    }
  }
  contraction.extents = extents;
  auto withParts = [&](ArrayRef<unsigned> loops) {
    SmallVector<unsigned> renamed;
    for (unsigned loop : loops)
      llvm::append_range(renamed, parts[loop]);
    return renamed;
  };
  // Give each value the shape of its loops.
  for (View &view : contraction.operands) {
    SmallVector<unsigned> loops = withParts(view.loops);
    SmallVector<int64_t> shape = contraction.shapeOf(loops);
    auto type = cast<RankedTensorType>(view.value.getType());
    if (type.getShape() != ArrayRef<int64_t>(shape)) {
      auto collapse = view.value.getDefiningOp<tensor::CollapseShapeOp>();
      if (collapse && collapse.getSrcType().getShape() == ArrayRef<int64_t>(shape))
        view.value = collapse.getSrc();
      else
        view.value = tensor::ExpandShapeOp::create(
            builder, op.getLoc(), RankedTensorType::get(shape, type.getElementType()), view.value,
            groupsOf(parts, view.loops));
    }
    view.loops = loops;
  }
  contraction.result = withParts(contraction.result);
}

void Former::takeReorderings(Contraction &contraction) {
  for (auto [index, view] : llvm::enumerate(contraction.operands)) {
    while (std::optional<SmallVector<int>> order = reordering(view.value)) {
      Value source = view.value.getDefiningOp<linalg::GenericOp>().getInputs()[0];
      SmallVector<unsigned> loops(cast<RankedTensorType>(source.getType()).getRank());
      bool isContraction = true; // sums run over loops that both operands have
      for (auto [dim, from] : llvm::enumerate(*order))
        if (from >= 0)
          loops[from] = view.loops[dim];
        else
          isContraction &= llvm::is_contained(contraction.result, view.loops[dim]);
      Contraction tried = contraction;
      tried.operands[index] = {source, loops};
      if (!isContraction || !tried.isGemm(op.getContext()))
        break;
      view.value = source;
      view.loops = loops;
      tookAny = true;
    }
  }
}

void Former::takeResultReorderings(Contraction &contraction) {
  // Only a result that starts from a fill can start in another order.
  if (!op.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return;
  Value result = replaced;
  if (result.hasOneUse())
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(*result.user_begin());
        expand && expand.getResultType().getShape() ==
                      ArrayRef<int64_t>(contraction.shapeOf(contraction.result))) {
      result = expand.getResult();
    }
  if (cast<RankedTensorType>(result.getType()).getShape() !=
          ArrayRef<int64_t>(contraction.shapeOf(contraction.result)) ||
      !result.hasOneUse())
    return;
  Operation *user = *result.user_begin();
  std::optional<SmallVector<int>> order;
  if (user->getNumResults() == 1 && user->getBlock() == op->getBlock() &&
      isa<linalg::GenericOp>(user) && user->getOperand(0) == result)
    order = reordering(user->getResult(0));
  if (!order || llvm::is_contained(*order, -1))
    return;
  SmallVector<unsigned> loops;
  for (int from : *order)
    loops.push_back(contraction.result[from]);
  Contraction tried = contraction;
  tried.result = loops;
  if (!tried.isGemm(op.getContext()))
    return;
  contraction.result = loops;
  replaced = user->getResult(0);
  tookAny = true;
}

bool Former::pack(Contraction &contraction) {
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
void Former::rewrite(const Contraction &contraction, ArrayRef<unsigned> wanted) {
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
      init =
          tensor::ExpandShapeOp::create(builder, loc, RankedTensorType::get(shape, element), init,
                                        groupsOf(parts, loopsOf(op.getIndexingMapsArray()[2])));
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
        groupsOf(parts, loopsOf(op.getIndexingMapsArray()[2])));
  replaced.replaceAllUsesWith(result);
}

void Former::run() {
  MLIRContext *context = op.getContext();
  Contraction contraction;
  contraction.extents = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (int i = 0; i < 2; ++i)
    contraction.operands[i] = {op->getOperand(i), loopsOf(maps[i])};
  contraction.result = loopsOf(maps[2]);
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
      Former(op).run();
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
