//===- ComputeAtOwners.cpp - Compute where the only part is ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slice that is within one part of a cut dimension is on the devices of one coordinate,
// the owners. Ops that every device would compute from it get a loop over the parts instead,
// cut like the dimension: each device computes with its own part, in the same time, and
// only the owners' results are used.
//
//   ys = x[3]            x is cut over 4 stages        X  = x as 4 parts
//   e  = ys - t          on every device               E  = X - t, each device with its part
//   l  = sum(e * e)                                    l  = sum(E * E, but over parts)[3]
//   dx = pad(e)          zero but for part 3           dx = E where the part is 3, else 0
//
// Before, ys is sent to all devices; after, l alone. A minimum cut chooses the values that are
// sent: an edge from a value to its readers has the bytes of the value times executions.
// A pad that puts the value back to the owner's part of a dimension with the same axes sends
// nothing.
//
//===----------------------------------------------------------------------===//

#include "ComputeAtOwners.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Solver/MinimumCut.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::AxisList;
using sharding::OpSharding;
using sharding::TensorSharding;

namespace {

/// The part of a dimension that a slice reads.
struct Part {
  FlatSymbolRefAttr mesh;
  AxisList axes;      ///< that cut the dimension
  int64_t count = 0;  ///< of parts
  int64_t size = 0;   ///< of each
  int64_t index = 0;  ///< of the one that is read
  int64_t offset = 0; ///< of the slice in it
};

class OwnerComputer {
public:
  OwnerComputer(tensor::ExtractSliceOp slice, Part part, const MeshTable &meshes,
                OpShardings &shardings)
      : slice(slice), part(std::move(part)), meshes(meshes), shardings(shardings) {}

  void run() {
    explore();
    if (choose())
      rewrite();
  }

private:
  void explore();
  bool choose();
  void rewrite();

  bool isFree(const OpSharding &own, const sharding::ShardingRule &rule) const;
  bool mayLift(Operation *op);
  bool isPutBack(tensor::PadOp pad);
  Operation *lift(Operation *op);
  Value liftSlice();
  Operation *liftLinalg(linalg::LinalgOp op);
  Value liftInit(OpBuilder &b, Value init, const TensorSharding &wanted);
  void putBack(tensor::PadOp pad);
  void readPart(Operation *op, Value lifted);

  RankedTensorType liftedType(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape{part.count};
    llvm::append_range(shape, tensor.getShape());
    return RankedTensorType::get(shape, tensor.getElementType());
  }
  /// A sharding without the axes of the parts, which at most cut dimensions of one element.
  TensorSharding withoutAxes(TensorSharding sharding) const {
    for (AxisList &dim : sharding.dims)
      if (overlaps(dim))
        dim.clear();
    return sharding;
  }
  TensorSharding liftedSharding(Value value) const {
    TensorSharding sharding =
        withoutAxes(resolveVerified(getSharding(value), meshes, value.getType()));
    sharding.dims.insert(sharding.dims.begin(), part.axes);
    return sharding;
  }
  bool overlaps(const AxisList &axes) const {
    return llvm::any_of(axes, [&](const sharding::AxisRef &axis) {
      return sharding::overlapsAny(part.axes, axis);
    });
  }
  Value liftedOf(Value value) const { return lifted.lookup(value); }

  /// Distributes an op such that its result has the given sharding.
  template <typename Op> Op place(Op op, const TensorSharding &wanted) {
    sharding::ShardingRule rule = *getShardingRule(op);
    OpSharding own = OpSharding::whole(rule);
    for (auto [dim, axes] : llvm::zip_equal(rule.results[0], wanted.dims))
      if (!axes.empty())
        own.factors[dim.factors.front()] = axes;
    for (const sharding::PartialAxis &partial : wanted.partial) // of the lifted operand
      own.forwards.push_back({partial, {0}});
    setOpSharding(op, part.mesh, meshes.get(part.mesh), own);
    setSharding(op->getResult(0), ShardingAttr::get(part.mesh, meshes.get(part.mesh), wanted,
                                                    part.mesh.getContext()));
    return op;
  }

  tensor::ExtractSliceOp slice;
  Part part;
  const MeshTable &meshes;
  OpShardings &shardings;
  /// Ops that may get a loop over parts, the slice first, by their node.
  llvm::MapVector<Operation *, int64_t> nodes;
  SmallVector<Operation *> chosen; ///< in the order of the program
  DenseMap<Value, Value> lifted;   ///< looked up, never iterated
  solver::MinimumCut cut;
};

} // namespace

