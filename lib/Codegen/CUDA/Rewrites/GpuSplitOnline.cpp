//===- GpuSplitOnline.cpp - Split a maximum and the sum relative to it ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few long rows are reduced in parts (GpuSplit.cpp). A softmax would read its rows three times:
// for the maximum m, for the sum of exp(x - m), for the results. A sum whose terms are proportional
// to exp(-m) is instead computed relative to the maximum of each part, in the launch that computes
// this maximum:
//
//   m[p] = max of x[p, l],   s[p] = sum over l of exp(x[p, l] - m[p])
//   m = max of m[p],         s = sum over p of s[p] * exp(m[p] - m)
//
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). m[p] is 0 there if
// it is not finite. What remains of a row without a suitable divisor is added to m and s.
//
//===----------------------------------------------------------------------===//

#include "../GpuLimits.h"
#include "../GpuStages.h"
#include "../Groups/GpuShiftForm.h"
#include "GpuSums.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace tessera::codegen {

/// The shortest row and part, the parts of all rows, of which four blocks share a multiprocessor
/// of an H100 four times; and a multiple of the elements of an access.
static constexpr int64_t kLongRow = 16 << 10, kShortestPart = 1024, kParts = 16 * 132, kAccess = 16;

namespace {

/// A reduction of contiguous rows by one combiner.
struct RowReduction {
  linalg::GenericOp op;
  unsigned output = 0;
  Operation *combiner = nullptr;
  Value term; ///< what is combined with the output, in the body
};

using Form = ShiftForm;

class OnlineSplit {
public:
  OnlineSplit(RowReduction maximum, RowReduction sum, IRRewriter &rewriter)
      : maximum(maximum), sum(sum), rewriter(rewriter) {}
  /// The input of the sum to whose exponential the terms are inversely proportional, if any.
  OpOperand *findShift();
  void rewrite(OpOperand &shift);

private:
  Form formOf(Value value) const;
  bool isSame(Value ofSum, Value ofMaximum) const;
  Value filled(ArrayRef<int64_t> shape, TypedAttr value);
  /// The part of `input` of an op that has the positions of rows from `begin` on: `parts` of
  /// `length`, or `length` without parts.
  Value slice(linalg::GenericOp op, OpOperand &input, int64_t begin, int64_t parts, int64_t length);
  /// The reduction of all parts; `replaced`: an input that has an element for each part.
  Value reduceParts(const RowReduction &reduction, int64_t parts, int64_t length,
                    OpOperand *replaced, Value replacement);
  /// The reduction of the positions from `begin` on, which continues `init`.
  Value reduceRest(const RowReduction &reduction, int64_t begin, int64_t length, Value init);

  RowReduction maximum, sum;
  IRRewriter &rewriter;
  Value shift; ///< the argument of the sum's body
};

} // namespace

static bool isLastLoop(AffineExpr expr, linalg::GenericOp op) {
  auto dim = dyn_cast<AffineDimExpr>(expr);
  return dim && dim.getPosition() + 1 == op.getNumLoops();
}

/// The reductions of an op over its last loop, if all operands are read along loops, and those with
/// the last loop contiguously along it.
static SmallVector<RowReduction> reductionsOf(linalg::GenericOp op) {
  SmallVector<RowReduction> found;
  unsigned loops = op.getNumLoops();
  if (op.hasDynamicShape() || op.hasIndexSemantics() || op.getNumReductionLoops() != 1 ||
      !linalg::isReductionIterator(op.getIteratorTypesArray().back()))
    return found;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!map.isProjectedPermutation())
      return found;
    ArrayRef<AffineExpr> results = map.getResults();
    for (AffineExpr expr : results.empty() ? results : results.drop_back())
      if (isLastLoop(expr, op))
        return found;
  }
  AffineMap rows = AffineMap::getMultiDimIdentityMap(loops, op.getContext()).dropResult(loops - 1);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (op.getMatchingIndexingMap(&init) != rows)
      continue;
    unsigned output = init.getOperandNumber() - op.getNumDpsInputs();
    BlockArgument accumulator = op.getMatchingBlockArgument(&init);
    SmallVector<Operation *> combiners;
    Value term = matchReduction(op.getRegionOutputArgs(), output, combiners);
    if (term && combiners.size() == 1 && accumulator.hasOneUse())
      found.push_back({op, output, combiners[0], term});
  }
  return found;
}

