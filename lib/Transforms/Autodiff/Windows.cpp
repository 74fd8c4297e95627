//===- Windows.cpp - Inverse windows of convolutions and pools ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A forward op reads x[s o + t k + c] for outputs o and window positions k. The
// cotangent of x[p] is the sum over all (o, k) with s o + t k + c = p. As a gather:
//
//   s = 1:  k = K-1-j,  o = p + t j - (t (K-1) + c): the terms are padded along o
//           and flipped along k, then read like any window.
//   t = 1:  p = s q + r,  k = s (J-1-j) + r,  o = q + j - (J-1)  with J = ceil(K/s):
//           each of the s phases r is a window of stride 1 over its share of the
//           kernel; the phases are interleaved by a reshape. There are no products
//           with the zeros of a dilated tensor, and no gaps between windows if K =
//           s.
//
// A window of a padded tensor reads its source with c < 0. For s > 1, zeros in front of the kernel
// then make c a multiple of s, by which o is shifted: the phases are those of the source's
// elements.
//
// If s and t are both above 1 the kernel is dilated first. Terms beyond the ends are zero because a
// factor is padded with zeros; otherwise they are masked by their indices.
//
//===----------------------------------------------------------------------===//

#include "BodyReverse.h"
#include "DimensionOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// s o + t k + c of one dimension of the target, and its new loops.
struct Window {
  AffineExpr expr;
  unsigned o = 0;
  std::optional<unsigned> k;
  int64_t s = 1, t = 1, c = 0;
  int64_t target = 0;         ///< extent of the target's dimension
  int64_t numO = 0, numK = 1; ///< extents of the loops o and k
  int64_t shift = 0;          ///< elements of padding before the target, where others are read
  int64_t kernel = 1,
          spread = 1;         ///< the dilated kernel's extent, and its step
  int64_t front = 0;          ///< zeros in front of it, counted in its extent
  int64_t numQ = 0, numJ = 1; ///< extents of the new loops
  int64_t low = 0, high = 0;  ///< padding along o
  unsigned r = 0;             ///< the loop over phases if s > 1

  void plan() {
    kernel = numK;
    if (s > 1) {
      spread = t;
      kernel = t * (numK - 1) + 1;
      t = 1;
    }
    int64_t before = s > 1 && c < 0 ? (-c + s - 1) / s : 0; // of o
    front = s > 1 && c < 0 ? c + s * before : 0;
    kernel += front;
    numJ = (kernel + s - 1) / s;
    numQ = s > 1 ? (target - begin() + s - 1) / s : target;
    low = t * (numJ - 1) + (s > 1 ? -before : c);
    high = numQ + t * (numJ - 1) - low - numO;
  }
  /// The first element of the target that is in a phase.
  int64_t begin() const { return std::max<int64_t>(c, 0); }
  bool padsO() const { return low || high; }
  bool padsK() const { return spread > 1 || front > 0 || numJ * s > kernel; }
};

} // namespace

static LogicalResult noRule(const BodyTarget &target, unsigned d) {
  std::string text;
  llvm::raw_string_ostream(text) << target.places[d].expr;
  return mlir::emitError(target.loc)
         << "an operand is read at '" << text << "' in dimension " << d
         << ", which has no derivative; an index must be a loop, or 'stride * i + dilation * k + "
            "c' with two loops that no other dimension has";
}

