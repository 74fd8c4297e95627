//===- LowerScatters.cpp - Lower sums into computed indices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a look-up selects a row of its result:
//
//   y[v, j] = sum over i of select(index[i] == v, g[i, j], 0)
//
// The loop v becomes the number clamp(index[i]), and the remaining nest adds to y
// in order: the same sums in every run.
//
//   for %i, for %j:   y[index[%i], %j] += g[%i, %j]
//
// On CPUs the rows of y are divided into tasks. Each task reads all indices and adds
// the terms of its rows, in the same order; %j is an op on a row, for vectors.
//
//   for %p = 0 to rows step 1024:   fill or copy y[%p .. %p + 1024]
//     for %i:   if %p <= index[%i] < %p + 1024:   y[index[%i]] += g[%i]
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"
#include "KernelStages.h"

#include "tessera/Codegen/Kernels/SelectedBody.h"
#include "tessera/Codegen/Kernels/TaskLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera::codegen {

/// The elements of the result and of the terms for each index that a task reads: reading them all
/// in every task then costs little.
static constexpr int64_t kElementsOfIndex = 64;
/// The least elements of a task, and the most tasks.
static constexpr int64_t kTaskElements = 32 << 10, kMostTasks = 64;

/// A writable tensor: a constant is replaced by a fill.
static Value writable(OpBuilder &b, Location loc, Value tensor) {
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value value = arith::ConstantOp::create(b, loc, elements.getSplatValue<TypedAttr>());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(), empty, identity, parallel,
                                   [&](OpBuilder &inner, Location where, ValueRange) {
                                     linalg::YieldOp::create(inner, where, value);
                                   })
      .getResult(0);
}

namespace {
class ScatterWriter {
public:
  ScatterWriter(linalg::GenericOp op, ArrayRef<dist::SelectedLoop> selected);

  /// The sums in one nest.
  Value whole(OpBuilder &b) const;
  /// The sums with the result's rows in tasks; null if that is not possible or not profitable.
  Value inTasks(OpBuilder &b);

private:
  /// The rows [begin, end) of the result along dimension `dim`.
  struct Rows {
    unsigned dim;
    Value begin, end;
  };

  std::optional<unsigned> loopAt(unsigned dim) const;
  void takeRowLoops();
  Value addTerms(OpBuilder &b, Value into, std::optional<Rows> rows) const;
  Value addTerm(OpBuilder &b, Value into, SmallVector<Value> loops, IRMapping known) const;
  bool isOfRow(OpOperand &operand) const {
    return llvm::any_of(row, [&](unsigned loop) {
      return op.getMatchingIndexingMap(&operand).isFunctionOfDim(loop);
    });
  }

  mutable linalg::GenericOp op; ///< accessors of ops are not const
  Location loc;
  mutable SelectedBody body;
  ArrayRef<dist::SelectedLoop> selected;
  OpOperand &init;
  SmallVector<int64_t> extents;
  llvm::SmallBitVector gone;
  SmallVector<unsigned> before, sums, behind; ///< loops that remain, outermost first
  SmallVector<unsigned> row;                  ///< the last of them, in one op
};
} // namespace

/// Dimensions of the result before the indexed ones are outermost, those after them innermost,
/// contiguous; the sums are in between.
ScatterWriter::ScatterWriter(linalg::GenericOp op, ArrayRef<dist::SelectedLoop> selected)
    : op(op), loc(op.getLoc()), body(op, selected), selected(selected),
      init(*op.getDpsInitOperand(0)), extents(op.getStaticLoopRanges()), gone(op.getNumLoops()) {
  for (const dist::SelectedLoop &each : selected)
    gone.set(each.loop);
  bool isBehind = false;
  for (unsigned dim = 0; dim < op.getMatchingIndexingMap(&init).getNumResults(); ++dim) {
    std::optional<unsigned> loop = loopAt(dim);
    if (!loop)
      continue;
    if (gone.test(*loop))
      isBehind = true;
    else
      (isBehind ? behind : before).push_back(*loop);
  }
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!gone.test(loop) && !llvm::is_contained(before, loop) && !llvm::is_contained(behind, loop))
      sums.push_back(loop);
}

/// The loop that is the index of the result in a dimension.
std::optional<unsigned> ScatterWriter::loopAt(unsigned dim) const {
  auto expr = dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(&init).getResult(dim));
  return expr ? std::optional(expr.getPosition()) : std::nullopt;
}