/// The op whose result is `value`, if it is uniform: undefined, or one constant everywhere.
static Operation *uniformInit(Value value) {
  Operation *op = value.getDefiningOp();
  DenseElementsAttr constant;
  if (isa_and_nonnull<tensor::EmptyOp>(op) ||
      (op && matchPattern(op, m_Constant(&constant)) && constant.isSplat()))
    return op;
  auto fill = dyn_cast_or_null<linalg::FillOp>(op);
  return fill && fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>() ? op : nullptr;
}

/// Whether the axes of the parts cut no loop of more than one iteration.
bool OwnerComputer::isFree(const OpSharding &own, const sharding::ShardingRule &rule) const {
  if (!own.windows.empty())
    return false;
  for (auto [axes, factor] : llvm::zip_equal(own.factors, rule.factors))
    if (overlaps(axes) && factor.size != 1)
      return false;
  return llvm::none_of(own.forwards, [&](const sharding::Forward &forward) {
    return sharding::overlapsAny(part.axes, forward.partial.axis);
  });
}

bool OwnerComputer::mayLift(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  ShardingAttr result = getSharding(op->getResult(0));
  if (!result || result.getMesh() != part.mesh)
    return false;
  const ShardedOp &sharded = shardings.of(op);
  if (!isFree(sharded.sharding, sharded.rule))
    return false;
  TensorSharding made = resolveVerified(result, meshes, op->getResult(0).getType());
  if (made.isPartial() && !isa<linalg::LinalgOp>(op))
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (!linalgOp.hasPureTensorSemantics() || isa<linalg::FillOp>(op) ||
        linalgOp.getNumDpsInits() != 1)
      return false;
    WalkResult plain = op->getRegion(0).walk([&](Operation *inner) {
      // Elements at indices that other devices would compute from other parts.
      return inner->getNumRegions() || isa<tensor::ExtractOp>(inner) ? WalkResult::interrupt()
                                                                     : WalkResult::advance();
    });
    Value init = linalgOp.getDpsInits()[0];
    ShardingAttr own = getSharding(init);
    bool isCopied = own && own.getMesh() == part.mesh &&
                    !resolveVerified(own, meshes, init.getType()).isPartial();
    return !plain.wasInterrupted() && (isCopied || uniformInit(init));
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return pad.getConstantPaddingValue() && pad.getLow().empty() && pad.getHigh().empty();
  if (isa<ShardTensorOp>(op)) // owners alone have the value: nobody can see where else it was
    return getSharding(op->getOperand(0)) == result;
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(op);
}

/// Whether a pad puts a part to the owner's part of a dimension that the same axes cut.
bool OwnerComputer::isPutBack(tensor::PadOp pad) {
  RankedTensorType from = pad.getSourceType(), to = pad.getResultType();
  ShardingAttr attr = getSharding(pad.getResult());
  if (!attr || attr.getMesh() != part.mesh || !pad.getConstantPaddingValue() ||
      !pad.getLow().empty() || !pad.getHigh().empty() || to.getRank() == 0)
    return false;
  TensorSharding made = resolveVerified(attr, meshes, to);
  if (made.dims[0] != part.axes || made.isPartial() || !made.windows.empty() ||
      to.getDimSize(0) % part.count != 0)
    return false;
  for (int64_t d = 1; d < to.getRank(); ++d)
    if (from.getDimSize(d) != to.getDimSize(d))
      return false;
  int64_t size = to.getDimSize(0) / part.count, low = pad.getStaticLow()[0];
  return low >= 0 && pad.getStaticHigh()[0] >= 0 && low / size == part.index &&
         low % size + from.getDimSize(0) <= size;
}

void OwnerComputer::explore() {
  nodes[slice] = cut.addNode();
  cut.addEdge(solver::MinimumCut::kSource, nodes[slice], solver::MinimumCut::kInfinite);
  for (size_t i = 0; i < nodes.size(); ++i) { // grows
    auto [op, node] = *(nodes.begin() + i);
    Value value = op->getResult(0);
    TensorSharding own = withoutAxes(resolveVerified(getSharding(value), meshes, value.getType()));
    auto type = cast<RankedTensorType>(value.getType());
    double bytes = static_cast<double>(localType(type, own).getNumElements() *
                                       bytesPerElement(type.getElementType())) *
                   tripsOf(op);
    int64_t sent = cut.addNode();
    cut.addEdge(node, sent, static_cast<solver::Capacity>(bytes));
    for (Operation *user : value.getUsers()) {
      if (auto pad = dyn_cast<tensor::PadOp>(user); pad && isPutBack(pad))
        continue;
      int64_t reader = solver::MinimumCut::kSink;
      if (mayLift(user)) {
        auto [known, isNew] = nodes.insert({user, 0});
        if (isNew)
          known->second = cut.addNode();
        reader = known->second;
      }
      cut.addEdge(sent, reader, solver::MinimumCut::kInfinite);
    }
  }
}

