//===- SplitMergedDims.cpp - Undo merges of dimensions --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values with a merged dimension form a region, collected along the loops of
// linalg ops and through reshapes that do not change the dimension. At its border
// are reshapes that merge or split the dimension in the same way, which disappear,
// reshapes that merge it with more dimensions, which change, and other ops and
// arguments, which need a new reshape. The region is rewritten if more reshapes
// disappear than are inserted.
//
// A dimension that is a batch to all ops of the region is also followed through slices,
// pads and moves along other dimensions: windows of images whose batch is merged with
// them are computed where the images are, also if the devices do not divide the batch.
//
//===----------------------------------------------------------------------===//

#include "SplitMergedDims.h"
#include "SplitLoops.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

using Groups = SmallVector<ReassociationIndices>;

/// A reshape between a tensor and the same with groups of its dimensions merged.
struct Reshape {
  Operation *op = nullptr;
  Value large, small; ///< the tensor with more dimensions, and the other
  Groups groups;      ///< by dimension of `small`: the dimensions of `large`

  ArrayRef<int64_t> shape() const { return cast<RankedTensorType>(large.getType()).getShape(); }

  /// The dimensions of a group that have more than one index.
  SmallVector<int64_t> longDims(int64_t group) const {
    SmallVector<int64_t> dims;
    for (int64_t dim : groups[group])
      if (shape()[dim] != 1)
        dims.push_back(dim);
    return dims;
  }
  SmallVector<int64_t> longExtents(int64_t group) const {
    return llvm::map_to_vector(longDims(group), [&](int64_t dim) { return shape()[dim]; });
  }
  int64_t groupOf(int64_t largeDim) const {
    for (auto [g, group] : llvm::enumerate(groups))
      if (llvm::is_contained(group, largeDim))
        return static_cast<int64_t>(g);
    llvm_unreachable("every dimension is in a group");
  }
};

std::optional<Reshape> reshapeOf(Operation *op) {
  if (!op || isAnnotated(op))
    return std::nullopt;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return Reshape{op, collapse.getSrc(), collapse.getResult(), collapse.getReassociationIndices()};
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return Reshape{op, expand.getResult(), expand.getSrc(), expand.getReassociationIndices()};
  return std::nullopt;
}

/// Whether an op moves elements along other dimensions only, and has this one in all its tensors.
bool movesAlongOthers(Operation *op, int64_t dim) {
  if (!op || isAnnotated(op))
    return false;
  auto isFull = [&](ArrayRef<int64_t> widths) { return widths[dim] == 0; };
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return !slice.getDroppedDims().any() && slice.getOffsets().empty() &&
           slice.getSizes().empty() && slice.getStrides().empty() &&
           slice.getStaticSizes()[dim] == slice.getSourceType().getDimSize(dim);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return pad.getLow().empty() && pad.getHigh().empty() && pad.getConstantPaddingValue() &&
           isFull(pad.getStaticLow()) && isFull(pad.getStaticHigh());
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return static_cast<int64_t>(concat.getDim()) != dim;
  if (auto rearrange = dyn_cast<RearrangeOp>(op))
    return static_cast<int64_t>(rearrange.getDim()) != dim;
  return false;
}

/// A merged dimension in all values that have it.
class MergedDim {
public:
  using Dim = std::pair<Value, int64_t>;

  /// throughMoves: whether moves along other dimensions belong to the region.
  MergedDim(const Reshape &seed, int64_t group, bool throughMoves) : throughMoves(throughMoves) {
    follow({seed.small, group});
    while (!work.empty()) {
      Dim dim = work.pop_back_val();
      visitProducer(dim);
      if (remade.contains(dim.first))
        continue; // its readers may read other dimensions
      for (OpOperand &use : dim.first.getUses())
        visitUse(use, dim);
    }
    refine();
  }

  const llvm::SetVector<Dim> &members() const { return seen; }

  /// Whether more reshapes disappear than must be inserted.
  bool isWorthSplitting() const {
    bool isMixed = // an op would split only one of two dimensions of a value
        llvm::any_of(entries,
                     [&](Value value) { return followed.contains(value.getDefiningOp()); });
    for (auto &[value, uses] : leaving)
      for (OpOperand *use : uses)
        isMixed = isMixed || followed.contains(use->getOwner());
    auto removed = llvm::count(merges, factors); // the others become finer
    if (throughMoves && !(isBatch && passesMoves))
      return false;
    return !isMixed && removed > static_cast<int64_t>(entries.size() + leaving.size());
  }