/// Matches `s o + t k + c`; nothing for other expressions.
static std::optional<Window> findWindow(const LoopNest &nest, const BodyTarget &target,
                                        unsigned d) {
  Window window;
  window.expr = target.places[d].expr;
  window.shift = target.places[d].shift;
  SmallVector<int64_t> coefficients(nest.extents.size());
  bool linear = true;
  std::function<void(AffineExpr, int64_t)> add = [&](AffineExpr expr, int64_t scale) {
    if (int64_t loop = loopOf(expr); loop >= 0) {
      coefficients[loop] += scale;
    } else if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      window.c += scale * constant.getValue();
    } else {
      auto binary = cast<AffineBinaryOpExpr>(expr);
      auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      if (expr.getKind() == AffineExprKind::Add)
        return add(binary.getLHS(), scale), add(binary.getRHS(), scale);
      if (expr.getKind() == AffineExprKind::Mul && factor)
        return add(binary.getLHS(), scale * factor.getValue());
      linear = false;
    }
  };
  add(window.expr, 1);
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < coefficients.size(); ++loop) {
    linear &= coefficients[loop] >= 0;
    if (coefficients[loop])
      loops.push_back(loop);
  }
  for (auto [other, place] : llvm::enumerate(target.places))
    for (unsigned loop : loops)
      linear &= other == d || !place.expr || !place.expr.isFunctionOfDim(loop);
  if (!linear || loops.empty() || loops.size() > 2 || window.c < 0)
    return std::nullopt;
  window.c -= window.shift;
  // The loop that moves the window is the one in the results.
  if (loops.size() == 2 && !nest.resultLoops.test(loops[0]) && nest.resultLoops.test(loops[1]))
    std::swap(loops[0], loops[1]);
  window.o = loops[0];
  window.s = coefficients[loops[0]];
  window.numO = nest.extents[window.o];
  if (loops.size() == 2) {
    window.k = loops[1];
    window.t = coefficients[loops[1]];
    window.numK = nest.extents[loops[1]];
  }
  window.target = cast<RankedTensorType>(target.value.getType()).getDimSize(d);
  window.plan();
  return window;
}

bool dist::skipsPadding(const LoopNest &nest, const BodyTarget &target) {
  return nest.block->getOps<tensor::ExtractOp>().empty() &&
         llvm::all_of(llvm::enumerate(target.places), [&](const auto &entry) {
           const auto &[d, place] = entry;
           if (place.shift == 0 && !place.isPadded)
             return true;
           std::optional<Window> window;
           if (place.expr && loopOf(place.expr) < 0)
             window = findWindow(nest, target, d);
           return window && window->low >= 0 && window->high >= 0;
         });
}

/// Whether a scalar is zero, and not NaN, if the inputs in `zero` are.
static bool vanishes(Value scalar, const llvm::SmallBitVector &zero) {
  if (auto argument = dyn_cast<BlockArgument>(scalar))
    return zero.test(argument.getArgNumber());
  Operation *op = scalar.getDefiningOp();
  if (matchPattern(scalar, m_AnyZeroFloat()))
    return true;
  auto operand = [&](unsigned i) { return vanishes(op->getOperand(i), zero); };
  // The other factors must be finite: inputs, and simple functions of them.
  std::function<bool(Value)> finite = [&](Value value) {
    Operation *source = value.getDefiningOp();
    return !source || isa<arith::ConstantOp>(source) ||
           (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::ExtFOp,
                arith::TruncFOp, arith::SelectOp, arith::CmpFOp, arith::CmpIOp, linalg::IndexOp,
                arith::AddIOp, arith::MulIOp, arith::IndexCastOp, arith::MaximumFOp,
                arith::MinimumFOp, math::TanhOp, math::ErfOp, math::SinOp, math::CosOp>(source) &&
            llvm::all_of(source->getOperands(), finite));
  };
  if (isa<arith::MulFOp>(op))
    return (operand(0) && finite(op->getOperand(1))) || (operand(1) && finite(op->getOperand(0)));
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return operand(0) && operand(1);
  if (isa<arith::SelectOp>(op))
    return operand(1) && operand(2);
  if (isa<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op))
    return operand(0);
  return false;
}

