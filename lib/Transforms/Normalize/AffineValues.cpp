//===- AffineValues.cpp - Integers as functions of loops ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AffineValues.h"

#include "Pieces.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Values beyond this are unknown, so that sums of known values do not overflow.
static constexpr int64_t kFar = int64_t(1) << 40;

/// For a tensor that consists of segments of others, of which one function gives all elements, or
/// that differs only by dimensions of extent 1.
AffineExpr AffineValues::elementsOfMoved(Value tensor, int steps) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return {};
  MLIRContext *context = op->getContext();
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<AffineExpr> places;
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    auto source = cast<RankedTensorType>(op->getOperand(0).getType());
    int64_t next = 0;
    auto skipOnes = [&] {
      while (next < type.getRank() && type.getDimSize(next) == 1)
        ++next;
    };
    for (int64_t extent : source.getShape()) {
      if (extent == 1) {
        places.push_back(getAffineConstantExpr(0, context));
        continue;
      }
      skipOnes();
      if (next == type.getRank() || type.getDimSize(next) != extent)
        return {};
      places.push_back(getAffineDimExpr(next++, context));
    }
    skipOnes();
    if (next != type.getRank())
      return {};
    AffineExpr elements = elementsOf(op->getOperand(0), steps - 1);
    return elements ? elements.replaceDims(places) : AffineExpr();
  }
  Pieces pieces = readPieces(op);
  if (pieces.segments.empty())
    return {};
  int64_t extent = type.getDimSize(pieces.dim);
  compose(pieces, extent);
  for (int64_t d = 0; d < type.getRank(); ++d)
    places.push_back(getAffineDimExpr(d, context));
  AffineExpr along = places[pieces.dim];
  // The longest segment has the function, the others agree with it.
  llvm::stable_sort(pieces.segments, [](const auto &left, const auto &right) {
    return left.second.count > right.second.count;
  });
  auto isZero = [&](AffineExpr difference) {
    return simplifyAffineExpr(difference, type.getRank(), 0) == getAffineConstantExpr(0, context);
  };
  auto at = [&](AffineExpr expr, int64_t place) {
    return expr.replace(along, getAffineConstantExpr(place, context));
  };
  AffineExpr result;
  int64_t covered = 0;
  for (auto &[value, segment] : pieces.segments) {
    AffineExpr elements = elementsOf(value, steps - 1);
    if (!elements || segment.toStep != 1)
      return {};
    places[pieces.dim] = (along - segment.to) * segment.fromStep + segment.from;
    elements = simplifyAffineExpr(elements.replaceDims(places), type.getRank(), 0);
    if (!result)
      result = elements;
    AffineExpr difference = result - elements;
    if (!isZero(segment.count == 1 ? at(difference, segment.to) : difference))
      return {};
    covered += segment.count;
  }
  if (coversResult(pieces, extent))
    return result;
  // A first or last element that is a constant.
  auto fill = dyn_cast_or_null<IntegerAttr>(pieces.fill);
  if (!fill || fill.getType().isInteger(1) || covered != extent - 1 || pieces.segments.size() != 1)
    return {};
  int64_t filled = pieces.segments.front().second.to == 0 ? extent - 1 : 0;
  return isZero(at(result, filled) - fill.getInt()) ? result : AffineExpr();
}

/// The elements of a constant as a function of their indices: the first elements of each dimension
/// determine it, all others verify it.
static AffineExpr elementsOfConstant(DenseElementsAttr elements, MLIRContext *context) {
  constexpr int64_t kMostElements = int64_t(1) << 24;
  auto valueOf = [](const APInt &number) {
    return number.getBitWidth() == 1 ? static_cast<int64_t>(number.getZExtValue())
                                     : number.getSExtValue();
  };
  auto isSmall = [](const APInt &number) { return number.getSignificantBits() <= 40; };
  if (elements.isSplat()) {
    APInt number = elements.getSplatValue<APInt>();
    return isSmall(number) ? getAffineConstantExpr(valueOf(number), context) : AffineExpr();
  }
  ArrayRef<int64_t> shape = elements.getType().getShape();
  if (elements.getNumElements() > kMostElements)
    return {};
  auto numbers = elements.getValues<APInt>();
  APInt first = *numbers.begin();
  if (!isSmall(first))
    return {};
  SmallVector<int64_t> steps(shape.size(), 0);
  AffineExpr expr = getAffineConstantExpr(valueOf(first), context);
  int64_t stride = 1;
  for (int64_t d = std::ssize(shape) - 1; d >= 0; stride *= shape[d--])
    if (shape[d] > 1) {
      APInt second = numbers[static_cast<uint64_t>(stride)];
      if (!isSmall(second))
        return {};
      steps[d] = valueOf(second) - valueOf(first);
      expr = expr + getAffineDimExpr(static_cast<unsigned>(d), context) * steps[d];
    }
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t expected = valueOf(first);
  for (const APInt &number : numbers) {
    if (!isSmall(number) || valueOf(number) != expected)
      return {};
    for (int64_t d = std::ssize(shape) - 1; d >= 0; --d) {
      expected += steps[d];
      if (++index[d] < shape[d])
        break;
      expected -= steps[d] * shape[d];
      index[d] = 0;
    }
  }
  return expr;
}

