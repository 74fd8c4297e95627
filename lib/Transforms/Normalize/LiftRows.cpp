//===- LiftRows.cpp - Compute with all rows of a rotating state -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pipeline written as a rotating state stores what the last stage computes, and a
// circular one feeds it to the first stage again later:
//
//   for t:  state[0] = t < m ? x[t] : stored[t % m]
//           y        = stages(state)                    state, y: stages x rows
//           stored[(t - stages + 1) % m] = y[stages - 1]
//           state    = roll(y)
//
// If the stages are cut, `stored` is on all devices or cut otherwise, and y[stages - 1]
// is sent in each iteration, to one stage at last. Instead, each stage stores its own y:
//
//   for t:  inputs   = t < m ? x[t] : stored[:, t % m]   stored: stages x m x rows
//           state[0] = inputs[stages - 1]
//           stored[:, (t - stages + 1) % m] = y
//
// An op on one row gets a leading loop over all of them. Where a row is put into a row of
// a value with the same extent, one row of the lifted value is moved there; what leaves
// the loop is sliced behind it. A carry that is moved at the end of an iteration and
// again at the beginning of the next is moved once, at the beginning: both moves are
// one `dist.rearrange`.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/LiftRows.h"

#include "FormRearrangements.h"
#include "Pieces.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Pipeline/RolledPipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTLIFTROWS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static SmallVector<OpFoldResult> with(OpBuilder &b, int64_t first, ArrayRef<OpFoldResult> others) {
  SmallVector<OpFoldResult> all{b.getIndexAttr(first)};
  llvm::append_range(all, others);
  return all;
}

/// All dimensions of a type, the first two as one.
static SmallVector<ReassociationIndices> firstTwo(int64_t rank) {
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t d = 2; d < rank; ++d)
    groups.push_back({d});
  return groups;
}

/// The constant that a map reads in a tensor's first dimension.
static std::optional<int64_t> constantRow(AffineMap map) {
  if (map.getNumResults() == 0)
    return std::nullopt;
  auto row = dyn_cast<AffineConstantExpr>(map.getResult(0));
  return row ? std::optional(row.getValue()) : std::nullopt;
}

namespace {

class RowLifter {
public:
  /// `extent`: of the rotating dimension.
  RowLifter(scf::ForOp loop, int64_t extent) : loop(loop), body(loop.getBody()), extent(extent) {}

  /// Finds what follows from one row. Returns whether a row is kept for another iteration or put
  /// back.
  bool explore();
  /// The loop with lifted rows, which replaces it.
  scf::ForOp rewrite();

private:
  bool isRotating(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() > 0 && type.getDimSize(0) == extent && !rows.contains(value) &&
           value.getParentBlock() == body;
  }
  /// The row that an op reads of a rotating value or of lifted ones; nothing if there is none, or
  /// if there are several.
  std::optional<int64_t> rowOf(Operation *op) const;
  bool mayLift(Operation *op) const;
  bool isPutBack(OpOperand &use) const;

  RankedTensorType liftedType(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape{extent};
    llvm::append_range(shape, tensor.getShape());
    return tensor.clone(shape);
  }
  Value allRows(OpBuilder &b, Value value);
  Value lift(Operation *op);
  Value liftSlice(tensor::ExtractSliceOp slice);
  Value liftLinalg(linalg::LinalgOp op);
  Value liftSumWithSlice(linalg::LinalgOp op);
  void updateLast(Value carry);
  Value readRow(OpBuilder &b, Value of, int64_t row, RankedTensorType type);
  void readRows(Value value);
  void readResult(OpResult before, Value of, int64_t row);

  scf::ForOp loop;
  Block *body; ///< of the loop, or of the one that replaces it
  int64_t extent;
  DenseMap<Value, int64_t> rows;   ///< the row that a value follows from; looked up only
  DenseMap<Value, Value> lifted;   ///< looked up only
  SmallVector<Operation *> chosen; ///< in the order of the program
};

} // namespace

/// Whether a slice is one row of its source, whole in all other dimensions.
static bool isRow(tensor::ExtractSliceOp slice) {
  RankedTensorType type = slice.getSourceType();
  if (!slice.hasUnitStride() || ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      slice.getStaticSizes()[0] != 1)
    return false;
  for (int64_t d = 1; d < type.getRank(); ++d)
    if (slice.getStaticSizes()[d] != type.getDimSize(d))
      return false;
  return true;
}