/// Replaces the indices of o and k in the body by those of the new loops; returns the condition
/// that both are in range, as far as it needs a check.
static Value rewriteIndices(LoopNest &nest, const Window &w, bool askO, bool askK) {
  SmallVector<linalg::IndexOp> old;
  for (auto index : nest.block->getOps<linalg::IndexOp>())
    if (index.getDim() == w.o || (w.k && index.getDim() == *w.k))
      old.push_back(index);
  if (old.empty() && !askO && !askK)
    return {};
  OpBuilder b = nest.bodyEnd();
  b.setInsertionPointToStart(nest.block.get());
  Location loc = nest.loc;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto plus = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  auto times = [&](Value x, int64_t y) -> Value {
    return y == 1 ? x : arith::MulIOp::create(b, loc, x, number(y)).getResult();
  };
  auto test = [&](arith::CmpIPredicate predicate, Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, number(y));
  };
  Value j = w.k && w.numJ > 1 ? linalg::IndexOp::create(b, loc, *w.k).getResult() : number(0);
  Value o = plus(plus(linalg::IndexOp::create(b, loc, w.o), times(j, w.t)), number(-w.low));
  Value tap = times(arith::SubIOp::create(b, loc, number(w.numJ - 1), j), w.s);
  if (w.s > 1)
    tap = plus(tap, linalg::IndexOp::create(b, loc, w.r));
  if (w.front > 0)
    tap = plus(tap, number(-w.front));
  Value k = w.spread == 1 ? tap : arith::DivSIOp::create(b, loc, tap, number(w.spread)).getResult();
  Value inside;
  auto ask = [&](Value condition) {
    inside = inside ? arith::AndIOp::create(b, loc, inside, condition).getResult() : condition;
  };
  if (askO) {
    ask(test(arith::CmpIPredicate::sge, o, 0));
    ask(test(arith::CmpIPredicate::slt, o, w.numO));
  }
  if (askK) {
    ask(test(arith::CmpIPredicate::slt, tap, w.kernel - w.front));
    if (w.front > 0)
      ask(test(arith::CmpIPredicate::sge, tap, 0));
    if (w.spread > 1) {
      Value beside = arith::RemSIOp::create(b, loc, tap, number(w.spread));
      ask(test(arith::CmpIPredicate::eq, beside, 0));
    }
  }
  for (linalg::IndexOp index : old) {
    index.getResult().replaceAllUsesWith(index.getDim() == w.o ? o : k);
    index.erase();
  }
  return inside;
}

/// Reads dimension `d` of an input at the new loops; fails if it also depends on others.
static LogicalResult unwindDim(LoopNest &nest, LoopNest::Input &input, unsigned d,
                               const Window &w) {
  OpBuilder &b = nest.b;
  SmallVector<AffineExpr> exprs(input.map.getResults());
  AffineExpr q = b.getAffineDimExpr(w.o), none = b.getAffineConstantExpr(0);
  AffineExpr j = w.k && w.numJ > 1 ? b.getAffineDimExpr(*w.k) : none;
  AffineExpr r = b.getAffineDimExpr(w.r);
  SmallVector<AffineExpr, 2> read;
  Value tensor = input.value;
  // A dimension that is read backwards is flipped, and read forwards.
  for (unsigned loop : {w.o, w.k.value_or(w.o)}) {
    int64_t extent = nest.extents[loop];
    if (exprs[d] == b.getAffineConstantExpr(extent - 1) - b.getAffineDimExpr(loop) &&
        cast<RankedTensorType>(tensor.getType()).getDimSize(d) == extent) {
      tensor = flipDim(b, nest.loc, tensor, d);
      exprs[d] = b.getAffineDimExpr(loop);
    }
  }
  if (exprs[d] == w.expr) {
    read = {q};
    // The elements of the target, or of its phases.
    int64_t from = w.s > 1 ? w.begin() : 0, length = std::min(w.target - from, w.s * w.numQ);
    tensor = sliceDim(b, nest.loc, tensor, d, w.shift + from, length);
    if (w.s > 1) {
      tensor = padDim(b, nest.loc, tensor, d, 0, w.s * w.numQ - length);
      tensor = splitDim(b, nest.loc, tensor, d, w.s);
      read.push_back(r);
    }
  } else if (loopOf(exprs[d]) == static_cast<int64_t>(w.o)) {
    tensor = padDim(b, nest.loc, tensor, d, w.low, w.high);
    read = {q + j * w.t};
  } else if (w.k && loopOf(exprs[d]) == static_cast<int64_t>(*w.k)) {
    tensor = spreadDim(b, nest.loc, tensor, d, w.spread);
    tensor = padDim(b, nest.loc, tensor, d, w.front, w.numJ * w.s - w.kernel);
    read = {j};
    if (w.s > 1 && w.numJ == 1) {
      read = {r};
    } else if (w.s > 1) {
      tensor = splitDim(b, nest.loc, tensor, d, w.s);
      read.push_back(r);
    }
    if (w.s == 1 || w.numJ > 1)
      tensor = flipDim(b, nest.loc, tensor, d);
  } else {
    return failure();
  }
  input.value = tensor;
  exprs.erase(exprs.begin() + d);
  exprs.insert(exprs.begin() + d, read.begin(), read.end());
  input.map = AffineMap::get(nest.extents.size(), 0, exprs, b.getContext());
  return success();
}

