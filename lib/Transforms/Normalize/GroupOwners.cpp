//===- GroupOwners.cpp - Rows of groups where their matrices are ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Experts multiply each row by a matrix of its group, apply a nonlinear function, and
// multiply by another one:
//
//   h[r, f] = f(sum over g, k of select(group[r] == g, x[r, k] w[g, k, f], 0))
//   y[r, d] =   sum over g, f of select(group[r] == g, h[r, f] v[g, f, d], 0)
//
// If the groups are cut, the first sum is reduced before the function, although each row
// has all of it from one device, which also has the matrix of the second product. So
// groups are divided in parts p, one for each device, each of which computes with its own:
//
//   h[p, r, f] = f(sum over g, k of select(group[r] == P p + g, x[r, k] w[p, g, k, f], 0))
//   y[r, d]    = sum over p, g, f of select(group[r] == P p + g, h[p, r, f] v[p, g, f, d], 0)
//
// Rows of other parts are computed from zeros, whatever the function makes of them, and
// selected by none. The sums over parts alone are reduced. Likewise for gradients of the
// matrices, for rows that are looked up, and for what else is computed of single rows.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/GroupOwners.h"

#include "CutsBehind.h"
#include "ElementRanges.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A loop over groups, of which a row selects one.
struct GroupLoop {
  unsigned loop;
  OpOperand *index; ///< the groups of the rows
};

/// A value of each part: [part, ...].
struct Lifted {
  Value value;
  SmallVector<int64_t> rows; ///< dimensions of the value before, by that of the groups of the rows
  uint64_t sources = 0;      ///< a bit for each look-up or product that it is computed from
  Value reduced = {};        ///< the sum over parts, where it was needed
};

class GroupLifter {
public:
  GroupLifter(Value index, int64_t groups, FlatSymbolRefAttr mesh, sharding::AxisList axes,
              const MeshTable &meshes)
      : index(index), groups(groups), parts(sharding::sizeOf(axes)), mesh(mesh),
        axes(std::move(axes)), meshes(meshes) {}

  /// Returns whether a chain ends where rows select their groups again.
  bool run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    return hasEnd;
  }

private:
  void visit(Operation *op);
  bool visitGroups(linalg::GenericOp op, const GroupLoop &found);
  void liftPlain(linalg::LinalgOp op);
  void liftSlice(tensor::ExtractSliceOp op);
  std::optional<SmallVector<int64_t>> rowLoops(linalg::LinalgOp op);
  std::optional<SmallVector<int64_t>> rowsOf(linalg::LinalgOp op, ArrayRef<int64_t> loops);
  Value write(linalg::LinalgOp op, utils::IteratorType part, std::optional<unsigned> divided,
              RankedTensorType type, AffineMap result, Value init);
  Value divide(OpBuilder &b, Value value, int64_t dim);
  void reduceOperands(Operation *op);
  Value reduce(OpBuilder &b, const Lifted &value);
  Value uniform(OpBuilder &b, Value init, RankedTensorType type);

  bool isLifted(Value value) const { return lifted.contains(value); }
  bool readsLifted(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value value) { return isLifted(value); });
  }
  bool isCutByParts(Value value, int64_t dim) const {
    std::optional<Cuts> cuts = cutsBehind(value, meshes);
    return cuts && cuts->mesh == mesh && cuts->dims[dim] == axes;
  }
  RankedTensorType liftedType(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape{parts};
    llvm::append_range(shape, tensor.getShape());
    return RankedTensorType::get(shape, tensor.getElementType());
  }

  uint64_t sourcesOf(Operation *op) const {
    uint64_t sources = 0;
    for (Value operand : op->getOperands())
      if (auto it = lifted.find(operand); it != lifted.end())
        sources |= it->second.sources;
    return sources;
  }

  Value index;
  int64_t groups, parts;
  FlatSymbolRefAttr mesh;
  sharding::AxisList axes;
  const MeshTable &meshes;
  DenseMap<Value, Lifted> lifted; ///< looked up, never iterated
  int numSources = 0;
  bool hasEnd = false;
};

} // namespace