static Value withoutExtension(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

bool OnlineSplit::isSame(Value ofSum, Value ofMaximum) const {
  ofSum = withoutExtension(ofSum);
  ofMaximum = withoutExtension(ofMaximum);
  auto left = dyn_cast<BlockArgument>(ofSum), right = dyn_cast<BlockArgument>(ofMaximum);
  if (left && right) {
    linalg::GenericOp one = sum.op, two = maximum.op;
    if (left.getOwner() != one.getBody() || right.getOwner() != two.getBody())
      return false;
    OpOperand *x = one.getMatchingOpOperand(left), *y = two.getMatchingOpOperand(right);
    return one.isDpsInput(x) && two.isDpsInput(y) && x->get() == y->get() &&
           one.getMatchingIndexingMap(x) == two.getMatchingIndexingMap(y);
  }
  Operation *a = ofSum.getDefiningOp(), *b = ofMaximum.getDefiningOp();
  if (!a || !b || a->getName() != b->getName() || ofSum.getType() != ofMaximum.getType() ||
      a->getAttrDictionary() != b->getAttrDictionary() || a->getNumRegions() != 0 || !isPure(a) ||
      a->getNumOperands() != b->getNumOperands())
    return false;
  if (a == b)
    return true;
  return llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()),
                      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
}

Form OnlineSplit::formOf(Value value) const {
  linalg::GenericOp op = sum.op;
  if (value == shift)
    return Form::shift;
  Operation *def = value.getDefiningOp();
  if (!def) {
    auto argument = cast<BlockArgument>(value);
    bool isOutput =
        argument.getOwner() == op.getBody() && argument.getArgNumber() >= op.getNumDpsInputs();
    return isOutput ? Form::other : Form::independent;
  }
  if (def->getBlock() != op.getBody())
    return Form::independent;
  if (def->getNumRegions() != 0 || !isPure(def))
    return Form::other;
  SmallVector<Form> forms;
  for (Value operand : def->getOperands())
    forms.push_back(formOf(operand));
  return shiftFormOf(def, forms, [&]() { return isSame(def->getOperand(0), maximum.term); });
}

OpOperand *OnlineSplit::findShift() {
  Type limit = getElementTypeOrSelf(maximum.op.getResult(0).getType());
  AffineMap rows = maximum.op.getIndexingMapsArray().back();
  for (OpOperand *input : sum.op.getDpsInputOperands()) {
    if (sum.op.getMatchingIndexingMap(input) != rows ||
        getElementTypeOrSelf(input->get().getType()) != limit)
      continue;
    shift = sum.op.getMatchingBlockArgument(input);
    if (formOf(sum.term) == Form::proportional)
      return input;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

Value OnlineSplit::filled(ArrayRef<int64_t> shape, TypedAttr value) {
  Location loc = sum.op.getLoc();
  Value empty = tensor::EmptyOp::create(rewriter, loc, shape, value.getType());
  Value element = arith::ConstantOp::create(rewriter, loc, value);
  return linalg::FillOp::create(rewriter, loc, element, empty).getResult(0);
}

Value OnlineSplit::slice(linalg::GenericOp op, OpOperand &input, int64_t begin, int64_t parts,
                         int64_t length) {
  AffineMap map = op.getMatchingIndexingMap(&input);
  auto type = dyn_cast<RankedTensorType>(input.get().getType());
  if (!type || map.getNumResults() == 0 || !isLastLoop(map.getResults().back(), op))
    return input.get();
  Location loc = op.getLoc();
  SmallVector<int64_t> shape(type.getShape()), from(shape.size(), 0), steps(shape.size(), 1);
  Value result = input.get();
  int64_t size = std::max<int64_t>(1, parts) * length;
  if (size != shape.back()) {
    from.back() = begin;
    shape.back() = size;
    MLIRContext *context = op.getContext();
    result = tensor::ExtractSliceOp::create(
        rewriter, loc, type.clone(shape), result, getAsIndexOpFoldResult(context, from),
        getAsIndexOpFoldResult(context, shape), getAsIndexOpFoldResult(context, steps));
  }
  if (parts == 0)
    return result;
  SmallVector<ReassociationIndices> groups;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    groups.push_back({static_cast<int64_t>(dim)});
  groups.back().push_back(static_cast<int64_t>(shape.size()));
  shape.back() = parts;
  shape.push_back(length);
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape), result, groups);
}

