//===- SplitBlockedDims.cpp - Products with results of equal blocks -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Starting at a dimension that is sliced into blocks, concatenated from blocks, or
// reshaped from or to blocks, a region collects the values with this dimension, along the loops of
// linalg ops, up to the next product. Its border consists of these ops, the operands of products
// and smaller operands (weights, biases), and the results of products and sums of its values (their
// gradients). A region with another border is left as it is.
//
// The blocks are made a dimension where they may be cut: where a cut reaches them by
// the loops of ops, from the weight itself or from what reads or makes the blocks.
//
//===----------------------------------------------------------------------===//

#include "SplitBlockedDims.h"

#include "ConnectedDims.h"
#include "PartOrder.h"
#include "SplitLoops.h"

#include "tessera/Dialect/Dist/Rules/BlockReshapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

using Dim = std::pair<Value, int64_t>;

/// Equal blocks along a dimension.
struct Blocks {
  Dim dim;
  int64_t count;
};

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The blocks of which a slice takes one.
std::optional<Blocks> blocksOf(tensor::ExtractSliceOp op) {
  if (isAnnotated(op) || op.getDroppedDims().any() || !op.getOffsets().empty() ||
      !op.getSizes().empty() || !op.getStrides().empty() ||
      llvm::any_of(op.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  std::optional<Blocks> found;
  for (auto [d, extent] : llvm::enumerate(op.getSourceType().getShape())) {
    int64_t size = op.getStaticSizes()[d];
    if (size == extent)
      continue;
    if (found || size == 0 || extent % size != 0 || op.getStaticOffsets()[d] % size != 0)
      return std::nullopt;
    found = {{op.getSource(), static_cast<int64_t>(d)}, extent / size};
  }
  return found;
}

/// The blocks that a concatenation joins.
std::optional<Blocks> blocksOf(tensor::ConcatOp op) {
  auto dim = static_cast<int64_t>(op.getDim());
  auto isEqual = [&](Value input) {
    return shapeOf(input)[dim] == shapeOf(op.getInputs()[0])[dim] && shapeOf(input)[dim] > 0;
  };
  if (isAnnotated(op) || op.getInputs().size() < 2 || !llvm::all_of(op.getInputs(), isEqual))
    return std::nullopt;
  return Blocks{{op.getResult(), dim}, static_cast<int64_t>(op.getInputs().size())};
}

/// The blocks that a reshape splits a dimension into, or joins: the outermost of several. With the
/// dimension behind them, of the tensor with more dimensions.
struct ReshapedBlocks : Blocks {
  Dim behind;
};

/// The reshaped blocks at a dimension of the tensor with fewer dimensions.
template <typename Reshape> std::optional<ReshapedBlocks> blocksOf(Reshape op, int64_t dim) {
  constexpr bool expands = std::is_same_v<Reshape, tensor::ExpandShapeOp>;
  Value large = expands ? op.getResult() : op.getSrc(),
        small = expands ? op.getSrc() : op.getResult();
  ReassociationIndices group = op.getReassociationIndices()[dim];
  int64_t count = shapeOf(large)[group[0]];
  if (isAnnotated(op) || group.size() < 2 || count < 2 || shapeOf(small)[dim] == count)
    return std::nullopt;
  return ReshapedBlocks{{{small, dim}, count}, {large, group[1]}};
}

/// The values that have a dimension of blocks.
class BlockRegion {
public:
  explicit BlockRegion(const Blocks &seed)
      : count(seed.count), extent(shapeOf(seed.dim.first)[seed.dim.second] / seed.count) {
    follow(seed.dim);
    while (isClosed && !work.empty()) {
      Dim dim = work.pop_back_val();
      visitProducer(dim);
      for (OpOperand &use : dim.first.getUses())
        visitUse(use, dim);
    }
    if (isClosed)
      findBorder();
  }

  /// Whether its border is valid.
  bool isComplete() const { return isClosed && (!entries.empty() || !leaving.empty()); }
  const llvm::MapVector<Value, int64_t> &getMembers() const { return members; }
  const llvm::MapVector<Value, int64_t> &operandsOfProducts() const { return entries; }
  const llvm::SetVector<Dim> &getPieces() const { return pieces; }

  /// Elements sent if devices have contiguous parts. Slices are sent one by one, which costs the
  /// busiest device about twice as much as one exchange.
  int64_t elementsOfBlocks() const {
    int64_t elements = 0;
    for (Value value : sliced)
      elements += 2 * cast<RankedTensorType>(value.getType()).getNumElements();
    for (Value value : joined)
      elements += cast<RankedTensorType>(value.getType()).getNumElements();
    return elements;
  }
  int64_t elementsOfBlock() const { return extent; } ///< along the dimension
  int64_t elementsLeaving() const {
    int64_t elements = 0;
    for (auto [value, dim] : leaving)
      elements += cast<RankedTensorType>(value.getType()).getNumElements();
    return elements;
  }

  /// Whether only reshapes make blocks of the dimension.
  bool isReshaped() const {
    return llvm::none_of(others, llvm::IsaPred<tensor::ExtractSliceOp, tensor::ConcatOp>);
  }

  /// Adds the ops that `rewrite` replaces to `ops`; returns whether none was there.
  bool claim(llvm::DenseSet<Operation *> &ops) const {
    auto isFree = [&](Operation *op) { return !ops.contains(op); };
    if (!llvm::all_of(others, isFree) || !llvm::all_of(llvm::make_first_range(loopOf), isFree))
      return false;
    ops.insert_range(others);
    ops.insert_range(llvm::make_first_range(loopOf));
    return true;
  }

  /// Rewrites the region; `split` has the operands split before, `whole` those that no device cuts.
  void rewrite(llvm::DenseMap<Dim, Value> &split, llvm::DenseSet<Dim> &whole) {
    kept = &whole;
    SmallVector<Operation *> ordered;
    Region *region = members.front().first.getParentRegion();
    region->getParentOfType<func::FuncOp>()->walk([&](Operation *op) {
      if (loopOf.contains(op) || others.contains(op))
        ordered.push_back(op);
    });
    for (Operation *op : ordered)
      rewriteOp(op, split);
    for (Operation *op : llvm::reverse(ordered)) {
      // Other regions must not find what is known of these values for new ones in their memory.
      for (Value result : op->getResults())
        for (int64_t d = 0; d < std::ssize(shapeOf(result)); ++d) {
          split.erase({result, d});
          whole.erase({result, d});
        }
      op->erase();
    }
  }

private:
  //===--------------------------------------------------------------------===//
  // Collecting
  //===--------------------------------------------------------------------===//

  void follow(Dim dim) {
    auto [known, isNew] = members.insert(dim);
    if (isNew)
      work.push_back(dim);
    else if (known->second != dim.second)
      isClosed = false; // in one value twice
  }

  void addBorder(const std::optional<Blocks> &blocks, Dim dim, Operation *op) {
    isClosed = isClosed && blocks && blocks->dim == dim && blocks->count == count;
    others.insert(op);
  }

  bool addReshape(const std::optional<ReshapedBlocks> &blocks, Dim dim, Operation *op) {
    addBorder(blocks, dim, op);
    if (blocks)
      pieces.insert(blocks->behind);
    return blocks.has_value();
  }

  static bool sums(linalg::LinalgOp op) { return op.getNumReductionLoops() > 0; }

  /// Adds an op that iterates over the dimension in `loop`.
  void include(linalg::LinalgOp op, int64_t loop) {
    auto [known, isNew] = loopOf.try_emplace(op, loop);
    if (!isNew || !canSplitLoop(op, loop)) {
      isClosed = isClosed && known->second == loop && canSplitLoop(op, loop);
      return;
    }
    if (sums(op))
      return;
    // Operands as large as the result have the dimension, too; the others are at the border.
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    forEachDim(op, loop, [&](Value value, int64_t dim, bool isOperand) {
      auto type = cast<RankedTensorType>(value.getType());
      if (!isOperand || (type.getNumElements() == result.getNumElements() && !isRemade(value)))
        follow({value, dim});
    });
  }

  /// Calls with every operand and result of an op that has a loop.
  static void forEachDim(linalg::LinalgOp op, int64_t loop,
                         llvm::function_ref<void(Value, int64_t, bool)> visit) {
    auto visitMap = [&](Value value, AffineMap map, bool isOperand) {
      for (auto [d, expr] : llvm::enumerate(map.getResults()))
        if (expr == getAffineDimExpr(loop, op.getContext()))
          visit(value, static_cast<int64_t>(d), isOperand);
    };
    for (OpOperand &operand : op->getOpOperands())
      visitMap(operand.get(), op.getMatchingIndexingMap(&operand), true);
    for (OpResult result : op->getResults())
      visitMap(result, op.getIndexingMapMatchingResult(result), false);
  }

  static bool isRemade(Value value) {
    Operation *op = value.getDefiningOp();
    return isa_and_nonnull<arith::ConstantOp, tensor::EmptyOp>(op) && !isAnnotated(op);
  }

  /// Follows a dimension along a loop.
  void followMap(linalg::LinalgOp op, AffineMap map, int64_t dim) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    if (loop)
      include(op, loop.getPosition());
    else
      isClosed = false;
  }

  void visitProducer(Dim dim) {
    auto [value, index] = dim;
    Operation *op = value.getDefiningOp();
    if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op)) {
      addBorder(blocksOf(concat), dim, op);
      for (Value input : concat.getInputs())
        pieces.insert({input, index});
      joined.insert(value);
    } else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
      if (addReshape(blocksOf(collapse, index), dim, op))
        joined.insert(value);
    } else if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op)) {
      followMap(linalgOp, linalgOp.getIndexingMapMatchingResult(cast<OpResult>(value)), index);
    } else {
      isClosed = false;
    }
  }

  void visitUse(OpOperand &use, Dim dim) {
    Operation *op = use.getOwner();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      addBorder(blocksOf(slice), dim, op);
      sliced.insert(dim.first);
      pieces.insert({slice.getResult(), dim.second});
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      if (addReshape(blocksOf(expand, dim.second), dim, op))
        joined.insert(dim.first);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      followMap(linalgOp, linalgOp.getMatchingIndexingMap(&use), dim.second);
    } else {
      isClosed = false;
    }
  }

  void findBorder() {
    for (auto &[op, loop] : loopOf)
      forEachDim(cast<linalg::LinalgOp>(op), loop, [&](Value value, int64_t dim, bool isOperand) {
        if (auto known = members.find(value); known != members.end())
          isClosed = isClosed && known->second == dim;
        else if (!isOperand)
          leaving.insert({value, dim});
        else if (!isRemade(value))
          entries.insert({value, dim});
      });
  }

  //===--------------------------------------------------------------------===//
  // Rewriting
  //===--------------------------------------------------------------------===//

  RankedTensorType splitType(Dim dim) const {
    auto type = cast<RankedTensorType>(dim.first.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim.second] = extent;
    shape.insert(shape.begin() + dim.second, count);
    return type.clone(shape);
  }

  void mark(Operation *op) const { op->setAttr(kBlocks, UnitAttr::get(op->getContext())); }

  /// A value with the dimension split.
  Value splitValue(Dim dim, llvm::DenseMap<Dim, Value> &split) {
    if (Value known = replacement.lookup(dim.first))
      return known;
    bool isNew = isRemade(dim.first); // computed for each reader
    Value &made = isNew ? remade[dim] : split[dim];
    if (made)
      return made;
    OpBuilder builder(dim.first.getContext());
    builder.setInsertionPointAfterValue(dim.first);
    RankedTensorType type = splitType(dim);
    Location loc = dim.first.getLoc();
    if (auto constant = dim.first.getDefiningOp<arith::ConstantOp>(); constant && isNew) {
      auto value = cast<DenseElementsAttr>(constant.getValue());
      made = arith::ConstantOp::create(builder, loc, value.reshape(type));
    } else if (isNew) {
      made = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    } else {
      made = tensor::ExpandShapeOp::create(builder, loc, type, dim.first,
                                           groupsOfSplit(type.getRank() - 1, dim.second));
      if (!kept->contains(dim)) // of a whole value a device has all of its blocks
        mark(made.getDefiningOp());
    }
    return made;
  }

  void rewriteOp(Operation *op, llvm::DenseMap<Dim, Value> &split) {
    OpBuilder builder(op);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return rewriteSlice(builder, slice);
    if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      return rewriteConcat(builder, concat);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return rewriteExpand(builder, expand);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      return rewriteCollapse(builder, collapse);
    auto linalgOp = cast<linalg::LinalgOp>(op);
    int64_t loop = loopOf.lookup(op);
    llvm::DenseMap<Value, int64_t> dims; // looked up only
    forEachDim(linalgOp, loop, [&](Value value, int64_t dim, bool) { dims[value] = dim; });
    auto operandsOf = [&](ValueRange values) {
      return llvm::map_to_vector(values, [&](Value value) {
        return dims.contains(value) ? splitValue({value, dims[value]}, split) : value;
      });
    };
    SmallVector<Value> inputs = operandsOf(linalgOp.getDpsInputs()),
                       inits = operandsOf(linalgOp.getDpsInits());
    Operation *made =
        splitLoops(linalgOp, [&](int64_t l) { return l == loop; }, {count, extent}, inputs, inits);
    for (auto [old, result] : llvm::zip_equal(op->getResults(), made->getResults())) {
      if (members.contains(old)) {
        replacement[old] = result;
      } else if (leaving.contains(old)) {
        auto merged = tensor::CollapseShapeOp::create(
            builder, op->getLoc(), cast<RankedTensorType>(old.getType()), result,
            groupsOfSplit(cast<RankedTensorType>(old.getType()).getRank(), leaving.lookup(old)));
        mark(merged);
        old.replaceAllUsesWith(merged);
      } else {
        old.replaceAllUsesWith(result);
      }
    }
  }

  void rewriteSlice(OpBuilder &builder, tensor::ExtractSliceOp op) {
    auto [value, dim] = blocksOf(op)->dim;
    SmallVector<OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
                              strides = op.getMixedStrides();
    offsets[dim] = builder.getIndexAttr(0);
    offsets.insert(offsets.begin() + dim,
                   builder.getIndexAttr(op.getStaticOffsets()[dim] / extent));
    sizes.insert(sizes.begin() + dim, builder.getIndexAttr(1));
    strides.insert(strides.begin() + dim, builder.getIndexAttr(1));
    Value block = tensor::ExtractSliceOp::create(builder, op.getLoc(), replacement.lookup(value),
                                                 offsets, sizes, strides);
    op.replaceAllUsesWith(
        tensor::CollapseShapeOp::create(builder, op.getLoc(), op.getType(), block,
                                        groupsOfSplit(op.getType().getRank(), dim))
            .getResult());
  }

  void rewriteConcat(OpBuilder &builder, tensor::ConcatOp op) {
    auto dim = static_cast<int64_t>(op.getDim());
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      SmallVector<int64_t> shape(shapeOf(input));
      shape.insert(shape.begin() + dim, 1);
      inputs.push_back(tensor::ExpandShapeOp::create(builder, op.getLoc(),
                                                     op.getResultType().clone(shape), input,
                                                     groupsOfSplit(std::ssize(shape) - 1, dim)));
    }
    replacement[op.getResult()] = tensor::ConcatOp::create(
        builder, op.getLoc(), splitType({op.getResult(), dim}), dim, inputs);
  }

  /// The groups of a reshape between the blocks and what is behind them, which are `group` of it
  /// without the first dimension.
  static SmallVector<ReassociationIndices> groupsBehind(ArrayRef<ReassociationIndices> groups,
                                                        int64_t dim) {
    SmallVector<ReassociationIndices> result(groups);
    result.insert(result.begin() + dim, {groups[dim].front()});
    result[dim + 1].erase(result[dim + 1].begin());
    return result;
  }

  void rewriteExpand(OpBuilder &builder, tensor::ExpandShapeOp op) {
    Value blocks = replacement.lookup(op.getSrc());
    if (blocks.getType() != op.getType())
      blocks = tensor::ExpandShapeOp::create(
          builder, op.getLoc(), op.getResultType(), blocks,
          groupsBehind(op.getReassociationIndices(), members.lookup(op.getSrc())));
    op.replaceAllUsesWith(blocks);
  }

  void rewriteCollapse(OpBuilder &builder, tensor::CollapseShapeOp op) {
    int64_t dim = members.lookup(op.getResult());
    RankedTensorType type = splitType({op.getResult(), dim});
    Value blocks = op.getSrc();
    if (blocks.getType() != type)
      blocks = tensor::CollapseShapeOp::create(builder, op.getLoc(), type, blocks,
                                               groupsBehind(op.getReassociationIndices(), dim));
    replacement[op.getResult()] = blocks;
  }

  int64_t count, extent;
  bool isClosed = true;
  llvm::MapVector<Value, int64_t> members, entries, leaving; ///< with the dimension of each
  SmallVector<Dim> work;
  llvm::MapVector<Operation *, int64_t> loopOf; ///< of linalg ops that run over it
  llvm::SetVector<Value> sliced, joined;        ///< `joined`: by concatenations and reshapes
  llvm::SetVector<Dim> pieces;                  ///< the dimensions of blocks beyond the border
  llvm::DenseSet<Operation *> others;           // of the border, looked up only
  llvm::DenseMap<Value, Value> replacement;     // looked up only
  llvm::DenseMap<Dim, Value> remade;            // looked up only
  const llvm::DenseSet<Dim> *kept = nullptr;
};