bool OwnerComputer::choose() {
  cut.solve();
  for (auto [op, node] : nodes)
    if (cut.onSourceSide(node))
      chosen.push_back(op);
  return chosen.size() > 1 || llvm::any_of(slice->getUsers(), [&](Operation *user) {
           auto pad = dyn_cast<tensor::PadOp>(user);
           return pad && isPutBack(pad);
         });
}

/// The same rows of each part.
Value OwnerComputer::liftSlice() {
  OpBuilder b(slice);
  Value source = slice.getSource();
  RankedTensorType type = slice.getSourceType();
  TensorSharding own = resolveVerified(getSharding(source), meshes, type);
  SmallVector<int64_t> shape{part.count, part.size};
  llvm::append_range(shape, type.getShape().drop_front());
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t d = 1; d < type.getRank(); ++d)
    groups.push_back({d + 1});
  own.dims.insert(own.dims.begin() + 1, AxisList());
  auto parts = place(
      tensor::ExpandShapeOp::create(
          b, slice.getLoc(), RankedTensorType::get(shape, type.getElementType()), source, groups),
      own);
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(0)}, sizes{b.getIndexAttr(part.count)},
      strides{b.getIndexAttr(1)};
  llvm::append_range(offsets, slice.getMixedOffsets());
  llvm::append_range(sizes, slice.getMixedSizes());
  llvm::append_range(strides, slice.getMixedStrides());
  offsets[1] = b.getIndexAttr(part.offset);
  return place(tensor::ExtractSliceOp::create(b, slice.getLoc(), liftedType(slice.getType()), parts,
                                              offsets, sizes, strides),
               liftedSharding(slice.getResult()));
}

/// The initial values of a reduction for each part.
Value OwnerComputer::liftInit(OpBuilder &b, Value init, const TensorSharding &wanted) {
  if (Value own = liftedOf(init))
    return own;
  Operation *op = uniformInit(init);
  Location loc = init.getLoc();
  RankedTensorType type = liftedType(init.getType());
  DenseElementsAttr constant;
  if (op && matchPattern(op, m_Constant(&constant)))
    return place(arith::ConstantOp::create(b, loc, constant.resizeSplat(type)), wanted)
        ->getResult(0);
  Value empty =
      place(tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType()), wanted);
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return place(linalg::FillOp::create(b, loc, fill.getInputs(), ValueRange(empty)), wanted)
        ->getResult(0);
  if (op)
    return empty;
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto copies =
      linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(init), ValueRange(empty),
                                ArrayRef<AffineMap>{all.dropResult(0), all}, iterators,
                                [](OpBuilder &body, Location at, ValueRange elements) {
                                  linalg::YieldOp::create(body, at, elements[0]);
                                });
  return place(copies, wanted)->getResult(0);
}

Operation *OwnerComputer::liftLinalg(linalg::LinalgOp op) {
  OpBuilder b(op);
  Value init = op.getDpsInits()[0];
  RankedTensorType type = liftedType(op->getResult(0).getType());
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isInit = op.isDpsInit(&operand);
    Value of = isInit ? Value() : liftedOf(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand).shiftDims(1);
    maps.push_back(of || isInit ? map.insertResult(b.getAffineDimExpr(0), 0) : map);
    if (!isInit)
      inputs.push_back(of ? of : operand.get());
  }
  const ShardedOp &before = shardings.of(op);
  OpSharding own = before.sharding;
  for (AxisList &axes : own.factors)
    if (overlaps(axes))
      axes.clear();
  own.factors.insert(own.factors.begin(), part.axes);
  TensorSharding initial = withoutAxes(
      getSharding(init)
          ? resolveVerified(getSharding(init), meshes, init.getType())
          : TensorSharding::replicated(cast<RankedTensorType>(init.getType()).getRank()));
  initial.dims.insert(initial.dims.begin(), part.axes);
  Value out = liftInit(b, init, initial);
  Operation *made;
  if (isa<linalg::ContractOp>(op)) {
    made = linalg::ContractOp::create(b, op.getLoc(), TypeRange(type), inputs, ValueRange(out),
                                      b.getAffineMapArrayAttr(maps));
  } else {
    SmallVector<utils::IteratorType> iterators{utils::IteratorType::parallel};
    llvm::append_range(iterators, op.getIteratorTypesArray());
    auto generic = linalg::GenericOp::create(b, op.getLoc(), TypeRange(type), inputs,
                                             ValueRange(out), maps, iterators);
    IRMapping mapping;
    op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
    generic.walk([](linalg::IndexOp index) { index.setDim(index.getDim() + 1); });
    made = generic;
  }
  sharding::ShardingRule rule = *getShardingRule(made);
  setOpSharding(made, part.mesh, meshes.get(part.mesh), own);
  setSharding(made->getResult(0),
              ShardingAttr::get(part.mesh, meshes.get(part.mesh),
                                sharding::resultSharding(rule, 0, own), op->getContext()));
  return made;
}