std::optional<int64_t> RowLifter::rowOf(Operation *op) const {
  std::optional<int64_t> found;
  auto add = [&](int64_t row) {
    bool isSame = !found || *found == row;
    found = row;
    return isSame;
  };
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
      slice && isRotating(slice.getSource()) && isRow(slice))
    return slice.getStaticOffsets()[0];
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (auto known = rows.find(operand.get()); known != rows.end()) {
      if (!add(known->second))
        return std::nullopt;
    } else if (linalgOp && isRotating(operand.get())) {
      std::optional<int64_t> row = constantRow(linalgOp.getMatchingIndexingMap(&operand));
      if (row && !add(*row))
        return std::nullopt;
    }
  }
  return found;
}

/// Whether a row is inserted into a row of a rotating value, or of zeros of its shape.
bool RowLifter::isPutBack(OpOperand &use) const {
  auto into = [&](RankedTensorType from, RankedTensorType to) {
    return from.getRank() == to.getRank() && from.getRank() > 0 && from.getDimSize(0) == 1 &&
           to.getDimSize(0) == extent && from.getShape().drop_front() == to.getShape().drop_front();
  };
  Operation *op = use.getOwner();
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return use.get() == insert.getSource() && !rows.contains(insert.getDest()) &&
           insert.hasUnitStride() && insert.getOffsets().empty() &&
           into(insert.getSourceType(), insert.getDestType());
  auto pad = dyn_cast<tensor::PadOp>(op);
  return pad && pad.getConstantPaddingValue() && pad.getLow().empty() && pad.getHigh().empty() &&
         into(pad.getSourceType(), pad.getResultType());
}

bool RowLifter::mayLift(Operation *op) const {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      !isPlain(op))
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (!linalgOp.hasPureTensorSemantics() || isa<linalg::FillOp>(op) ||
        linalgOp.getNumDpsInits() != 1)
      return false;
    WalkResult plain = op->getRegion(0).walk([](Operation *inner) {
      return inner->getNumRegions() || isa<tensor::ExtractOp>(inner) ? WalkResult::interrupt()
                                                                     : WalkResult::advance();
    });
    return !plain.wasInterrupted();
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return pad.getConstantPaddingValue() && pad.getLow().empty() && pad.getHigh().empty();
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
             tensor::InsertSliceOp>(op);
}

bool RowLifter::explore() {
  bool isKept = false, isPut = false;
  // A carry that follows from a row adds what follows from itself.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (op.getNumResults() != 1 || rows.contains(op.getResult(0)) || !mayLift(&op))
        continue;
      bool putsBack = llvm::any_of(op.getOpOperands(), [&](OpOperand &use) {
        return rows.contains(use.get()) && isPutBack(use);
      });
      isPut |= putsBack;
      std::optional<int64_t> row = putsBack ? std::nullopt : rowOf(&op);
      if (!row)
        continue;
      rows[op.getResult(0)] = *row;
      changed = true;
    }
    for (auto [carry, yielded] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
      auto row = rows.find(yielded);
      if (row == rows.end())
        continue;
      auto [known, isNew] = rows.insert({carry, row->second});
      if (known->second != row->second)
        return false;
      changed |= isNew;
      isKept = true;
    }
  }
  // What reads several rows now may have read one of them before.
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumResults() == 1 && rows.contains(op.getResult(0))) {
      if (rowOf(&op) != rows.lookup(op.getResult(0)))
        return false;
      chosen.push_back(&op);
    }
  for (auto [carry, yielded] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (rows.contains(carry) && !rows.contains(yielded))
      return false;
  return isKept || isPut;
}

/// A value, the same for each row; undefined and constant values need no copy.
Value RowLifter::allRows(OpBuilder &b, Value value) {
  if (Value own = lifted.lookup(value))
    return own;
  Location loc = value.getLoc();
  RankedTensorType type = liftedType(value.getType());
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(b, loc, constant.resizeSplat(type));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  if (value.getDefiningOp<tensor::EmptyOp>())
    return empty;
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(value), ValueRange(empty),
                                   ArrayRef<AffineMap>{all.dropResult(0), all}, iterators,
                                   [](OpBuilder &body, Location at, ValueRange elements) {
                                     linalg::YieldOp::create(body, at, elements[0]);
                                   })
      ->getResult(0);
}