/// The only loop of an op over groups that rows select, without other conditions on its offset.
static std::optional<GroupLoop> groupLoopOf(linalg::GenericOp op) {
  if (!hasPlainMaps(op) || op->getNumResults() != 1 || !op.hasPureTensorSemantics())
    return std::nullopt;
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  if (selected.size() != 1 || !selected[0].offsets.empty())
    return std::nullopt;
  Value group = selected[0].index;
  while (Operation *cast = group.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::ExtSIOp>(cast))
      return std::nullopt;
    group = cast->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(group);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return std::nullopt;
  OpOperand *index = op.getDpsInputOperand(argument.getArgNumber());
  if (op.getMatchingIndexingMap(index).isFunctionOfDim(selected[0].loop) ||
      !getElementTypeOrSelf(index->get().getType()).isSignlessInteger() ||
      getElementTypeOrSelf(index->get().getType()).getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  return GroupLoop{selected[0].loop, index};
}

/// Whether the elements of two tensors are equal. A derivative may correct indices again that are
/// valid. Rewrites replace ops, so no ranges are kept.
static bool areEqual(Value a, Value b) {
  return a == b || ElementRanges().sourceOf(a) == ElementRanges().sourceOf(b);
}

/// Dimension `dim` as parts of consecutive groups.
Value GroupLifter::divide(OpBuilder &b, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> dims;
  for (auto [d, extent] : llvm::enumerate(type.getShape())) {
    dims.push_back({static_cast<int64_t>(shape.size())});
    shape.push_back(extent);
    if (static_cast<int64_t>(d) != dim)
      continue;
    shape.back() = parts;
    dims.back().push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(extent / parts);
  }
  return tensor::ExpandShapeOp::create(
      b, value.getLoc(), RankedTensorType::get(shape, type.getElementType()), value, dims);
}

/// An initial value that is the same everywhere, in another shape; null for others.
Value GroupLifter::uniform(OpBuilder &b, Value init, RankedTensorType type) {
  DenseElementsAttr constant;
  if (matchPattern(init, m_Constant(&constant)))
    return constant.isSplat()
               ? arith::ConstantOp::create(b, init.getLoc(), constant.resizeSplat(type)).getResult()
               : Value();
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Value empty = fill ? fill.getOutputs()[0] : init;
  if (!empty.getDefiningOp<tensor::EmptyOp>())
    return {};
  Value all = tensor::EmptyOp::create(b, init.getLoc(), type.getShape(), type.getElementType());
  return fill ? linalg::FillOp::create(b, init.getLoc(), fill.getInputs(), all).getResult(0) : all;
}

/// The loops over rows, which all lifted operands must have in common; nothing if they differ.
std::optional<SmallVector<int64_t>> GroupLifter::rowLoops(linalg::LinalgOp op) {
  std::optional<SmallVector<int64_t>> loops;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto it = lifted.find(operand->get());
    if (it == lifted.end())
      continue;
    SmallVector<int64_t> own;
    for (int64_t row : it->second.rows)
      own.push_back(op.getMatchingIndexingMap(operand).getDimPosition(row));
    if (loops && *loops != own)
      return std::nullopt;
    loops = std::move(own);
  }
  return loops;
}

/// The dimensions of the result that loops over rows have; nothing if one has none.
std::optional<SmallVector<int64_t>> GroupLifter::rowsOf(linalg::LinalgOp op,
                                                        ArrayRef<int64_t> loops) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> rows;
  for (int64_t loop : loops) {
    std::optional<unsigned> dim = map.getResultPosition(getAffineDimExpr(loop, op->getContext()));
    if (!dim)
      return std::nullopt;
    rows.push_back(*dim);
  }
  return rows;
}

