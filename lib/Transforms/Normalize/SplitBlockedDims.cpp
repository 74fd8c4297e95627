//===- SplitBlockedDims.cpp - Products with results of equal blocks -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Starting at a dimension that is sliced into blocks, or concatenated from blocks,
// a region collects the values with this dimension, along the loops of linalg ops,
// up to the next product. Its border consists of the slices and concatenations, the
// operands of products and smaller operands (weights, biases), and the results of
// products and sums of its values (their gradients). A region with another border
// is left as it is.
//
//===----------------------------------------------------------------------===//

#include "SplitBlockedDims.h"

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
  bool isComplete() const { return isClosed && !entries.empty(); }
  bool contains(Dim dim) const {
    auto found = members.find(dim.first);
    return found != members.end() && found->second == dim.second;
  }
  const llvm::MapVector<Value, int64_t> &operandsOfProducts() const { return entries; }

  /// Elements sent if devices have contiguous parts. Slices are sent one by one, which costs the
  /// busiest device about twice as much as one exchange.
  int64_t elementsOfBlocks() const {
    int64_t elements = 0;
    for (Value value : sliced)
      elements += 2 * cast<RankedTensorType>(value.getType()).getNumElements();
    for (tensor::ConcatOp op : concats)
      elements += op.getResultType().getNumElements();
    return elements;
  }
  int64_t elementsOfBlock() const { return extent; } ///< along the dimension
  int64_t elementsLeaving() const {
    int64_t elements = 0;
    for (auto [value, dim] : leaving)
      elements += cast<RankedTensorType>(value.getType()).getNumElements();
    return elements;
  }

  /// Rewrites the region; `split` has the operands split before.
  void rewrite(llvm::DenseMap<Dim, Value> &split) {
    SmallVector<Operation *> ordered;
    Operation *function =
        sliced.empty() ? concats.front()->getParentOfType<func::FuncOp>() : outer(sliced.front());
    function->walk([&](Operation *op) {
      if (loopOf.contains(op) || others.contains(op))
        ordered.push_back(op);
    });
    for (Operation *op : ordered)
      rewriteOp(op, split);
    for (Operation *op : llvm::reverse(ordered))
      op->erase();
  }

private:
  static Operation *outer(Value value) {
    return value.getParentRegion()->getParentOfType<func::FuncOp>();
  }

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
      std::optional<Blocks> blocks = blocksOf(concat);
      isClosed = isClosed && blocks && blocks->dim == dim && blocks->count == count;
      concats.push_back(concat);
      others.insert(op);
    } else if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op)) {
      followMap(linalgOp, linalgOp.getIndexingMapMatchingResult(cast<OpResult>(value)), index);
    } else {
      isClosed = false;
    }
  }

  void visitUse(OpOperand &use, Dim dim) {
    Operation *op = use.getOwner();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      std::optional<Blocks> blocks = blocksOf(slice);
      isClosed = isClosed && blocks && blocks->dim == dim && blocks->count == count;
      sliced.insert(dim.first);
      others.insert(op);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      followMap(linalgOp, linalgOp.getMatchingIndexingMap(&use), dim.second);
    } else {
      isClosed = false;
    }
  }

  void findBorder() {
    for (auto &[op, loop] : loopOf)
      forEachDim(cast<linalg::LinalgOp>(op), loop, [&](Value value, int64_t dim, bool isOperand) {
        if (members.contains(value))
          isClosed = isClosed && contains({value, dim});
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

  /// The reassociation between a tensor of `rank` dimensions and one with the blocks at `dim`.
  static SmallVector<ReassociationIndices> groupsOf(int64_t rank, int64_t dim) {
    SmallVector<ReassociationIndices> groups;
    for (int64_t d = 0; d < rank; ++d) {
      groups.push_back({d + (d > dim)});
      if (d == dim)
        groups.back().push_back(d + 1);
    }
    return groups;
  }

  void mark(Operation *op) const { op->setAttr(kBlocks, UnitAttr::get(op->getContext())); }

  /// A value with the dimension split.
  Value splitValue(Dim dim, llvm::DenseMap<Dim, Value> &split) {
    if (Value known = replacement.lookup(dim.first))
      return known;
    bool isNew = isRemade(dim.first); // computed for each reader
    Value &made = isNew ? remade[dim.first] : split[dim];
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
                                           groupsOf(type.getRank() - 1, dim.second));
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
            groupsOf(cast<RankedTensorType>(old.getType()).getRank(), leaving.lookup(old)));
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
    op.replaceAllUsesWith(tensor::CollapseShapeOp::create(builder, op.getLoc(), op.getType(), block,
                                                          groupsOf(op.getType().getRank(), dim))
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
                                                     groupsOf(std::ssize(shape) - 1, dim)));
    }
    replacement[op.getResult()] = tensor::ConcatOp::create(
        builder, op.getLoc(), splitType({op.getResult(), dim}), dim, inputs);
  }

  int64_t count, extent;
  bool isClosed = true;
  llvm::MapVector<Value, int64_t> members, entries, leaving; ///< with the dimension of each
  SmallVector<Dim> work;
  llvm::MapVector<Operation *, int64_t> loopOf; ///< of linalg ops that run over it
  llvm::SetVector<Value> sliced;
  SmallVector<tensor::ConcatOp> concats;
  llvm::DenseSet<Operation *> others;               // slices and concatenations, looked up only
  llvm::DenseMap<Value, Value> replacement, remade; // looked up only
};