Value RowLifter::liftSlice(tensor::ExtractSliceOp slice) {
  OpBuilder b(slice);
  if (Value of = lifted.lookup(slice.getSource()))
    return tensor::ExtractSliceOp::create(
        b, slice.getLoc(), liftedType(slice.getType()), of, with(b, 0, slice.getMixedOffsets()),
        with(b, extent, slice.getMixedSizes()), with(b, 1, slice.getMixedStrides()));
  RankedTensorType type = liftedType(slice.getType());
  if (type == slice.getSourceType())
    return slice.getSource();
  return tensor::ExpandShapeOp::create(b, slice.getLoc(), type, slice.getSource(),
                                       firstTwo(type.getRank()));
}

Value RowLifter::liftLinalg(linalg::LinalgOp op) {
  OpBuilder b(op);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  AffineExpr row = b.getAffineDimExpr(0);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap before = op.getMatchingIndexingMap(&operand), map = before.shiftDims(1);
    if (op.isDpsInit(&operand)) {
      maps.push_back(map.insertResult(row, 0));
      continue;
    }
    Value of = lifted.lookup(operand.get());
    inputs.push_back(of ? of : operand.get());
    if (of)
      map = map.insertResult(row, 0);
    else if (isRotating(operand.get()) && constantRow(before))
      map = map.dropResult(0).insertResult(row, 0);
    maps.push_back(map);
  }
  Value init = op.getDpsInits()[0];
  Value out = allRows(b, init);
  RankedTensorType type = liftedType(op->getResult(0).getType());
  if (isa<linalg::ContractOp>(op))
    return linalg::ContractOp::create(b, op.getLoc(), TypeRange(type), inputs, ValueRange(out),
                                      b.getAffineMapArrayAttr(maps))
        ->getResult(0);
  SmallVector<utils::IteratorType> iterators{utils::IteratorType::parallel};
  llvm::append_range(iterators, op.getIteratorTypesArray());
  auto generic = linalg::GenericOp::create(b, op.getLoc(), TypeRange(type), inputs, ValueRange(out),
                                           maps, iterators);
  IRMapping mapping;
  op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
  generic.walk([](linalg::IndexOp index) { index.setDim(index.getDim() + 1); });
  return generic->getResult(0);
}

/// The dimension of which a slice has one element, and is whole in all others; -1 if there is none.
static int64_t onlyDim(tensor::InsertSliceOp insert) {
  RankedTensorType from = insert.getSourceType(), to = insert.getDestType();
  int64_t found = -1;
  if (from.getRank() != to.getRank() || !insert.hasUnitStride())
    return -1;
  for (int64_t d = 0; d < to.getRank(); ++d)
    if (from.getDimSize(d) != to.getDimSize(d)) {
      if (found >= 0 || from.getDimSize(d) != 1)
        return -1;
      found = d;
    }
  return found;
}

/// The sum of a value and of a slice among zeros, as the derivative of a slice is: an update of the
/// value, which touches the slice alone. Null for other ops.
Value RowLifter::liftSumWithSlice(linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(*op);
  Operation *sum = generic && generic.getNumDpsInputs() == 2
                       ? generic.getBody()->getTerminator()->getOperand(0).getDefiningOp()
                       : nullptr;
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) ||
      !llvm::equal(sum->getOperands(), generic.getBody()->getArguments().take_front(2)) ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return {};
  for (unsigned i : {0, 1}) {
    Value of = generic.getInputs()[i], other = generic.getInputs()[1 - i];
    auto insert = of.getDefiningOp<tensor::InsertSliceOp>();
    int64_t dim = insert && of.hasOneUse() && lifted.contains(of) ? onlyDim(insert) : -1;
    Value source = dim >= 0 ? lifted.lookup(insert.getSource()) : Value();
    if (!source || !lifted.contains(other) ||
        !(matchPattern(insert.getDest(), m_AnyZeroFloat()) ||
          matchPattern(insert.getDest(), m_Zero())))
      continue;
    OpBuilder b(generic);
    Location loc = generic.getLoc();
    RankedTensorType type = typeOf(lifted.lookup(other));
    Value at = getValueOrCreateConstantIndexOp(b, loc, insert.getMixedOffsets()[dim]);
    AffineMap all = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<AffineExpr> read(all.getResults());
    read[dim + 1] = b.getAffineConstantExpr(0);
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               b, loc, TypeRange(type), ValueRange(source), ValueRange(lifted.lookup(other)),
               ArrayRef<AffineMap>{AffineMap::get(type.getRank(), 0, read, b.getContext()), all},
               iterators,
               [&](OpBuilder &body, Location in, ValueRange elements) {
                 Value place = linalg::IndexOp::create(body, in, dim + 1);
                 Value isHere =
                     arith::CmpIOp::create(body, in, arith::CmpIPredicate::eq, place, at);
                 Value zero =
                     arith::ConstantOp::create(body, in, b.getZeroAttr(type.getElementType()));
                 Value added = arith::SelectOp::create(body, in, isHere, elements[0], zero);
                 Operation *more =
                     body.create(in, sum->getName().getIdentifier(), ValueRange{elements[1], added},
                                 TypeRange(type.getElementType()));
                 linalg::YieldOp::create(body, in, more->getResult(0));
               })
        ->getResult(0);
  }
  return {};
}