/// Writes an op with a loop over parts in front of its own, of which `divided` is over the groups
/// of a part.
Value GroupLifter::write(linalg::LinalgOp op, utils::IteratorType part,
                         std::optional<unsigned> divided, RankedTensorType type, AffineMap result,
                         Value init) {
  OpBuilder b(op);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  AffineExpr ofPart = b.getAffineDimExpr(0);
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand).shiftDims(1);
    Value value = operand->get();
    if (auto it = lifted.find(value); it != lifted.end()) {
      value = it->second.value;
      map = map.insertResult(ofPart, 0);
    } else if (divided) {
      if (std::optional<unsigned> dim = map.getResultPosition(b.getAffineDimExpr(*divided + 1))) {
        value = divide(b, value, *dim);
        map = map.insertResult(ofPart, *dim);
      }
    }
    inputs.push_back(value);
    maps.push_back(map);
  }
  maps.push_back(result);
  SmallVector<utils::IteratorType> iterators{part};
  llvm::append_range(iterators, op.getIteratorTypesArray());
  if (isa<linalg::ContractOp>(op))
    return linalg::ContractOp::create(b, op.getLoc(), TypeRange(type), inputs, ValueRange(init),
                                      b.getAffineMapArrayAttr(maps))
        .getResult(0);
  auto generic = linalg::GenericOp::create(b, op.getLoc(), TypeRange(type), inputs,
                                           ValueRange(init), maps, iterators);
  IRMapping mapping;
  op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
  generic.walk([](linalg::IndexOp each) { each.setDim(each.getDim() + 1); });
  if (!divided)
    return generic.getResult(0);
  SmallVector<linalg::IndexOp> numbers;
  generic.walk([&](linalg::IndexOp each) {
    if (each.getDim() == *divided + 1)
      numbers.push_back(each);
  });
  for (linalg::IndexOp each : numbers) {
    OpBuilder in(each->getBlock(), std::next(each->getIterator()));
    Location loc = each.getLoc();
    Value number = linalg::IndexOp::create(in, loc, 0);
    Value size = arith::ConstantIndexOp::create(in, loc, groups / parts);
    Value first = arith::MulIOp::create(in, loc, number, size);
    Value group = arith::AddIOp::create(in, loc, each, first);
    each.getResult().replaceAllUsesExcept(group, group.getDefiningOp());
  }
  generic->setAttr(DistDialect::kGroups, b.getI64IntegerAttr(groups));
  return generic.getResult(0);
}

/// Returns whether the op was lifted, or replaced by one that reads parts.
bool GroupLifter::visitGroups(linalg::GenericOp op, const GroupLoop &found) {
  SmallVector<int64_t> rows;
  for (AffineExpr expr : op.getMatchingIndexingMap(found.index).getResults())
    rows.push_back(cast<AffineDimExpr>(expr).getPosition());
  bool isEnd = readsLifted(op);
  if (isEnd && rowLoops(op) != rows)
    return false;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (std::optional<unsigned> dim = op.getMatchingIndexingMap(operand).getResultPosition(
            getAffineDimExpr(found.loop, op.getContext()));
        dim && (isLifted(operand->get()) || !isCutByParts(operand->get(), *dim)))
      return false;
  OpBuilder b(op);
  Value init = op.getDpsInits()[0];
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<unsigned> dim =
      out.getResultPosition(getAffineDimExpr(found.loop, op.getContext()));
  if (!isEnd) {
    std::optional<SmallVector<int64_t>> kept = rowsOf(op, rows);
    RankedTensorType all = liftedType(type);
    Value start = dim || !kept ? Value() : uniform(b, init, all);
    if (!start)
      return false;
    Value value = write(op, utils::IteratorType::parallel, found.loop, all,
                        out.shiftDims(1).insertResult(b.getAffineDimExpr(0), 0), start);
    const sharding::Mesh &devices = meshes.get(mesh);
    auto wanted = sharding::TensorSharding::allOpen(devices, all.getRank());
    wanted.dims[0] = axes;
    llvm::erase_if(wanted.open, [&](const sharding::AxisRef &axis) {
      return sharding::overlapsAny(axes, axis);
    });
    Value cut = ShardTensorOp::create(b, op.getLoc(), all, value,
                                      ShardingAttr::get(mesh, devices, wanted, op.getContext()));
    lifted[op->getResult(0)] = {cut, std::move(*kept), uint64_t(1) << (numSources++ % 64)};
    return true;
  }
  hasEnd = true;
  if (!dim) {
    Value sum = write(op, utils::IteratorType::reduction, found.loop, type, out.shiftDims(1), init);
    op->getResult(0).replaceAllUsesWith(sum);
    return true;
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[*dim] = groups / parts;
  shape.insert(shape.begin() + *dim, parts);
  auto divided = RankedTensorType::get(shape, type.getElementType());
  Value start = uniform(b, init, divided);
  Value sum = write(op, utils::IteratorType::parallel, found.loop, divided,
                    out.shiftDims(1).insertResult(b.getAffineDimExpr(0), *dim),
                    start ? start : divide(b, init, *dim));
  SmallVector<ReassociationIndices> merged;
  for (int64_t d = 0, at = 0; d < type.getRank(); ++d) {
    merged.push_back({at++});
    if (d == static_cast<int64_t>(*dim))
      merged.back().push_back(at++);
  }
  op->getResult(0).replaceAllUsesWith(
      tensor::CollapseShapeOp::create(b, op.getLoc(), type, sum, merged));
  return true;
}

/// Lifts an op that computes rows from rows.
void GroupLifter::liftPlain(linalg::LinalgOp op) {
  if (!isa<linalg::GenericOp, linalg::ContractOp>(op) || !hasPlainMaps(op) ||
      op->getNumResults() != 1 || !op.hasPureTensorSemantics())
    return;
  WalkResult plain = op->getRegion(0).walk([](Operation *inner) {
    return inner->getNumRegions() || isa<tensor::ExtractOp>(inner) ? WalkResult::interrupt()
                                                                   : WalkResult::advance();
  });
  std::optional<SmallVector<int64_t>> loops = rowLoops(op);
  std::optional<SmallVector<int64_t>> rows = loops ? rowsOf(op, *loops) : std::nullopt;
  if (plain.wasInterrupted() || !rows || isLifted(op.getDpsInits()[0]))
    return;
  OpBuilder b(op);
  RankedTensorType all = liftedType(op->getResult(0).getType());
  Value start = uniform(b, op.getDpsInits()[0], all);
  if (!start)
    return;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0)).shiftDims(1);
  lifted[op->getResult(0)] = {write(op, utils::IteratorType::parallel, std::nullopt, all,
                                    out.insertResult(b.getAffineDimExpr(0), 0), start),
                              std::move(*rows), sourcesOf(op)};
}