static LogicalResult unwind(LoopNest &nest, Value &scalar, Window &w) {
  llvm::SmallBitVector overO(nest.inputs.size()), overK(nest.inputs.size());
  for (auto [i, input] : llvm::enumerate(nest.inputs))
    for (AffineExpr expr : input.map.getResults()) {
      if (loopOf(expr) == static_cast<int64_t>(w.o))
        overO.set(i);
      if (w.k && loopOf(expr) == static_cast<int64_t>(*w.k))
        overK.set(i);
    }
  bool askO = w.padsO() && !vanishes(scalar, overO);
  bool askK = w.padsK() && !vanishes(scalar, overK);
  bool reads = !nest.block->getOps<tensor::ExtractOp>().empty();
  if (reads && (w.padsO() || w.padsK()))
    return failure(); // would read out of bounds
  if (w.s > 1)
    w.r = nest.addLoop(w.s);
  for (LoopNest::Input &input : nest.inputs)
    for (int64_t d = static_cast<int64_t>(input.map.getNumResults()) - 1; d >= 0; --d) {
      AffineExpr expr = input.map.getResult(d);
      if (expr.isFunctionOfDim(w.o) || (w.k && expr.isFunctionOfDim(*w.k)))
        if (failed(unwindDim(nest, input, d, w)))
          return failure();
    }
  nest.extents[w.o] = w.numQ;
  if (w.k)
    nest.extents[*w.k] = w.numJ;
  if (Value inside = rewriteIndices(nest, w, askO, askK)) {
    OpBuilder b = nest.bodyEnd();
    scalar =
        arith::SelectOp::create(b, nest.loc, inside, scalar, zeros(b, nest.loc, scalar.getType()));
  }
  return success();
}

FailureOr<Unwound> dist::unwindWindows(LoopNest &nest, Value &scalar, const BodyTarget &target) {
  Unwound result;
  SmallVector<Window> windows;
  SmallVector<unsigned> at;
  for (auto [d, place] : llvm::enumerate(target.places)) {
    Unwound::Dim &dim = result.dims.emplace_back();
    if (!place.expr || loopOf(place.expr) >= 0 || isa<AffineConstantExpr>(place.expr))
      continue;
    std::optional<Window> window = findWindow(nest, target, d);
    if (!window || failed(unwind(nest, scalar, *window)))
      return noRule(target, d);
    dim.loops = {nest.b.getAffineDimExpr(window->o)};
    dim.extents = {window->numQ};
    if (window->s > 1) {
      dim.loops.push_back(nest.b.getAffineDimExpr(window->r));
      dim.extents.push_back(window->s);
    }
    windows.push_back(*window);
    at.push_back(d);
  }
  OpBuilder &b = nest.b;
  Location loc = nest.loc;
  SmallVector<Unwound::Dim> dims = result.dims;
  result.finish = [=, &b](Value tensor) -> Value {
    SmallVector<ReassociationIndices> groups;
    int64_t next = 0;
    bool splits = false;
    for (const Unwound::Dim &dim : dims) {
      groups.emplace_back().push_back(next++);
      if (dim.loops.size() > 1) {
        groups.back().push_back(next++);
        splits = true;
      }
    }
    if (splits)
      tensor = tensor::CollapseShapeOp::create(b, loc, tensor, groups);
    for (auto [d, w] : llvm::zip_equal(at, windows))
      if (w.s > 1) {
        tensor = sliceDim(b, loc, tensor, d, 0, w.target - w.begin());
        tensor = padDim(b, loc, tensor, d, w.begin(), 0);
      }
    return tensor;
  };
  return result;
}