/// Moves the first update of a carry behind the reads of it, so that it is in place.
void RowLifter::updateLast(Value carry) {
  for (Operation *user : carry.getUsers()) {
    auto update = dyn_cast<linalg::GenericOp>(user);
    if (!update || update.getDpsInits()[0] != carry || update->getNumResults() != 1 ||
        llvm::is_contained(update.getInputs(), carry))
      continue;
    Operation *first = nullptr;
    for (Operation *reader : update->getUsers()) {
      Operation *at = body->findAncestorOpInBlock(*reader);
      first = !first || at->isBeforeInBlock(first) ? at : first;
    }
    if (first && update->isBeforeInBlock(first))
      update->moveBefore(first);
    return;
  }
}

Value RowLifter::lift(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    Value sum = liftSumWithSlice(linalgOp);
    return sum ? sum : liftLinalg(linalgOp);
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return liftSlice(slice);
  OpBuilder b(op);
  Location loc = op->getLoc();
  RankedTensorType type = liftedType(op->getResult(0).getType());
  Value source = allRows(b, op->getOperand(0));
  auto groupsOf = [](ArrayRef<ReassociationIndices> groups, int64_t fineRank) {
    SmallVector<ReassociationIndices> result{{0}};
    if (groups.empty()) // of one element
      for (int64_t dim = 1; dim < fineRank; ++dim)
        result.front().push_back(dim);
    for (const ReassociationIndices &group : groups)
      result.emplace_back(llvm::map_to_vector(group, [](int64_t dim) { return dim + 1; }));
    return result;
  };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(
        b, loc, type, source, groupsOf(expand.getReassociationIndices(), type.getRank()));
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(
        b, loc, type, source,
        groupsOf(collapse.getReassociationIndices(), typeOf(source).getRank()));
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return tensor::PadOp::create(b, loc, type, source, with(b, 0, pad.getMixedLowPad()),
                                 with(b, 0, pad.getMixedHighPad()), pad.getConstantPaddingValue());
  auto insert = cast<tensor::InsertSliceOp>(op);
  return tensor::InsertSliceOp::create(
      b, loc, source, allRows(b, insert.getDest()), with(b, 0, insert.getMixedOffsets()),
      with(b, extent, insert.getMixedSizes()), with(b, 1, insert.getMixedStrides()));
}

/// A row of a lifted value. A value that is one row itself stays one, as moves read it.
Value RowLifter::readRow(OpBuilder &b, Value of, int64_t row, RankedTensorType type) {
  Location loc = of.getLoc();
  bool isOne = type.getRank() > 0 && type.getDimSize(0) == 1;
  if (isOne)
    of = tensor::CollapseShapeOp::create(b, loc, of, firstTwo(type.getRank() + 1));
  RankedTensorType from = typeOf(of);
  SmallVector<OpFoldResult> offsets(from.getRank(), b.getIndexAttr(0)),
      strides(from.getRank(), b.getIndexAttr(1)), sizes;
  for (int64_t size : from.getShape())
    sizes.push_back(b.getIndexAttr(size));
  offsets[0] = b.getIndexAttr(row);
  sizes[0] = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(b, loc, type, of, offsets, sizes, strides);
}