/// How the argument behind a value is cut along a dimension.
struct Cut {
  int64_t parts = 1;  ///< devices; 1 for whole and other values
  bool isOpen = true; ///< whether propagation may cut it
};

Cut cutOf(Dim dim, const MeshTable &meshes) {
  for (int steps = 0; steps < 8; ++steps) {
    auto [value, index] = dim;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
        if (OpOperand *init = loop.getTiedLoopInit(argument)) {
          dim.first = init->get();
          continue;
        }
        return {};
      }
      if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()))
        return {};
      ShardingAttr sharding = getSharding(value);
      if (!sharding)
        return {};
      sharding::TensorSharding given = resolveVerified(sharding, meshes, value.getType());
      return {sharding::sizeOf(given.dims[index]), !given.open.empty()};
    }
    Operation *op = value.getDefiningOp();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      llvm::SmallBitVector dropped = slice.getDroppedDims();
      int64_t source = -1;
      for (int64_t kept = -1; kept < index;)
        kept += !dropped[++source];
      dim = {slice.getSource(), source};
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
               linalgOp && linalgOp.getNumDpsInputs() == 1) {
      AffineExpr loop =
          linalgOp.getIndexingMapMatchingResult(cast<OpResult>(value)).getResult(index);
      AffineMap map = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInputOperand(0));
      std::optional<unsigned> read = map.getResultPosition(loop);
      if (!read)
        return {};
      dim = {linalgOp.getDpsInputs()[0], *read};
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ReassociationIndices group = collapse.getReassociationIndices()[index];
      auto isLong = [&](int64_t d) { return collapse.getSrcType().getDimSize(d) != 1; };
      if (llvm::count_if(group, isLong) != 1)
        return {};
      dim = {collapse.getSrc(), *llvm::find_if(group, isLong)};
    } else {
      return {};
    }
  }
  return {};
}

} // namespace