/// The loops behind the indexed ones become those of an op, unless they change an index or an
/// operand has something other than a slice for them.
void ScatterWriter::takeRowLoops() {
  row = behind;
  for (OpOperand &operand : op->getOpOperands())
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      if (!isa<AffineDimExpr>(expr) &&
          llvm::any_of(row, [&](unsigned loop) { return expr.isFunctionOfDim(loop); }))
        row.clear();
  SmallVector<Value> open;
  for (const dist::SelectedLoop &each : selected) {
    open.push_back(each.index);
    llvm::append_range(open, each.offsets);
  }
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == op.getBody() && isOfRow(*op.getMatchingOpOperand(argument)))
        row.clear();
    } else if (Operation *producer = value.getDefiningOp(); producer->getBlock() == op.getBody()) {
      if (auto index = dyn_cast<linalg::IndexOp>(producer);
          index && llvm::is_contained(row, index.getDim()))
        row.clear();
      llvm::append_range(open, producer->getOperands());
    }
  }
}

/// The term of the iteration that `loops` has, except for those of a row: op on slices.
Value ScatterWriter::addTerm(OpBuilder &b, Value into, SmallVector<Value> loops,
                             IRMapping known) const {
  BlockArgument sum = op.getMatchingBlockArgument(&init);
  if (row.empty()) {
    SmallVector<Value> at = body.placeOf(b, init, loops);
    known.map(sum, tensor::ExtractOp::create(b, loc, into, at));
    Value next = body.write(b, loops, known);
    return tensor::InsertOp::create(b, loc, next, into, at);
  }
  SmallVector<AffineExpr> places(op.getNumLoops(), b.getAffineConstantExpr(0));
  for (auto [place, loop] : llvm::enumerate(row)) {
    places[loop] = b.getAffineDimExpr(place);
    loops[loop] = arith::ConstantIndexOp::create(b, loc, 0);
  }
  // The part of an operand that the op reads or writes, without dimensions that are not of the row.
  auto slice = [&](OpOperand &operand, Value tensor, SmallVectorImpl<AffineMap> &maps) {
    SmallVector<OpFoldResult> at = getAsOpFoldResult(body.placeOf(b, operand, loops)), sizes;
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool isKept = dim && llvm::is_contained(row, dim.getPosition());
      sizes.push_back(b.getIndexAttr(isKept ? extents[dim.getPosition()] : 1));
      if (!isKept)
        continue;
      shape.push_back(extents[dim.getPosition()]);
      exprs.push_back(places[dim.getPosition()]);
    }
    maps.push_back(AffineMap::get(row.size(), 0, exprs, b.getContext()));
    SmallVector<OpFoldResult> steps(at.size(), b.getIndexAttr(1));
    auto type = RankedTensorType::get(shape, getElementTypeOrSelf(tensor.getType()));
    return tensor::ExtractSliceOp::create(b, loc, type, tensor, at, sizes, steps);
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> kept;
  for (OpOperand *input : op.getDpsInputOperands())
    if (isa<RankedTensorType>(input->get().getType()) && isOfRow(*input)) {
      inputs.push_back(slice(*input, input->get(), maps));
      kept.push_back(op.getMatchingBlockArgument(input));
    } else if (BlockArgument argument = op.getMatchingBlockArgument(input);
               !known.contains(argument)) {
      known.map(argument, body.elementOf(b, *input, loops));
    }
  auto out = slice(init, into, maps);
  kept.push_back(sum);
  auto write = [&](OpBuilder &inner, Location where, ValueRange arguments) {
    for (auto [from, to] : llvm::zip_equal(kept, arguments))
      known.map(from, to);
    for (auto [place, loop] : llvm::enumerate(row))
      loops[loop] = linalg::IndexOp::create(inner, where, place);
    linalg::YieldOp::create(inner, where, body.write(inner, loops, known));
  };
  SmallVector<utils::IteratorType> iterators(row.size(), utils::IteratorType::parallel);
  auto next = linalg::GenericOp::create(b, loc, TypeRange(out.getType()), inputs, ValueRange(out),
                                        maps, iterators, write);
  for (auto index : llvm::make_early_inc_range(next.getBody()->getOps<linalg::IndexOp>()))
    if (index->use_empty())
      index.erase();
  return tensor::InsertSliceOp::create(b, loc, next.getResult(0), into, out.getMixedOffsets(),
                                       out.getMixedSizes(), out.getMixedStrides());
}