/// Lets ops that are not lifted read one row; those that put it back move it.
void RowLifter::readRows(Value value) {
  Value of = lifted.lookup(value);
  int64_t row = rows.lookup(value);
  Value read;
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = use.getOwner();
    if (llvm::is_contained(chosen, user) || user == body->getTerminator())
      continue;
    OpBuilder b(user);
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(user); insert && isPutBack(use)) {
      int64_t to = insert.getStaticOffsets()[0];
      Value all = tensor::CollapseShapeOp::create(b, insert.getLoc(), of,
                                                  firstTwo(insert.getDestType().getRank() + 1));
      SmallVector<Value> inputs{all};
      SmallVector<int64_t> segments{row, 1, to, 1, 1};
      for (auto [first, count] : {std::pair(int64_t(0), to), std::pair(to + 1, extent - to - 1)})
        if (count > 0) {
          inputs.push_back(insert.getDest());
          llvm::append_range(segments, ArrayRef<int64_t>{first, 1, first, 1, count});
        }
      Value moved = RearrangeOp::create(b, insert.getLoc(), insert.getDestType(), inputs, 0,
                                        segments, TypedAttr());
      insert.replaceAllUsesWith(moved);
      insert.erase();
      continue;
    }
    if (!read) {
      OpBuilder after(loop.getContext());
      after.setInsertionPointAfterValue(of);
      read = readRow(after, of, row, typeOf(value));
    }
    use.set(read);
  }
}

/// The result of a lifted carry. Slices of it are read alone.
void RowLifter::readResult(OpResult before, Value of, int64_t row) {
  RankedTensorType type = typeOf(before);
  for (Operation *user : llvm::make_early_inc_range(before.getUsers()))
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user)) {
      OpBuilder b(slice);
      Value part = tensor::ExtractSliceOp::create(
          b, slice.getLoc(), slice.getType(), of, with(b, row, slice.getMixedOffsets()),
          with(b, 1, slice.getMixedSizes()), with(b, 1, slice.getMixedStrides()));
      slice.replaceAllUsesWith(part);
      slice.erase();
    }
  if (before.use_empty())
    return;
  OpBuilder b(before.getContext());
  b.setInsertionPointAfter(of.getDefiningOp());
  before.replaceAllUsesWith(readRow(b, of, row, type));
}