void dist::splitBlockedDims(func::FuncOp function, const MeshTable &meshes) {
  std::vector<std::unique_ptr<BlockRegion>> regions;
  llvm::DenseSet<Dim> known; // looked up only
  auto add = [&](std::optional<Blocks> blocks) {
    if (!blocks || known.contains(blocks->dim))
      return;
    regions.push_back(std::make_unique<BlockRegion>(*blocks));
    for (Dim dim : regions.back()->getMembers())
      known.insert(dim);
  };
  function.walk([&](Operation *op) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      add(blocksOf(slice));
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      add(blocksOf(concat));
  });
  function.walk([&](Operation *op) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      for (int64_t d = 0; d < expand.getSrcType().getRank(); ++d)
        add(blocksOf(expand, d));
    else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      for (int64_t d = 0; d < collapse.getResultType().getRank(); ++d)
        add(blocksOf(collapse, d));
  });
  llvm::erase_if(regions, [](auto &region) { return !region->isComplete(); });
  if (regions.empty() || meshes.empty())
    return;
  std::optional<ConnectedDims> connected = ConnectedDims::of(function, meshes);
  if (!connected)
    return;

  // Regions that read the same weight share the cost of its exchange.
  llvm::EquivalenceClasses<size_t> groups;
  llvm::DenseMap<Value, size_t> readers; // looked up only
  for (auto [index, region] : llvm::enumerate(regions)) {
    groups.insert(index);
    for (auto [value, dim] : region->operandsOfProducts())
      groups.unionSets(readers.try_emplace(value, index).first->second, index);
  }
  struct Total {
    llvm::SetVector<Dim> read; ///< weights that are exchanged
    int64_t parts = 1;
    double moved = 0, leaving = 0, exchanged = 0; ///< elements; `exchanged`: of `read`
  };
  llvm::MapVector<size_t, Total> totals;
  llvm::DenseSet<Dim> whole; // looked up only
  for (auto [index, region] : llvm::enumerate(regions)) {
    Total &total = totals[groups.getLeaderValue(index)];
    total.moved += static_cast<double>(region->elementsOfBlocks());
    total.leaving += static_cast<double>(region->elementsLeaving());
    for (auto [value, dim] : region->operandsOfProducts()) {
      Cut cut = cutOf({value, dim}, meshes);
      if (cut.parts > 1 || cut.isOpen)
        total.read.insert({value, dim});
      else
        whole.insert({value, dim});
      total.parts = std::max(total.parts, cut.parts);
    }
    for (Dim piece : region->getPieces())
      total.parts = std::max(total.parts, connected->partsOf(piece));
  }
  for (auto &[leader, total] : totals)
    for (auto [value, dim] : total.read)
      total.exchanged +=
          static_cast<double>(cast<RankedTensorType>(value.getType()).getNumElements());
  // The parts of heads, say, are heads: of a reshaped dimension blocks are cut only if an
  // annotation does.
  auto hasCutPieces = [&](const BlockRegion &region) {
    return llvm::any_of(region.getPieces(), [&](Dim dim) { return connected->partsOf(dim) > 1; });
  };
  double devices = static_cast<double>(meshes.begin()->second.numDevices());
  llvm::DenseMap<Dim, Value> split;      // looked up only
  llvm::DenseSet<Operation *> rewritten; // looked up only
  for (auto [index, region] : llvm::enumerate(regions)) {
    Total &total = totals[groups.getLeaderValue(index)];
    // Blocks that nothing cuts need no exchange; parts of blocks must be equal.
    if (total.parts == 1 || region->elementsOfBlock() % total.parts != 0 ||
        (region->isReshaped() && !hasCutPieces(*region)))
      continue;
    // Assumes that the devices that do not cut the blocks cut the batch.
    double others = devices / static_cast<double>(total.parts);
    if (total.moved / others >= total.leaving + total.exchanged && region->claim(rewritten))
      region->rewrite(split, whole);
  }
}