/// Lifts a slice of whole rows.
void GroupLifter::liftSlice(tensor::ExtractSliceOp op) {
  const Lifted source = lifted.lookup(op.getSource());
  if (op.getDroppedDims().any() || !op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty() || llvm::any_of(source.rows, [&](int64_t row) {
        return op.getType().getDimSize(row) != op.getSourceType().getDimSize(row);
      }))
    return;
  OpBuilder b(op);
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(0)}, sizes{b.getIndexAttr(parts)},
      strides{b.getIndexAttr(1)};
  llvm::append_range(offsets, op.getMixedOffsets());
  llvm::append_range(sizes, op.getMixedSizes());
  llvm::append_range(strides, op.getMixedStrides());
  Value slice = tensor::ExtractSliceOp::create(b, op.getLoc(), liftedType(op.getType()),
                                               source.value, offsets, sizes, strides);
  lifted[op.getResult()] = {slice, source.rows, source.sources};
}

/// The value of the part that has the group of each row.
Value GroupLifter::reduce(OpBuilder &b, const Lifted &value) {
  Location loc = value.value.getLoc();
  auto type = cast<RankedTensorType>(value.value.getType());
  auto single = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  int64_t rank = single.getRank();
  SmallVector<AffineExpr> loops, rows;
  for (int64_t d = 0; d < rank; ++d)
    loops.push_back(b.getAffineDimExpr(d));
  for (int64_t row : value.rows)
    rows.push_back(b.getAffineDimExpr(row));
  MLIRContext *context = b.getContext();
  AffineMap out = AffineMap::get(rank + 1, 0, loops, context),
            all = out.insertResult(b.getAffineDimExpr(rank), 0);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value zero = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(single)));
  auto number = cast<RankedTensorType>(index.getType());
  Value empty = tensor::EmptyOp::create(b, loc, number.getShape(), number.getElementType());
  AffineMap same = b.getMultiDimIdentityMap(number.getRank());
  Value part =
      linalg::GenericOp::create(
          b, loc, TypeRange(number), ValueRange(index), ValueRange(empty),
          ArrayRef<AffineMap>{same, same},
          SmallVector<utils::IteratorType>(number.getRank(), utils::IteratorType::parallel),
          [&](OpBuilder &in, Location at, ValueRange elements) {
            Value size = arith::ConstantOp::create(
                in, at, in.getIntegerAttr(number.getElementType(), groups / parts));
            // Of a row of no group all parts have the same.
            auto constant = [&](int64_t value) {
              return arith::ConstantOp::create(in, at,
                                               in.getIntegerAttr(number.getElementType(), value));
            };
            Value owner = arith::FloorDivSIOp::create(in, at, elements[0], size);
            owner = arith::MaxSIOp::create(in, at, owner, constant(0));
            owner = arith::MinSIOp::create(in, at, owner, constant(parts - 1));
            linalg::YieldOp::create(in, at, owner);
          })
          .getResult(0);
  return linalg::GenericOp::create(
             b, loc, TypeRange(single), ValueRange{value.value, part}, ValueRange(zero),
             ArrayRef<AffineMap>{all, AffineMap::get(rank + 1, 0, rows, context), out}, iterators,
             [&](OpBuilder &in, Location at, ValueRange elements) {
               Value here = arith::IndexCastOp::create(
                   in, at, number.getElementType(),
                   linalg::IndexOp::create(in, at, static_cast<int64_t>(rank)));
               Value is =
                   arith::CmpIOp::create(in, at, arith::CmpIPredicate::eq, elements[1], here);
               Value none = arith::ConstantOp::create(
                   in, at, cast<TypedAttr>(in.getZeroAttr(type.getElementType())));
               Value term = arith::SelectOp::create(in, at, is, elements[0], none);
               linalg::YieldOp::create(
                   in, at, arith::AddFOp::create(in, at, elements[2], term).getResult());
             })
      .getResult(0);
}