Value OnlineSplit::reduceParts(const RowReduction &reduction, int64_t parts, int64_t length,
                               OpOperand *replaced, Value replacement) {
  linalg::GenericOp op = reduction.op;
  MLIRContext *context = op.getContext();
  unsigned loops = op.getNumLoops();
  AffineExpr ofPart = getAffineDimExpr(loops - 1, context),
             inPart = getAffineDimExpr(loops, context);
  SmallVector<AffineExpr> rows;
  for (unsigned loop = 0; loop + 1 < loops; ++loop)
    rows.push_back(getAffineDimExpr(loop, context));
  rows.push_back(ofPart);
  AffineMap ofParts = AffineMap::get(loops + 1, 0, rows, context);
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (input == replaced) {
      inputs.push_back(replacement);
      maps.push_back(ofParts);
      continue;
    }
    inputs.push_back(slice(op, *input, 0, parts, length));
    SmallVector<AffineExpr> results(op.getMatchingIndexingMap(input).getResults());
    if (!results.empty() && isLastLoop(results.back(), op))
      results.push_back(inPart);
    maps.push_back(AffineMap::get(loops + 1, 0, results, context));
  }
  maps.push_back(ofParts);
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::parallel);
  kinds.push_back(utils::IteratorType::reduction);
  auto type = cast<RankedTensorType>(op.getResult(reduction.output).getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(parts);
  Value init = filled(shape, *arith::getNeutralElement(reduction.combiner));
  linalg::GenericOp only = takeOutputs(op, {reduction.output}, {}, {}, rewriter);
  auto made =
      linalg::GenericOp::create(rewriter, op.getLoc(), init.getType(), inputs, init, maps, kinds,
                                [&](OpBuilder &b, Location loc, ValueRange arguments) {
                                  IRMapping mapping;
                                  mapping.map(only.getBody()->getArguments(), arguments);
                                  for (Operation &inner : only.getBody()->without_terminator())
                                    b.clone(inner, mapping);
                                  Value result = only.getBody()->getTerminator()->getOperand(0);
                                  linalg::YieldOp::create(b, loc, mapping.lookup(result));
                                });
  rewriter.eraseOp(only);
  return made.getResult(0);
}

Value OnlineSplit::reduceRest(const RowReduction &reduction, int64_t begin, int64_t length,
                              Value init) {
  linalg::GenericOp only = takeOutputs(reduction.op, {reduction.output}, {}, {}, rewriter);
  for (OpOperand *input : only.getDpsInputOperands())
    input->set([&] {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(only);
      return slice(only, *input, begin, /*parts=*/0, length);
    }());
  only.getDpsInitOperand(0)->set(init);
  return only.getResult(0);
}