/// Adds the terms to all rows or to some.
Value ScatterWriter::addTerms(OpBuilder &b, Value into, std::optional<Rows> rows) const {
  auto constant = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, loc, value);
  };
  std::optional<unsigned> cut;
  if (rows)
    cut = loopAt(rows->dim);
  SmallVector<unsigned> order = before;
  llvm::append_range(order, sums);
  for (unsigned loop : behind)
    if (!llvm::is_contained(row, loop))
      order.push_back(loop);
  SmallVector<Value> lower, upper;
  for (unsigned loop : order) {
    lower.push_back(cut == loop ? rows->begin : constant(b, 0));
    upper.push_back(cut == loop ? rows->end : constant(b, extents[loop]));
  }
  auto write = [&](OpBuilder &inner, Location where, ValueRange ivs, ValueRange state) {
    SmallVector<Value> loops(op.getNumLoops());
    for (auto [loop, iv] : llvm::zip_equal(order, ivs))
      loops[loop] = iv;
    IRMapping known;
    body.writeIterations(inner, loops, known);
    if (!cut || !gone.test(*cut))
      return scf::ValueVector{addTerm(inner, state[0], loops, known)};
    // One iteration or none: the carried tensor stays in its buffer.
    using arith::CmpIPredicate;
    Value isAfter =
        arith::CmpIOp::create(inner, where, CmpIPredicate::sge, loops[*cut], rows->begin);
    Value isBefore =
        arith::CmpIOp::create(inner, where, CmpIPredicate::slt, loops[*cut], rows->end);
    Value isOwn = arith::AndIOp::create(inner, where, isAfter, isBefore);
    Value trips = arith::IndexCastUIOp::create(inner, where, inner.getIndexType(), isOwn);
    auto once =
        scf::ForOp::create(inner, where, constant(inner, 0), trips, constant(inner, 1), state,
                           [&](OpBuilder &in, Location, Value, ValueRange carried) {
                             scf::YieldOp::create(in, where, addTerm(in, carried[0], loops, known));
                           });
    return scf::ValueVector{once.getResult(0)};
  };
  SmallVector<Value> steps(order.size(), constant(b, 1));
  if (order.empty())
    return write(b, loc, {}, into)[0];
  return scf::buildLoopNest(b, loc, lower, upper, steps, into, write).results[0];
}

Value ScatterWriter::whole(OpBuilder &b) const {
  return addTerms(b, writable(b, loc, init.get()), std::nullopt);
}

Value ScatterWriter::inTasks(OpBuilder &b) {
  auto type = cast<RankedTensorType>(init.get().getType());
  const int64_t *first = llvm::find_if(type.getShape(), [](int64_t size) { return size != 1; });
  if (first == type.getShape().end() || !loopAt(first - type.getShape().begin()))
    return {};
  unsigned dim = first - type.getShape().begin();
  bool isIndexed = gone.test(*loopAt(dim));
  takeRowLoops();
  // What the rows start with: a scalar, a tensor that is only read, or what is in the destination.
  auto reads = op->getParentOfType<func::FuncOp>()->getAttrOfType<IntegerAttr>(kKernelReadsAttr);
  Value into = init.get(), fill, source;
  DenseElementsAttr elements;
  if (matchPattern(into, m_Constant(&elements)) && elements.isSplat())
    fill = arith::ConstantOp::create(b, loc, elements.getSplatValue<TypedAttr>());
  else if (auto producer = into.getDefiningOp<linalg::GenericOp>())
    fill = filledScalar(producer);
  else if (auto argument = dyn_cast<BlockArgument>(into);
           argument && argument.getArgNumber() < reads.getInt())
    source = argument;
  if (!fill && !source && !isa<BlockArgument>(into))
    return {};
  int64_t indices = 1, terms = 1;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!gone.test(loop)) {
      terms *= extents[loop];
      indices *= llvm::is_contained(row, loop) ? 1 : extents[loop];
    }
  int64_t work = terms + (fill || source ? type.getNumElements() : 0);
  int64_t tasks = std::min({kMostTasks, *first, work / kTaskElements});
  if (isIndexed)
    tasks = std::min(tasks, work / (indices * kElementsOfIndex));
  if (tasks < 2) // the updates in place, or all in one nest
    return fill || source ? Value() : addTerms(b, into, std::nullopt);
  if (fill || source)
    into = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());

  int64_t size = llvm::divideCeil(*first, tasks), whole = *first / size * size;
  // The remainder is a loop of one trip, with its own size.
  for (auto [from, to] : {std::pair(int64_t(0), whole), std::pair(whole, *first)}) {
    if (from == to)
      continue;
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto loop = scf::ForOp::create(b, loc, constant(from), constant(to), constant(size), into);
    loop->setAttr(kTaskLoopAttr, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value begin = loop.getInductionVar(), next = loop.getRegionIterArg(0);
    int64_t extent = std::min(size, to - from);
    if (fill || source) {
      SmallVector<OpFoldResult> at(type.getRank(), b.getIndexAttr(0));
      SmallVector<OpFoldResult> steps(type.getRank(), b.getIndexAttr(1));
      SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(b.getContext(), type.getShape());
      at[dim] = begin;
      sizes[dim] = b.getIndexAttr(extent);
      Value rows = tensor::ExtractSliceOp::create(b, loc, next, at, sizes, steps);
      if (fill) {
        rows = linalg::FillOp::create(b, loc, fill, rows).getResult(0);
      } else {
        Value copied = tensor::ExtractSliceOp::create(b, loc, source, at, sizes, steps);
        rows = linalg::CopyOp::create(b, loc, copied, rows).getResult(0);
      }
      next = tensor::InsertSliceOp::create(b, loc, rows, next, at, sizes, steps);
    }
    Value end = arith::AddIOp::create(b, loc, begin, constant(extent));
    scf::YieldOp::create(b, loc, addTerms(b, next, Rows{dim, begin, end}));
    into = loop.getResult(0);
  }
  return into;
}