/// Gives an op that is not lifted the sums over parts of what several look-ups or products were
/// combined to; else one sum is reduced as before.
void GroupLifter::reduceOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto it = lifted.find(operand.get());
    if (it == lifted.end() || llvm::isPowerOf2_64(it->second.sources) ||
        !isa<FloatType>(getElementTypeOrSelf(operand.get().getType())))
      continue;
    if (!it->second.reduced) {
      OpBuilder b(op->getContext());
      b.setInsertionPointAfterValue(it->second.value);
      it->second.reduced = reduce(b, it->second);
    }
    operand.set(it->second.reduced);
    hasEnd = true;
  }
}

void GroupLifter::visit(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    if (std::optional<GroupLoop> found = groupLoopOf(generic);
        found && areEqual(found->index->get(), index) &&
        generic.getStaticLoopRanges()[found->loop] == groups && visitGroups(generic, *found))
      return;
  if (!readsLifted(op))
    return;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    liftPlain(linalgOp);
  else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    liftSlice(slice);
  if (op->getNumResults() != 1 || !isLifted(op->getResult(0)))
    reduceOperands(op);
}

namespace {
/// Groups of which parts are cut, and where rows select them.
struct GroupedRows {
  Value index;
  int64_t groups;
  Block *block;
  FlatSymbolRefAttr mesh;
  sharding::AxisList axes;
};
} // namespace

bool dist::computeAtGroupOwners(ModuleOp module) {
  MeshTable meshes(module);
  SmallVector<GroupedRows> all;
  module.walk([&](linalg::GenericOp op) {
    std::optional<GroupLoop> found = groupLoopOf(op);
    if (!found)
      return;
    int64_t groups = op.getStaticLoopRanges()[found->loop];
    if (llvm::any_of(all, [&](const GroupedRows &known) {
          return areEqual(known.index, found->index->get()) && known.block == op->getBlock() &&
                 known.groups == groups;
        }))
      return;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      std::optional<unsigned> dim = op.getMatchingIndexingMap(operand).getResultPosition(
          getAffineDimExpr(found->loop, op.getContext()));
      std::optional<Cuts> cuts = dim ? cutsBehind(operand->get(), meshes) : std::nullopt;
      int64_t parts = cuts ? sharding::sizeOf(cuts->dims[*dim]) : 1;
      if (parts > 1 && groups % parts == 0) {
        all.push_back({found->index->get(), groups, op->getBlock(), cuts->mesh, cuts->dims[*dim]});
        break;
      }
    }
  });
  bool hasEnds = false;
  for (const GroupedRows &rows : all)
    hasEnds |= GroupLifter(rows.index, rows.groups, rows.mesh, rows.axes, meshes).run(*rows.block);
  return hasEnds;
}