Operation *OwnerComputer::lift(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return liftLinalg(linalgOp);
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value source = liftedOf(op->getOperand(0));
  RankedTensorType type = liftedType(op->getResult(0).getType());
  TensorSharding wanted = liftedSharding(op->getResult(0));
  auto groupsOf = [](ArrayRef<ReassociationIndices> groups) {
    SmallVector<ReassociationIndices> result{{0}};
    for (const ReassociationIndices &group : groups)
      result.emplace_back(llvm::map_to_vector(group, [](int64_t dim) { return dim + 1; }));
    return result;
  };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return place(tensor::ExpandShapeOp::create(b, loc, type, source,
                                               groupsOf(expand.getReassociationIndices())),
                 wanted);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return place(tensor::CollapseShapeOp::create(b, loc, type, source,
                                                 groupsOf(collapse.getReassociationIndices())),
                 wanted);
  auto with = [&](int64_t first, ArrayRef<OpFoldResult> others) {
    SmallVector<OpFoldResult> all{b.getIndexAttr(first)};
    llvm::append_range(all, others);
    return all;
  };
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return place(tensor::PadOp::create(b, loc, type, source, with(0, pad.getMixedLowPad()),
                                       with(0, pad.getMixedHighPad()),
                                       pad.getConstantPaddingValue()),
                 wanted);
  auto read = cast<tensor::ExtractSliceOp>(op);
  return place(tensor::ExtractSliceOp::create(b, loc, type, source, with(0, read.getMixedOffsets()),
                                              with(part.count, read.getMixedSizes()),
                                              with(1, read.getMixedStrides())),
               wanted);
}

/// Replaces a pad by a choice between the owner's part and the padding.
void OwnerComputer::putBack(tensor::PadOp pad) {
  OpBuilder b(pad);
  Location loc = pad.getLoc();
  Value of = liftedOf(pad.getSource()), padding = pad.getConstantPaddingValue();
  RankedTensorType from = pad.getSourceType(), to = pad.getResultType();
  int64_t size = to.getDimSize(0) / part.count, low = pad.getStaticLow()[0],
          rows = from.getDimSize(0);
  TensorSharding made = resolveVerified(getSharding(pad.getResult()), meshes, to);
  TensorSharding parts = made;
  parts.dims.insert(parts.dims.begin() + 1, AxisList());
  if (rows != size) {
    SmallVector<int64_t> shape{part.count, size};
    llvm::append_range(shape, to.getShape().drop_front());
    SmallVector<OpFoldResult> before(shape.size(), b.getIndexAttr(0)), after = before;
    before[1] = b.getIndexAttr(low % size);
    after[1] = b.getIndexAttr(size - low % size - rows);
    of = place(tensor::PadOp::create(b, loc, RankedTensorType::get(shape, to.getElementType()), of,
                                     before, after, padding),
               parts);
  }
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t d = 1; d < to.getRank(); ++d)
    groups.push_back({d + 1});
  of = place(tensor::CollapseShapeOp::create(b, loc, to, of, groups), made);
  Value empty = place(tensor::EmptyOp::create(b, loc, to.getShape(), to.getElementType()), made);
  AffineMap map = b.getMultiDimIdentityMap(to.getRank());
  SmallVector<utils::IteratorType> iterators(to.getRank(), utils::IteratorType::parallel);
  auto chosen = linalg::GenericOp::create(
      b, loc, TypeRange(to), ValueRange(of), ValueRange(empty), ArrayRef<AffineMap>{map, map},
      iterators, [&](OpBuilder &body, Location at, ValueRange elements) {
        Value row = linalg::IndexOp::create(body, at, 0);
        auto bound = [&](int64_t value, arith::CmpIPredicate how) -> Value {
          return arith::CmpIOp::create(body, at, how, row,
                                       arith::ConstantIndexOp::create(body, at, value));
        };
        Value isOwn = arith::AndIOp::create(body, at, bound(low, arith::CmpIPredicate::sge),
                                            bound(low + rows, arith::CmpIPredicate::slt));
        Value choice = arith::SelectOp::create(body, at, isOwn, elements[0], padding);
        linalg::YieldOp::create(body, at, choice);
      });
  place(chosen, made);
  pad.replaceAllUsesWith(chosen->getResult(0));
  pad.erase();
}