  /// Rewrites the region; calls `erased` for every erased op.
  void split(llvm::function_ref<void(Operation *)> erased) {
    for (Operation *op : followed)
      rewriteBehindOperands(op);
    for (auto &[value, uses] : leaving) {
      Value made = replacementOf(value);
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(made);
      Value merged = tensor::CollapseShapeOp::create(builder, value.getLoc(), value.getType(), made,
                                                     splitGroups(value));
      for (OpOperand *use : uses)
        use->set(merged);
    }
    for (Operation *op : llvm::reverse(rewritten)) {
      assert(op->use_empty() && "every user was rewritten");
      erased(op);
      op->erase();
    }
  }

private:
  //===--------------------------------------------------------------------===//
  // Collecting the region
  //===--------------------------------------------------------------------===//

  void follow(Dim dim) {
    if (seen.insert(dim))
      work.push_back(dim);
    SmallVector<int64_t> &dims = dimsOf[dim.first];
    if (!llvm::is_contained(dims, dim.second)) {
      dims.push_back(dim.second);
      llvm::sort(dims);
    }
  }

  /// Follows a loop of an op through all its tensors; false if the loop cannot be split.
  bool followLoop(linalg::LinalgOp op, int64_t loop) {
    auto [known, isNew] = canFollow.try_emplace({op, loop}, false);
    if (isNew)
      known->second = tryLoop(op, loop);
    return known->second;
  }