AffineExpr AffineValues::elementsOf(Value tensor, int steps) {
  DenseElementsAttr elements;
  if (matchPattern(tensor, m_Constant(&elements)) && elements.getElementType().isInteger())
    return elements.getNumElements() > 0 ? elementsOfConstant(elements, tensor.getContext())
                                         : AffineExpr();
  if (steps == 0)
    return {};
  if (AffineExpr moved = elementsOfMoved(tensor, steps))
    return moved;
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic->getNumResults() != 1 || generic.getNumReductionLoops() > 0 ||
      !generic.hasPureTensorSemantics() || !generic.getIndexingMapsArray().back().isIdentity())
    return {};
  return AffineValues(generic, steps - 1).of(generic.getBody()->getTerminator()->getOperand(0));
}

std::optional<AffineValues::Interval> AffineValues::rangeOf(AffineExpr expr) const {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    int64_t extent = extents[dim.getPosition()];
    return extent > 0 && extent < kFar ? std::optional(Interval{0, extent - 1}) : std::nullopt;
  }
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return Interval{number.getValue(), number.getValue()};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<Interval> left = rangeOf(binary.getLHS()), right = rangeOf(binary.getRHS());
  if (!left || !right)
    return std::nullopt;
  Interval result{};
  if (expr.getKind() == AffineExprKind::Add) {
    result = {left->low + right->low, left->high + right->high};
  } else if (expr.getKind() == AffineExprKind::Mul && right->low == right->high) {
    int64_t a, b;
    if (llvm::MulOverflow(left->low, right->low, a) || llvm::MulOverflow(left->high, right->low, b))
      return std::nullopt;
    result = {std::min(a, b), std::max(a, b)};
  } else {
    return std::nullopt;
  }
  return result.low > -kFar && result.high < kFar ? std::optional(result) : std::nullopt;
}

AffineExpr AffineValues::within(AffineExpr expr, Type type) const {
  if (!expr)
    return {};
  expr = simplifyAffineExpr(expr, extents.size(), 0);
  std::optional<Interval> range = rangeOf(expr);
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (!range || (width < 64 && (range->low < -(int64_t(1) << (width - 1)) ||
                                range->high >= int64_t(1) << (width - 1))))
    return {};
  return expr;
}

AffineExpr AffineValues::of(Value value) {
  auto [it, isNew] = known.try_emplace(value);
  if (!isNew)
    return it->second;
  AffineExpr result = compute(value);
  return known[value] = result;
}

AffineExpr AffineValues::compare(arith::CmpIOp compare) {
  AffineExpr left = of(compare.getLhs()), right = left ? of(compare.getRhs()) : AffineExpr();
  if (!right)
    return {};
  std::optional<Interval> by = rangeOf(simplifyAffineExpr(left - right, extents.size(), 0));
  if (!by)
    return {};
  auto decide = [&](bool always, bool never) {
    return always ? constant(1) : never ? constant(0) : AffineExpr();
  };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return decide(by->high < 0, by->low >= 0);
  case arith::CmpIPredicate::sle:
    return decide(by->high <= 0, by->low > 0);
  case arith::CmpIPredicate::sgt:
    return decide(by->low > 0, by->high <= 0);
  case arith::CmpIPredicate::sge:
    return decide(by->low >= 0, by->high < 0);
  case arith::CmpIPredicate::eq:
    return decide(by->low == 0 && by->high == 0, by->low > 0 || by->high < 0);
  case arith::CmpIPredicate::ne:
    return decide(by->low > 0 || by->high < 0, by->low == 0 && by->high == 0);
  default:
    return {};
  }
}