void OnlineSplit::rewrite(OpOperand &shiftOperand) {
  linalg::GenericOp ofMaximum = maximum.op, ofSum = sum.op;
  Location loc = ofSum.getLoc();
  SmallVector<int64_t> ranges = ofSum.getStaticLoopRanges();
  int64_t extent = ranges.back(), numRows = 1;
  for (int64_t range : ArrayRef(ranges).drop_back())
    numRows *= range;
  int64_t parts = std::min<int64_t>(extent / kShortestPart, llvm::divideCeil(kParts, numRows));
  int64_t length = llvm::alignDown(extent / parts, kAccess);
  // A divisor leaves no rest.
  for (int64_t divisor = parts; divisor * 2 >= parts; --divisor)
    if (extent % divisor == 0) {
      parts = divisor;
      length = extent / divisor;
      break;
    }
  int64_t head = parts * length, rest = extent - head;
  auto limit = cast<FloatType>(getElementTypeOrSelf(ofMaximum.getResult(0).getType()));
  auto total = cast<FloatType>(getElementTypeOrSelf(ofSum.getResult(sum.output).getType()));

  // The parts of both, one after the other, so that they share a launch.
  DominanceInfo dominance(ofSum->getParentOp());
  bool isEarly = llvm::all_of(ofSum.getDpsInputOperands(), [&](OpOperand *input) {
    return input == &shiftOperand || dominance.properlyDominates(input->get(), ofMaximum);
  });
  rewriter.setInsertionPoint(ofMaximum);
  Value greatest = reduceParts(maximum, parts, length, nullptr, {});
  if (!isEarly)
    rewriter.setInsertionPoint(ofSum);
  SmallVector<int64_t> shape(cast<RankedTensorType>(greatest.getType()).getShape());
  auto rank = static_cast<unsigned>(shape.size());
  AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> parallel(rank, utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(rewriter, loc, shape, limit);
  Value shifts = linalg::GenericOp::create(
                     rewriter, loc, empty.getType(), greatest, empty,
                     ArrayRef<AffineMap>{identity, identity}, parallel,
                     [&](OpBuilder &b, Location loc, ValueRange arguments) {
                       auto number = [&](const APFloat &value) -> Value {
                         return arith::ConstantOp::create(b, loc, b.getFloatAttr(limit, value));
                       };
                       const llvm::fltSemantics &semantics = limit.getFloatSemantics();
                       Value isFinite =
                           arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                                 math::AbsFOp::create(b, loc, arguments[0]),
                                                 number(APFloat::getInf(semantics)));
                       Value finite = arith::SelectOp::create(b, loc, isFinite, arguments[0],
                                                              number(APFloat::getZero(semantics)));
                       linalg::YieldOp::create(b, loc, finite);
                     })
                     .getResult(0);
  Value sums = reduceParts(sum, parts, length, &shiftOperand, shifts);

  // The maximum of all parts and of the rest.
  rewriter.setInsertionPoint(ofMaximum);
  AffineMap rows = identity.dropResult(rank - 1);
  SmallVector<utils::IteratorType> kinds = parallel;
  kinds.back() = utils::IteratorType::reduction;
  Value most = ofMaximum.getDpsInits()[0];
  most = linalg::GenericOp::create(rewriter, loc, most.getType(), greatest, most,
                                   ArrayRef<AffineMap>{identity, rows}, kinds,
                                   [&](OpBuilder &b, Location loc, ValueRange arguments) {
                                     Operation *clone = b.clone(*maximum.combiner);
                                     clone->setOperands({arguments[0], arguments[1]});
                                     linalg::YieldOp::create(b, loc, clone->getResult(0));
                                   })
             .getResult(0);
  if (rest > 0)
    most = reduceRest(maximum, head, rest, most);

  // The sum relative to the shift of the program.
  rewriter.setInsertionPoint(ofSum);
  Value all = ofSum.getDpsInitOperand(sum.output)->get();
  all = linalg::GenericOp::create(
            rewriter, loc, all.getType(), ValueRange{sums, shifts, shiftOperand.get()}, all,
            ArrayRef<AffineMap>{identity, identity, rows, rows}, kinds,
            [&](OpBuilder &b, Location loc, ValueRange arguments) {
              auto extended = [&](Value value) -> Value {
                return value.getType() == total
                           ? value
                           : arith::ExtFOp::create(b, loc, total, value).getResult();
              };
              Value difference =
                  arith::SubFOp::create(b, loc, extended(arguments[1]), extended(arguments[2]));
              Value scaled = arith::MulFOp::create(b, loc, arguments[0],
                                                   math::ExpOp::create(b, loc, difference));
              linalg::YieldOp::create(
                  b, loc, arith::AddFOp::create(b, loc, arguments[3], scaled).getResult());
            })
            .getResult(0);
  if (rest > 0)
    all = reduceRest(sum, head, rest, all);

  // The other outputs of the sum's op.
  SmallVector<unsigned> others;
  for (unsigned output = 0; output < ofSum.getNumResults(); ++output)
    if (output != sum.output)
      others.push_back(output);
  rewriter.replaceAllUsesWith(ofSum.getResult(sum.output), all);
  if (!others.empty()) {
    linalg::GenericOp elements = takeOutputs(ofSum, others, {}, {}, rewriter);
    for (auto [output, value] : llvm::zip_equal(others, elements.getResults()))
      rewriter.replaceAllUsesWith(ofSum.getResult(output), value);
  }
  rewriter.eraseOp(ofSum);
  rewriter.replaceOp(ofMaximum, most);
}

void splitOnlineSums(func::FuncOp kernel) {
  SmallVector<RowReduction> maxima, sums;
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
    for (const RowReduction &reduction : reductionsOf(op)) {
      SmallVector<int64_t> ranges = op.getStaticLoopRanges();
      int64_t numRows = 1;
      for (int64_t range : ArrayRef(ranges).drop_back())
        numRows *= range;
      if (numRows == 0 || numRows >= kBusyTeams || ranges.back() < kLongRow)
        continue;
      if (isa<arith::MaximumFOp, arith::MaxNumFOp>(reduction.combiner) && op.getNumResults() == 1)
        maxima.push_back(reduction);
      // All other outputs are elements that do not depend on the sum.
      bool isSum = isa<arith::AddFOp>(reduction.combiner) &&
                   wholeOutputs(op).size() + 1 == op.getNumResults();
      if (isSum)
        sums.push_back(reduction);
    }
  IRRewriter rewriter(kernel.getContext());
  for (RowReduction &maximum : maxima)
    for (RowReduction &sum : sums) {
      if (!sum.op || !maximum.op->isBeforeInBlock(sum.op) ||
          maximum.op.getStaticLoopRanges() != sum.op.getStaticLoopRanges())
        continue;
      OnlineSplit split(maximum, sum, rewriter);
      if (OpOperand *shift = split.findShift()) {
        split.rewrite(*shift);
        sum.op = {};
        break;
      }
    }
}

} // namespace tessera::codegen