  bool tryLoop(linalg::LinalgOp op, int64_t loop) {
    if (!canSplitLoop(op, loop))
      return false;
    followed.insert(op);
    isBatch = isBatch && llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
                return op.getNumReductionLoops() == 0 || op.getNumDpsInputs() == 1 ||
                       op.getMatchingIndexingMap(input).isFunctionOfDim(loop);
              });
    auto &loops = loopsOf[op];
    if (!llvm::is_contained(loops, loop))
      loops.push_back(loop);
    auto add = [&](Value value, AffineMap map) {
      for (auto [d, expr] : llvm::enumerate(map.getResults()))
        if (expr == getAffineDimExpr(loop, op.getContext()))
          follow({value, static_cast<int64_t>(d)});
    };
    for (OpOperand &operand : op->getOpOperands())
      add(operand.get(), op.getMatchingIndexingMap(&operand));
    for (OpResult result : op->getResults())
      add(result, op.getIndexingMapMatchingResult(result));
    return true;
  }

  /// Follows a dimension of a result or operand of a linalg op.
  bool followMap(linalg::LinalgOp op, AffineMap map, int64_t dim) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    return loop && followLoop(op, loop.getPosition());
  }

  /// Follows a dimension through a reshape, or adds the reshape to the border.
  void followReshape(const Reshape &reshape, Value value, int64_t dim) {
    bool isSmall = value == reshape.small;
    int64_t group = isSmall ? dim : reshape.groupOf(dim);
    SmallVector<int64_t> dims = reshape.longDims(group);
    if (dims.size() == 1) {
      followed.insert(reshape.op);
      follow({isSmall ? reshape.large : reshape.small, isSmall ? dims.front() : group});
      return;
    }
    if (isSmall) {
      if (followed.insert(reshape.op))
        merges.push_back(reshape.longExtents(group));
      return;
    }
    // Reshapes that merge or split further dimensions use the factors instead.
    followed.insert(reshape.op);
  }

  /// The factors are the coarsest common refinement of all reshapes at the border:
  ///   (b, kv, g) -> 64 -> (b, h)    b, kv, g
  void refine() {
    std::set<int64_t> ends; // of factors, counted from the outermost
    for (ArrayRef<int64_t> merge : merges)
      for (int64_t end = 1; int64_t extent : merge)
        ends.insert(end *= extent);
    int64_t last = 1;
    for (int64_t end : ends) {
      if (end % last != 0)
        return factors.clear();
      factors.push_back(end / last);
      last = end;
    }
  }

  /// Follows a dimension through an op that moves elements along others.
  bool followMove(Operation *op, int64_t dim) {
    if (!throughMoves || !movesAlongOthers(op, dim))
      return false;
    passesMoves = true;
    followed.insert(op);
    follow({op->getResult(0), dim});
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        follow({operand, dim});
    return true;
  }

  void visitProducer(Dim dim) {
    auto [value, index] = dim;
    Operation *op = value.getDefiningOp();
    if (followMove(op, index))
      return;
    if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op)) {
      OpResult result = cast<OpResult>(value);
      if (followMap(linalgOp, linalgOp.getIndexingMapMatchingResult(result), index))
        return;
    } else if (std::optional<Reshape> reshape = reshapeOf(op)) {
      return followReshape(*reshape, value, index);
    }
    bool isRemade = isa_and_nonnull<arith::ConstantOp, tensor::EmptyOp>(op) && !isAnnotated(op);
    (isRemade ? remade : entries).insert(value);
  }

  void visitUse(OpOperand &use, Dim dim) {
    auto [value, index] = dim;
    Operation *op = use.getOwner();
    if (followMove(op, index))
      return;
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (followMap(linalgOp, linalgOp.getMatchingIndexingMap(&use), index))
        return;
    } else if (std::optional<Reshape> reshape = reshapeOf(op)) {
      return followReshape(*reshape, value, index);
    }
    SmallVector<OpOperand *> &uses = leaving[value];
    if (!llvm::is_contained(uses, &use))
      uses.push_back(&use);
  }

  //===--------------------------------------------------------------------===//
  // Rewriting it
  //===--------------------------------------------------------------------===//

  bool isSplit(Value value, int64_t dim) const { return seen.contains({value, dim}); }

  /// By dimension of a value, its dimensions after the split.
  Groups splitGroups(Value value) const {
    Groups groups;
    int64_t next = 0;
    for (int64_t d = 0; d < cast<RankedTensorType>(value.getType()).getRank(); ++d) {
      int64_t parts = isSplit(value, d) ? std::ssize(factors) : 1;
      groups.emplace_back(llvm::to_vector(llvm::seq(next, next + parts)));
      next += parts;
    }
    return groups;
  }

  RankedTensorType splitType(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (isSplit(value, d))
        shape.append(factors);
      else
        shape.push_back(type.getDimSize(d));
    return type.clone(shape);
  }

  /// Rewrites an op after its operands.
  void rewriteBehindOperands(Operation *op) {
    SmallVector<Operation *> stack{op};
    while (!stack.empty()) {
      Operation *top = stack.back();
      if (done.contains(top)) {
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      for (Value operand : top->getOperands())
        if (Operation *made = operand.getDefiningOp();
            made && followed.contains(made) && !done.contains(made))
          stack.push_back(made);
      if (stack.size() > before)
        continue;
      rewrite(top);
      done.insert(top);
      rewritten.push_back(top);
      stack.pop_back();
    }
  }

  /// The value with the dimension split; values without it stay as they are.
  Value replacementOf(Value value) {
    if (!dimsOf.contains(value))
      return value;
    Value &made = replacement[value];
    if (made)
      return made;
    RankedTensorType type = splitType(value);
    if (remade.contains(value))
      return made = remake(value, type);
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    return made = tensor::ExpandShapeOp::create(builder, value.getLoc(), type, value,
                                                splitGroups(value));
  }

  /// A constant, or an empty tensor, in another shape.
  static Value remake(Value value, RankedTensorType type) {
    Operation *op = value.getDefiningOp();
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return arith::ConstantOp::create(builder, op->getLoc(),
                                       cast<DenseElementsAttr>(constant.getValue()).reshape(type));
    return tensor::EmptyOp::create(builder, op->getLoc(), type.getShape(), type.getElementType());
  }

  /// The operand of an op that splits loops.
  Value replacementOf(OpOperand &operand, linalg::LinalgOp op) {
    if (!remade.contains(operand.get()))
      return replacementOf(operand.get());
    SmallVector<int64_t> shape;
    auto type = cast<RankedTensorType>(operand.get().getType());
    for (auto [extent, expr] :
         llvm::zip_equal(type.getShape(), op.getMatchingIndexingMap(&operand).getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (loop && isSplitLoop(op, loop.getPosition()))
        shape.append(factors);
      else
        shape.push_back(extent);
    }
    return remake(operand.get(), type.clone(shape));
  }

  void rewrite(Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return replace(op, rewriteLinalg(linalgOp)->getResults());
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      return replace(op, rewriteMove(op));
    Reshape reshape = *reshapeOf(op);
    replace(op, rewriteReshape(reshape));
  }

  /// Results with the dimension are also split in their users; others do not change.
  void replace(Operation *op, ValueRange made) {
    for (auto [old, result] : llvm::zip(op->getResults(), made))
      if (dimsOf.contains(old))
        replacement[old] = result;
      else
        old.replaceAllUsesWith(result);
  }

  /// The range of factors in a dimension of the larger tensor of a reshape; empty if it is not part
  /// of the split dimension.
  std::pair<int64_t, int64_t> factorsOf(const Reshape &reshape, int64_t dim) const {
    if (isSplit(reshape.large, dim))
      return {0, std::ssize(factors)};
    int64_t group = reshape.groupOf(dim), extent = reshape.shape()[dim];
    if (!isSplit(reshape.small, group) || extent == 1)
      return {0, 0};
    int64_t before = 1, at = 1, first = 0;
    for (int64_t other : reshape.groups[group])
      before *= other < dim ? reshape.shape()[other] : 1;
    while (at < before)
      at *= factors[first++];
    int64_t last = first;
    while (at < before * extent)
      at *= factors[last++];
    return {first, last};
  }

  /// The groups of a reshape after the dimension is split on both sides.
  Groups groupsOf(const Reshape &reshape) const {
    Groups result;
    int64_t next = 0;
    for (auto [small, group] : llvm::enumerate(reshape.groups)) {
      bool splitsSmall = isSplit(reshape.small, static_cast<int64_t>(small));
      result.emplace_back();
      bool isFirst = true; // of the parts of a split dimension; those of extent 1 stay merged
      for (int64_t dim : group) {
        auto [begin, end] = factorsOf(reshape, dim);
        for (int64_t part = begin; part < std::max(end, begin + 1); ++part) {
          if (splitsSmall && reshape.shape()[dim] != 1) {
            if (!isFirst)
              result.emplace_back();
            isFirst = false;
          }
          result.back().push_back(next++);
        }
      }
    }
    return result;
  }

  /// The reshape after the dimension is split; its operand if nothing remains.
  Value rewriteReshape(const Reshape &reshape) {
    OpBuilder builder(reshape.op);
    Location loc = reshape.op->getLoc();
    auto changes = [](const Groups &groups) {
      return llvm::any_of(groups, [](auto &group) { return group.size() != 1; });
    };
    // Dimensions of the larger tensor with several factors are split separately.
    Groups finer, groups = groupsOf(reshape);
    SmallVector<int64_t> shape;
    for (auto [dim, extent] : llvm::enumerate(reshape.shape())) {
      auto [begin, end] = factorsOf(reshape, static_cast<int64_t>(dim));
      bool isSplitAlready = isSplit(reshape.large, static_cast<int64_t>(dim));
      for (int64_t part = begin; part < std::max(end, begin + 1); ++part) {
        if (part == begin || isSplitAlready)
          finer.emplace_back();
        finer.back().push_back(std::ssize(shape));
        shape.push_back(end > begin ? factors[part] : extent);
      }
    }
    auto type = cast<RankedTensorType>(reshape.large.getType()).clone(shape);
    Value value = replacementOf(reshape.op->getOperand(0));
    if (isa<tensor::CollapseShapeOp>(reshape.op)) {
      if (changes(finer))
        value = tensor::ExpandShapeOp::create(builder, loc, type, value, finer);
      if (changes(groups))
        value = tensor::CollapseShapeOp::create(builder, loc, value, groups);
      return value;
    }
    if (changes(groups))
      value = tensor::ExpandShapeOp::create(builder, loc, type, value, groups);
    if (changes(finer))
      value = tensor::CollapseShapeOp::create(builder, loc, value, finer);
    return value;
  }

  Operation *rewriteLinalg(linalg::LinalgOp op) {
    SmallVector<Value> inputs, inits;
    for (OpOperand *input : op.getDpsInputOperands())
      inputs.push_back(replacementOf(*input, op));
    for (OpOperand &init : op.getDpsInitsMutable())
      inits.push_back(replacementOf(init, op));
    return splitLoops(
        op, [&](int64_t loop) { return isSplitLoop(op, loop); }, factors, inputs, inits);
  }

  /// A move with the split dimensions in its tensors.
  Value rewriteMove(Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value result = op->getResult(0);
    RankedTensorType type = splitType(result);
    // By new dimension: what the move has for the old one; for parts of a split one `whole`.
    auto spread = [&](ArrayRef<int64_t> old, ArrayRef<int64_t> whole) {
      SmallVector<int64_t> spreadOut;
      for (auto [d, entry] : llvm::enumerate(old))
        if (isSplit(result, static_cast<int64_t>(d)))
          spreadOut.append(whole.begin(), whole.end());
        else
          spreadOut.push_back(entry);
      return getAsIndexOpFoldResult(b.getContext(), spreadOut);
    };
    SmallVector<int64_t> zeros(factors.size(), 0), ones(factors.size(), 1);
    auto newDim = [&](int64_t dim) { return splitGroups(result)[dim].front(); };
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return tensor::ExtractSliceOp::create(
          b, loc, type, replacementOf(slice.getSource()), spread(slice.getStaticOffsets(), zeros),
          spread(slice.getStaticSizes(), factors), spread(slice.getStaticStrides(), ones));
    if (auto pad = dyn_cast<tensor::PadOp>(op)) {
      Attribute fill;
      Value padding = pad.getConstantPaddingValue();
      if (matchPattern(padding, m_Constant(&fill)))
        padding = arith::ConstantOp::create(b, loc, cast<TypedAttr>(fill));
      return tensor::PadOp::create(b, loc, type, replacementOf(pad.getSource()),
                                   spread(pad.getStaticLow(), zeros),
                                   spread(pad.getStaticHigh(), zeros), padding);
    }
    auto operands = llvm::map_to_vector(op->getOperands(),
                                        [&](Value operand) { return replacementOf(operand); });
    if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      return tensor::ConcatOp::create(b, loc, type, newDim(concat.getDim()), operands);
    auto rearrange = cast<RearrangeOp>(op);
    return RearrangeOp::create(b, loc, type, operands, newDim(rearrange.getDim()),
                               rearrange.getSegments(), rearrange.getFillAttr());
  }

  bool isSplitLoop(linalg::LinalgOp op, int64_t loop) const {
    return llvm::is_contained(loopsOf.find(op)->second, loop);
  }

  bool throughMoves;
  bool passesMoves = false;
  bool isBatch = true;                      ///< whether products have the dimension in all operands
  SmallVector<SmallVector<int64_t>> merges; ///< extents, of each reshape that merges or splits it
  SmallVector<int64_t> factors;             ///< extents after the split
  llvm::SetVector<Dim> seen;
  SmallVector<Dim> work;
  llvm::DenseMap<Value, SmallVector<int64_t>> dimsOf;              // looked up only
  llvm::DenseMap<std::pair<Operation *, int64_t>, bool> canFollow; // looked up only
  llvm::SetVector<Operation *> followed;                           ///< ops that split the dimension
  llvm::DenseMap<Operation *, SmallVector<int64_t>> loopsOf;       // looked up only
  llvm::SetVector<Value> entries, remade;                          ///< computed outside
  llvm::MapVector<Value, SmallVector<OpOperand *>> leaving;        ///< uses that need it merged
  llvm::DenseMap<Value, Value> replacement;                        // looked up only
  llvm::DenseSet<Operation *> done;                                // looked up only
  SmallVector<Operation *> rewritten; ///< in the order of their operands
};

} // namespace