/// Lets the remaining readers of a value read the owner's.
void OwnerComputer::readPart(Operation *op, Value of) {
  Value value = op->getResult(0);
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(of.getDefiningOp());
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(part.index)}, sizes{b.getIndexAttr(1)},
      strides(type.getRank() + 1, b.getIndexAttr(1));
  for (int64_t size : type.getShape()) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(size));
  }
  auto read = tensor::ExtractSliceOp::create(b, op->getLoc(), type, of, offsets, sizes, strides);
  TensorSharding own = resolveVerified(getSharding(value), meshes, type);
  value.replaceAllUsesWith(place(read, own));
}

void OwnerComputer::rewrite() {
  lifted[slice.getResult()] = liftSlice();
  DenseSet<Operation *> isChosen(chosen.begin(), chosen.end()); // looked up, never iterated
  slice->getParentOfType<func::FuncOp>().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != slice && isChosen.contains(op))
      lifted[op->getResult(0)] =
          isa<ShardTensorOp>(op) ? liftedOf(op->getOperand(0)) : lift(op)->getResult(0);
  });
  for (Operation *op : chosen)
    for (Operation *user : llvm::make_early_inc_range(op->getResult(0).getUsers()))
      if (auto pad = dyn_cast<tensor::PadOp>(user);
          pad && !isChosen.contains(user) && isPutBack(pad))
        putBack(pad);
  for (Operation *op : llvm::reverse(chosen)) {
    bool isRead =
        llvm::any_of(op->getUsers(), [&](Operation *user) { return !isChosen.contains(user); });
    if (isRead && op != slice)
      readPart(op, liftedOf(op->getResult(0)));
  }
  for (Operation *op : llvm::reverse(chosen))
    if (op->use_empty())
      op->erase();
}

/// The part that a slice reads whole or in part, if every device gets it.
static std::optional<Part> partOf(tensor::ExtractSliceOp slice, const MeshTable &meshes,
                                  OpShardings &shardings) {
  ShardingAttr own = getSharding(slice.getSource()), made = getSharding(slice.getResult());
  RankedTensorType type = slice.getSourceType();
  if (!own || !made || own.getMesh() != made.getMesh() || type.getRank() == 0)
    return std::nullopt;
  TensorSharding cut = resolveVerified(own, meshes, type);
  int64_t offset = slice.getStaticOffsets()[0], size = slice.getStaticSizes()[0];
  Part part{own.getMesh(), cut.dims[0], sharding::sizeOf(cut.dims[0])};
  if (part.count < 2 || cut.isPartial() || !cut.windows.empty() || ShapedType::isDynamic(offset) ||
      ShapedType::isDynamic(size) || slice.getStaticStrides()[0] != 1 ||
      type.getDimSize(0) % part.count != 0)
    return std::nullopt;
  part.size = type.getDimSize(0) / part.count;
  part.index = offset / part.size;
  part.offset = offset % part.size;
  auto overlaps = [&](const AxisList &axes) {
    return llvm::any_of(axes, [&](const sharding::AxisRef &axis) {
      return sharding::overlapsAny(part.axes, axis);
    });
  };
  const ShardedOp &sharded = shardings.of(slice);
  // Other dimensions are read as they are cut, or whole.
  for (int64_t d = 1; d < type.getRank(); ++d)
    if (!cut.dims[d].empty() && slice.getStaticSizes()[d] != type.getDimSize(d))
      return std::nullopt;
  if (part.offset + size > part.size || llvm::any_of(sharded.sharding.factors, overlaps) ||
      !sharded.sharding.windows.empty())
    return std::nullopt;
  return part;
}

void dist::computeAtOwners(func::FuncOp function, const MeshTable &meshes) {
  OpShardings shardings(meshes);
  SmallVector<tensor::ExtractSliceOp> slices;
  function.walk([&](tensor::ExtractSliceOp slice) { slices.push_back(slice); });
  // Later ones first: what follows a slice, other slices among it, may be replaced.
  for (tensor::ExtractSliceOp slice : llvm::reverse(slices))
    if (std::optional<Part> part = partOf(slice, meshes, shardings))
      OwnerComputer(slice, std::move(*part), meshes, shardings).run();
}