static bool isScatter(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && dist::isScatter(generic);
}

/// Whether the operand is read once: its elements have all loops but the selected ones.
static bool isReadOnce(linalg::GenericOp op, OpOperand &input) {
  llvm::SmallBitVector missing(op.getNumLoops(), true);
  for (const dist::SelectedLoop &each : dist::replaceableLoops(op))
    missing.reset(each.loop);
  for (AffineExpr expr : op.getMatchingIndexingMap(&input).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      missing.reset(dim.getPosition());
  return missing.none();
}

/// Fuses elementwise ops that only scatters read: each task computes the indices and the terms that
/// it needs. With `onlyTerms` only those that it reads once, not the indices, which all owners of
/// rows read.
static linalg::GenericOp takeProducers(linalg::GenericOp op, bool onlyTerms) {
  IRRewriter rewriter(op);
  for (unsigned number = 0; number < op.getNumDpsInputs();) {
    OpOperand &input = op->getOpOperand(number);
    auto producer = input.get().getDefiningOp<linalg::GenericOp>();
    if (!producer || producer->getNumResults() != 1 || producer->getBlock() != op->getBlock() ||
        !llvm::all_of(producer->getUsers(), isScatter) ||
        (onlyTerms && (!producer->hasOneUse() || !isReadOnce(op, input) ||
                       !isa<FloatType>(getElementTypeOrSelf(input.get())))) ||
        !linalg::areElementwiseOpsFusable(&input)) {
      ++number;
      continue;
    }
    rewriter.setInsertionPoint(op);
    if (!producer->hasOneUse()) {
      producer = cast<linalg::GenericOp>(rewriter.clone(*producer));
      input.set(producer.getResult(0));
    }
    FailureOr<linalg::ElementwiseOpFusionResult> fused =
        linalg::fuseElementwiseOps(rewriter, &input);
    if (failed(fused))
      return op;
    auto next = cast<linalg::GenericOp>(fused->fusedOp);
    if (!isScatter(next)) {
      rewriter.eraseOp(next);
      return op;
    }
    rewriter.replaceOp(op, next.getResults());
    rewriter.eraseOp(producer);
    op = next;
    number = 0;
  }
  return op;
}

void lowerScatters(func::FuncOp kernel, bool inTasks) {
  const bool byOwners = !inTasks;
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) {
    if (isScatter(op))
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops) {
    inTasks &= op->getBlock() == &kernel.getBody().front();
    if (inTasks || byOwners)
      op = takeProducers(op, /*onlyTerms=*/byOwners);
    SmallVector<dist::SelectedLoop, 2> selected = dist::replaceableLoops(op);
    OpBuilder b(op);
    Value sums;
    if (inTasks)
      sums = ScatterWriter(op, selected).inTasks(b);
    if (!sums)
      sums = ScatterWriter(op, selected).whole(b);
    op.getResult(0).replaceAllUsesWith(sums);
    op.erase();
  }
}

} // namespace tessera::codegen