/// The number of devices over which an argument is cut along a dimension; 1 for whole and other
/// values.
int64_t partsOf(Dim dim, const MeshTable &meshes) {
  for (int steps = 0; steps < 8; ++steps) {
    auto [value, index] = dim;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
        if (OpOperand *init = loop.getTiedLoopInit(argument)) {
          dim.first = init->get();
          continue;
        }
        return 1;
      }
      ShardingAttr sharding = getSharding(value);
      if (!sharding || !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
        return 1;
      sharding::TensorSharding given = resolveVerified(sharding, meshes, value.getType());
      return sharding::sizeOf(given.dims[index]);
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
        return 1;
      dim = {linalgOp.getDpsInputs()[0], *read};
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ReassociationIndices group = collapse.getReassociationIndices()[index];
      auto isLong = [&](int64_t d) { return collapse.getSrcType().getDimSize(d) != 1; };
      if (llvm::count_if(group, isLong) != 1)
        return 1;
      dim = {collapse.getSrc(), *llvm::find_if(group, isLong)};
    } else {
      return 1;
    }
  }
  return 1;
}

} // namespace

void dist::splitBlockedDims(func::FuncOp function, const MeshTable &meshes, int64_t devices) {
  std::vector<std::unique_ptr<BlockRegion>> regions;
  auto add = [&](std::optional<Blocks> blocks) {
    if (!blocks ||
        llvm::any_of(regions, [&](auto &region) { return region->contains(blocks->dim); }))
      return;
    regions.push_back(std::make_unique<BlockRegion>(*blocks));
  };
  function.walk([&](Operation *op) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      add(blocksOf(slice));
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      add(blocksOf(concat));
  });
  llvm::erase_if(regions, [](auto &region) { return !region->isComplete(); });

  // Regions that read the same weight share the cost of its exchange.
  llvm::EquivalenceClasses<size_t> groups;
  llvm::DenseMap<Value, size_t> readers; // looked up only
  for (auto [index, region] : llvm::enumerate(regions)) {
    groups.insert(index);
    for (auto [value, dim] : region->operandsOfProducts())
      groups.unionSets(readers.try_emplace(value, index).first->second, index);
  }
  struct Total {
    llvm::SetVector<Dim> read;
    int64_t parts = 1, devices = 1;
    double moved = 0, leaving = 0;
  };
  llvm::MapVector<size_t, Total> totals;
  for (auto [index, region] : llvm::enumerate(regions)) {
    Total &total = totals[groups.getLeaderValue(index)];
    total.moved += static_cast<double>(region->elementsOfBlocks());
    total.leaving += static_cast<double>(region->elementsLeaving());
    for (auto [value, dim] : region->operandsOfProducts()) {
      total.read.insert({value, dim});
      total.parts = std::max(total.parts, partsOf({value, dim}, meshes));
    }
  }
  llvm::DenseMap<Dim, Value> split; // looked up only
  for (auto [index, region] : llvm::enumerate(regions)) {
    Total &total = totals[groups.getLeaderValue(index)];
    // A weight that is not cut needs no exchange; parts of blocks must be equal.
    if (total.parts == 1 || region->elementsOfBlock() % total.parts != 0)
      continue;
    double exchanged = total.leaving;
    for (auto [value, dim] : total.read)
      exchanged += static_cast<double>(cast<RankedTensorType>(value.getType()).getNumElements());
    // Assumes that the devices that do not cut the weight cut the batch.
    double others = static_cast<double>(devices) / static_cast<double>(total.parts);
    if (total.moved / others >= exchanged)
      region->rewrite(split);
  }
}