scf::ForOp RowLifter::rewrite() {
  OpBuilder b(loop);
  SmallVector<Value> inits;
  for (auto [carry, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    inits.push_back(rows.contains(carry) ? allRows(b, init) : init);
  auto replaced = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                     loop.getStep(), inits);
  replaced->setAttrs(loop->getAttrs());
  replaced.getBody()->getOperations().splice(replaced.getBody()->end(),
                                             loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(replaced.getInductionVar());
  SmallVector<std::pair<BlockArgument, Value>> carries;
  for (auto [carry, now] : llvm::zip_equal(loop.getRegionIterArgs(), replaced.getRegionIterArgs()))
    if (rows.contains(carry)) {
      lifted[carry] = now;
      carries.push_back({carry, now});
    } else {
      carry.replaceAllUsesWith(now);
    }
  body = replaced.getBody();
  for (Operation *op : chosen)
    lifted[op->getResult(0)] = lift(op);
  for (auto [carry, now] : carries)
    readRows(carry);
  for (Operation *op : chosen)
    readRows(op->getResult(0));
  for (OpOperand &yielded : body->getTerminator()->getOpOperands())
    if (rows.contains(yielded.get()))
      yielded.set(lifted.lookup(yielded.get()));
  for (Operation *op : llvm::reverse(chosen)) {
    Operation *made = lifted.lookup(op->getResult(0)).getDefiningOp();
    bool isUnused = isa<tensor::InsertSliceOp>(op) && made->use_empty(); // by a sum with it
    op->erase();
    if (isUnused)
      made->erase();
  }
  for (auto [carry, now] : carries)
    updateLast(now);
  for (auto [result, now, carry] :
       llvm::zip_equal(loop.getResults(), replaced.getResults(), loop.getRegionIterArgs()))
    if (auto row = rows.find(carry); row != rows.end())
      readResult(result, now, row->second);
    else
      result.replaceAllUsesWith(now);
  loop.erase();
  return replaced;
}

//===----------------------------------------------------------------------===//
// Moves of carries
//===----------------------------------------------------------------------===//

/// The insertion of a constant row as a rearrangement, which moves compose with.
static void fillRows(scf::ForOp loop) {
  for (auto insert : llvm::make_early_inc_range(loop.getBody()->getOps<tensor::InsertSliceOp>())) {
    DenseElementsAttr constant;
    RankedTensorType from = insert.getSourceType(), to = insert.getDestType();
    if (!matchPattern(insert.getSource(), m_Constant(&constant)) || !constant.isSplat() ||
        !insert.hasUnitStride() || !insert.getOffsets().empty() || !isPlain(insert) ||
        from.getRank() != to.getRank() || to.getRank() == 0 ||
        from.getShape().drop_front() != to.getShape().drop_front())
      continue;
    int64_t first = insert.getStaticOffsets()[0], end = first + from.getDimSize(0);
    SmallVector<Value> inputs;
    SmallVector<int64_t> segments;
    for (auto [at, count] : {std::pair(int64_t(0), first), std::pair(end, to.getDimSize(0) - end)})
      if (count > 0) {
        inputs.push_back(insert.getDest());
        llvm::append_range(segments, ArrayRef<int64_t>{at, 1, at, 1, count});
      }
    if (inputs.empty())
      continue;
    OpBuilder b(insert);
    insert.replaceAllUsesWith(
        RearrangeOp::create(b, insert.getLoc(), to, inputs, 0, segments,
                            cast<TypedAttr>(constant.getSplatValue<Attribute>()))
            .getResult());
    insert.erase();
  }
}

/// Moves a carry at the beginning of an iteration, if that is the last thing that an iteration
/// does with it and the first that the next one does: both moves are composed later. What the user
/// says of the moved value then holds for the carry, which has the same stages.
static void moveFirst(scf::ForOp loop) {
  for (OpOperand &yielded : loop.getBody()->getTerminator()->getOpOperands()) {
    unsigned index = yielded.getOperandNumber();
    BlockArgument carry = loop.getRegionIterArg(index);
    auto constraint = yielded.get().getDefiningOp<ShardTensorOp>();
    if (constraint && !constraint->hasOneUse())
      continue;
    auto move = (constraint ? constraint.getOperand() : yielded.get()).getDefiningOp<RearrangeOp>();
    if (!move || !move->hasOneUse() || !isPlain(move) || move->getBlock() != loop.getBody() ||
        !llvm::all_equal(move.getInputs()) || move.getInputs()[0].getType() != carry.getType() ||
        carry.use_empty() || !llvm::all_of(carry.getUsers(), [&](Operation *user) {
          return isPlain(user) && readPieces(user).dim == static_cast<int64_t>(move.getDim());
        }))
      continue;
    // A constant is the same before and after the move.
    DenseElementsAttr init;
    Value first = loop.getInitArgs()[index];
    if (auto given = first.getDefiningOp<ShardTensorOp>())
      first = given.getOperand();
    if (!matchPattern(first, m_Constant(&init)) || !init.isSplat() ||
        (move.getFillAttr() && move.getFillAttr() != init.getSplatValue<Attribute>()))
      continue;
    Value source = move.getInputs()[0];
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    IRMapping map;
    map.map(source, carry);
    Operation *moved = b.clone(*move, map);
    carry.replaceAllUsesExcept(moved->getResult(0), moved);
    if (Value result = loop.getResult(index); !result.use_empty()) {
      b.setInsertionPointAfter(loop);
      map.map(source, result);
      Operation *last = b.clone(*move, map);
      result.replaceAllUsesExcept(last->getResult(0), last);
    }
    move.replaceAllUsesWith(source);
    move.erase();
  }
}

/// The extent of a dimension by which a loop rotates a state through stages.
static std::optional<int64_t> rotatingExtent(scf::ForOp loop) {
  for (auto [index, result] : llvm::enumerate(loop.getResults())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (type && type.getRank() > 0 && type.getDimSize(0) > 1 &&
        pipeline::isOfStages(loop, static_cast<unsigned>(index), 0))
      return type.getDimSize(0);
  }
  return std::nullopt;
}

bool dist::liftRows(ModuleOp module) {
  // Of two meshes, new values would need to know theirs.
  if (!MeshTable(module).single())
    return false;
  bool isLifted = false;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration() || isLocalView(function))
      continue;
    SmallVector<scf::ForOp> loops; // inner ones first
    function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    bool isChanged = false;
    for (scf::ForOp loop : loops) {
      std::optional<int64_t> extent = rotatingExtent(loop);
      if (!extent)
        continue;
      RowLifter lifter(loop, *extent);
      if (!lifter.explore())
        continue;
      loop = lifter.rewrite();
      fillRows(loop);
      moveFirst(loop);
      isChanged = true;
    }
    if (isChanged)
      formRearrangements(function);
    isLifted |= isChanged;
  }
  return isLifted;
}

namespace {
struct DistLiftRows : dist::impl::DistLiftRowsBase<DistLiftRows> {
  void runOnOperation() override { liftRows(getOperation()); }
};
} // namespace