/// Tries every merge of a function once; whether any is split.
static bool splitEach(func::FuncOp function) {
  llvm::SetVector<Operation *> collapses;
  llvm::DenseSet<MergedDim::Dim> kept[2]; // by whether through moves; looked up only
  function.walk([&](tensor::CollapseShapeOp op) { collapses.insert(op); });
  bool changed = false;
  auto split = [&](Operation *op) {
    std::optional<Reshape> reshape = reshapeOf(op);
    for (int64_t group = 0; reshape && group < std::ssize(reshape->groups); ++group) {
      if (reshape->longDims(group).size() < 2)
        continue;
      for (bool throughMoves : {false, true}) {
        if (kept[throughMoves].contains({reshape->small, group}))
          continue;
        MergedDim merged(*reshape, group, throughMoves);
        if (merged.isWorthSplitting()) {
          merged.split([&](Operation *gone) { collapses.remove(gone); });
          changed = true;
          return;
        }
        kept[throughMoves].insert(merged.members().begin(), merged.members().end());
      }
    }
  };
  while (!collapses.empty()) {
    Operation *op = collapses.back();
    split(op);
    collapses.remove(op);
  }
  return changed;
}

void dist::splitMergedDims(func::FuncOp function) {
  // A reshape may merge more than once; every round leaves fewer of them.
  while (splitEach(function))
    ;
}