AffineExpr AffineValues::compute(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) && number.getSignificantBits() <= 40)
    return constant(value.getType().isInteger(1) ? number.getZExtValue() : number.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // What a reduction accumulates is no element of its init.
    if (argument.getOwner() != op.getBody() ||
        (argument.getArgNumber() >= op.getNumDpsInputs() && op.getNumReductionLoops() > 0))
      return {};
    AffineExpr elements = elementsOf(op->getOperand(argument.getArgNumber()), steps);
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    return elements ? simplifyAffineExpr(elements.replaceDims(map.getResults()), extents.size(), 0)
                    : AffineExpr();
  }
  Operation *producer = value.getDefiningOp();
  if (producer->getBlock() != op.getBody())
    return {};
  if (auto index = dyn_cast<linalg::IndexOp>(producer))
    return getAffineDimExpr(index.getDim(), op.getContext());
  if (auto comparison = dyn_cast<arith::CmpIOp>(producer))
    return compare(comparison);
  auto operand = [&](unsigned n) { return of(producer->getOperand(n)); };
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(producer))
    return producer->getOperand(0).getType().isInteger(1) ? AffineExpr()
                                                          : within(operand(0), value.getType());
  if (isa<arith::ExtUIOp>(producer)) {
    AffineExpr expr = within(operand(0), value.getType());
    std::optional<Interval> range = expr ? rangeOf(expr) : std::nullopt;
    return range && range->low >= 0 ? expr : AffineExpr();
  }
  if (isa<arith::SelectOp>(producer)) {
    auto condition = dyn_cast_or_null<AffineConstantExpr>(operand(0));
    return condition ? operand(condition.getValue() ? 1 : 2) : AffineExpr();
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp>(producer))
    return {};
  AffineExpr left = value.getType().isInteger(1) ? AffineExpr() : operand(0);
  AffineExpr right = left ? operand(1) : AffineExpr();
  if (!right)
    return {};
  if (isa<arith::AddIOp>(producer))
    return within(left + right, value.getType());
  if (isa<arith::SubIOp>(producer))
    return within(left - right, value.getType());
  if (isa<arith::MulIOp>(producer))
    return isa<AffineConstantExpr>(left) || isa<AffineConstantExpr>(right)
               ? within(left * right, value.getType())
               : AffineExpr();
  std::optional<Interval> by = rangeOf(simplifyAffineExpr(left - right, extents.size(), 0));
  if (!by || (by->low < 0 && by->high > 0))
    return {};
  return (by->low >= 0) == isa<arith::MaxSIOp>(producer) ? left : right;
}

AffineExpr AffineValues::ofIndex(Value value, int64_t extent) {
  if (AffineExpr known = of(value))
    return known;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return {};
    auto producer = op.getInputs()[argument.getArgNumber()].getDefiningOp<linalg::GenericOp>();
    if (steps == 0 || !producer || producer->getNumResults() != 1 ||
        producer.getNumReductionLoops() > 0 || !producer.hasPureTensorSemantics() ||
        !producer.getIndexingMapsArray().back().isIdentity())
      return {};
    AffineExpr elements = AffineValues(producer, steps - 1)
                              .ofIndex(producer.getBody()->getTerminator()->getOperand(0), extent);
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    return elements ? simplifyAffineExpr(elements.replaceDims(map.getResults()), extents.size(), 0)
                    : AffineExpr();
  }
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || select->getBlock() != op.getBody())
    return {};
  auto isBeyond = [&](Value choice) {
    auto number = dyn_cast_or_null<AffineConstantExpr>(of(choice));
    return number && (number.getValue() < 0 || number.getValue() >= extent);
  };
  if (isBeyond(select.getFalseValue()))
    return ofIndex(select.getTrueValue(), extent);
  if (isBeyond(select.getTrueValue()))
    return ofIndex(select.getFalseValue(), extent);
  return {};
}

Value dist::writeAffine(OpBuilder &b, Location loc, AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return linalg::IndexOp::create(b, loc, dim.getPosition());
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(b, loc, number.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value left = writeAffine(b, loc, binary.getLHS()), right = writeAffine(b, loc, binary.getRHS());
  if (expr.getKind() == AffineExprKind::Mul)
    return arith::MulIOp::create(b, loc, left, right);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return arith::FloorDivSIOp::create(b, loc, left, right);
  return arith::AddIOp::create(b, loc, left, right);
}

Value dist::readPart(OpBuilder &b, Location loc, Value tensor, AffineMap map,
                     ArrayRef<int64_t> extents) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, expr] : llvm::zip_equal(shape, map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      size = std::min(size, extents[dim.getPosition()]);
  if (type.getShape() == ArrayRef(shape))
    return tensor;
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, type.clone(shape), tensor, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), shape), strides);
}
