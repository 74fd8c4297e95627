//===- ScanReverse.cpp - The reverse of scans -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reverse of a scan r[i] = f(r[i - 1], x[i]) is another scan. With L[i] and R[i]
// the Jacobians of f by its first and second argument at step i, one row for each
// yielded value,
//
//   s[i] = dr[i] + L[i + 1]^T s[i + 1],     dx[i] = R[i]^T s[i],     R[0] = 1
//
// and s is a scan from the other end of the maps s -> A s + u with A = L^T, which
// compose to maps of the same form:
//
//   (A, u), then (A', u')  =  (A' A, A' u + u')
//
// Entries of the Jacobians that are zero whatever the values stay out of the scan, and
// values that do not depend on each other have scans of their own. Of sums L and R are
// 1: the reversed scan of dr. An exclusive scan is the inclusive one, moved by a step.
//
//===----------------------------------------------------------------------===//

#include "DimensionOps.h"
#include "Reverse.h"
#include "ScalarRules.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

using Values = SmallVector<Value>;

static Value constantOf(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// A scan with a combiner written by `body`, of values before and behind.
static Values writeScan(OpBuilder &b, ext::ScanOp like, bool reverse, bool exclusive,
                        ValueRange inputs, ArrayRef<Attribute> identity,
                        function_ref<Values(OpBuilder &, ValueRange, ValueRange)> body) {
  Location loc = like.getLoc();
  auto scan = ext::ScanOp::create(
      b, loc, inputs.getTypes(), like.getDimensionAttr(), exclusive ? b.getUnitAttr() : UnitAttr(),
      reverse ? b.getUnitAttr() : UnitAttr(), inputs, b.getArrayAttr(identity));
  Block &block = scan.getCombiner().emplaceBlock();
  for (int side = 0; side < 2; ++side)
    for (Value input : inputs)
      block.addArgument(getElementTypeOrSelf(input.getType()), loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  ext::YieldOp::create(inner, loc,
                       body(inner, block.getArguments().take_front(inputs.size()),
                            block.getArguments().drop_front(inputs.size())));
  return Values(scan.getResults());
}

/// Whether the combiner adds each input separately.
static bool addsOnly(ext::ScanOp op) {
  Block &body = op.getBody();
  size_t count = op.getInputs().size();
  for (auto [index, yielded] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto add = yielded.getDefiningOp<arith::AddFOp>();
    Value before = body.getArgument(index), behind = body.getArgument(count + index);
    if (!add || !((add.getLhs() == before && add.getRhs() == behind) ||
                  (add.getLhs() == behind && add.getRhs() == before)))
      return false;
  }
  return true;
}

static Values addAll(OpBuilder &b, Location loc, ValueRange before, ValueRange behind) {
  Values sums;
  for (auto [x, y] : llvm::zip(before, behind))
    sums.push_back(arith::AddFOp::create(b, loc, x, y));
  return sums;
}

/// Square matrices of values by the numbers of a scan's inputs; null entries are zero.
class Matrix {
public:
  explicit Matrix(unsigned size) : size(size), entries(size * size) {}
  Value &operator()(unsigned row, unsigned column) { return entries[row * size + column]; }
  Value operator()(unsigned row, unsigned column) const { return entries[row * size + column]; }

  const unsigned size;

private:
  Values entries;
};

/// The Jacobians of a combiner: the derivative of the value that row yields, by an argument.
struct Jacobians {
  Matrix before, next;
};

/// For each yielded value, the arguments of the combiner on which it depends through floats.
static SmallVector<llvm::SmallBitVector> dependencesOf(Block &body) {
  llvm::DenseMap<Value, llvm::SmallBitVector> known; // looked up, never iterated
  auto of = [&](Value value) {
    auto it = known.find(value);
    return it != known.end() ? it->second : llvm::SmallBitVector(body.getNumArguments());
  };
  for (BlockArgument argument : body.getArguments())
    if (isDifferentiable(argument.getType()))
      known.try_emplace(argument, of(argument)).first->second.set(argument.getArgNumber());
  for (Operation &op : body.without_terminator()) {
    llvm::SmallBitVector joined(body.getNumArguments());
    for (Value operand : op.getOperands())
      joined |= of(operand);
    for (Value result : op.getResults())
      if (isDifferentiable(result.getType()))
        known[result] = joined;
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(), of);
}

/// The derivatives of a yielded value by the arguments of the combiner, null where they are zero;
/// `copies` has the forward values. Fails at an op without a derivative.
static FailureOr<Values> derivativesOf(OpBuilder &b, Block &body, Value yielded,
                                       const IRMapping &copies) {
  Location loc = yielded.getLoc();
  llvm::DenseMap<Value, Value> cotangents; // looked up, never iterated
  cotangents[yielded] = constantOf(b, loc, yielded.getType(), 1);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    Values incoming = llvm::map_to_vector(op.getResults(),
                                          [&](Value result) { return cotangents.lookup(result); });
    if (op.getNumOperands() == 0 || llvm::none_of(incoming, [](Value value) { return value; }))
      continue;
    ScalarReverse rule{&op, incoming, [&](Value value) { return copies.lookupOrDefault(value); },
                       [&](unsigned i) { return isDifferentiable(op.getOperand(i).getType()); },
                       [&](unsigned i, Value value) {
                         Value &sum = cotangents[op.getOperand(i)];
                         sum = addScalars(b, loc, sum, value);
                       }};
    if (failed(reverseScalar(b, rule)))
      return failure();
  }
  return llvm::map_to_vector(body.getArguments(),
                             [&](Value argument) { return cotangents.lookup(argument); });
}

/// An elementwise op over tensors of the scan's shape.
static Values elementwise(OpBuilder &b, ext::ScanOp op, ValueRange inputs, TypeRange results,
                          function_ref<Values(OpBuilder &, ValueRange)> body) {
  Location loc = op.getLoc();
  AffineMap map = b.getMultiDimIdentityMap(op.getShape().size());
  Values empties = llvm::map_to_vector(results, [&](Type type) -> Value {
    return tensor::EmptyOp::create(b, loc, op.getShape(), getElementTypeOrSelf(type));
  });
  auto generic = linalg::GenericOp::create(
      b, loc, results, inputs, empties, SmallVector<AffineMap>(inputs.size() + results.size(), map),
      SmallVector<utils::IteratorType>(op.getShape().size(), utils::IteratorType::parallel),
      [&](OpBuilder &inner, Location, ValueRange args) {
        linalg::YieldOp::create(inner, loc, body(inner, args.take_front(inputs.size())));
      });
  return Values(generic.getResults());
}

/// The Jacobians at tensors of the combiner's arguments, those of the prefix first.
static FailureOr<Jacobians> jacobiansOf(OpBuilder &b, ext::ScanOp op, ValueRange arguments) {
  Block &body = op.getBody();
  ValueRange yielded = body.getTerminator()->getOperands();
  unsigned count = yielded.size();
  SmallVector<llvm::SmallBitVector> reads = dependencesOf(body);
  SmallVector<Type> types;
  for (const llvm::SmallBitVector &row : reads)
    for (unsigned argument : row.set_bits())
      types.push_back(arguments[argument].getType());
  bool isKnown = true;
  Values entries = elementwise(b, op, arguments, types, [&](OpBuilder &inner, ValueRange scalars) {
    IRMapping copies;
    copies.map(body.getArguments(), scalars);
    for (Operation &each : body.without_terminator())
      inner.clone(each, copies);
    Values results;
    for (auto [row, value] : llvm::enumerate(yielded)) {
      if (reads[row].none())
        continue;
      FailureOr<Values> slopes = derivativesOf(inner, body, value, copies);
      isKnown &= succeeded(slopes);
      for (unsigned argument : reads[row].set_bits()) {
        Value slope = isKnown ? (*slopes)[argument] : Value();
        results.push_back(slope ? slope
                                : constantOf(inner, op.getLoc(), scalars[argument].getType(), 0));
      }
    }
    return results;
  });
  if (!isKnown)
    return failure();
  Jacobians found{Matrix(count), Matrix(count)};
  auto next = entries.begin();
  for (auto [row, arguments] : llvm::enumerate(reads))
    for (unsigned argument : arguments.set_bits())
      (argument < count ? found.before : found.next)(row, argument % count) = *next++;
  return found;
}

/// The inputs whose cotangents depend on each other, in order.
static SmallVector<SmallVector<unsigned>> groupsOf(const Matrix &slopes) {
  llvm::IntEqClasses classes(slopes.size);
  for (unsigned row = 0; row < slopes.size; ++row)
    for (unsigned column = 0; column < slopes.size; ++column)
      if (slopes(row, column))
        classes.join(row, column);
  classes.compress();
  SmallVector<SmallVector<unsigned>> groups(classes.getNumClasses());
  for (unsigned input = 0; input < slopes.size; ++input)
    groups[classes[input]].push_back(input);
  return groups;
}

/// Adds zeros where products of such matrices may have other values: the entries of all powers.
static void closeUnderProducts(Matrix &matrix, function_ref<Value(unsigned column)> zeroOf) {
  for (unsigned middle = 0; middle < matrix.size; ++middle)
    for (unsigned row = 0; row < matrix.size; ++row)
      for (unsigned column = 0; column < matrix.size; ++column)
        if (!matrix(row, column) && matrix(row, middle) && matrix(middle, column))
          matrix(row, column) = zeroOf(row);
}

/// The sum of the products of a row and a column; null if all are zero.
static Value product(OpBuilder &b, Location loc, const Matrix &left, unsigned row,
                     function_ref<Value(unsigned)> column) {
  Value sum;
  for (unsigned k = 0; k < left.size; ++k)
    if (Value factor = column(k); factor && left(row, k))
      sum = addScalars(b, loc, sum, arith::MulFOp::create(b, loc, left(row, k), factor));
  return sum;
}

/// s[i] = A[i] s[i + 1] + u[i], from the end at which the scan `op` ends; A is closed under
/// products.
static Values recur(OpBuilder &b, ext::ScanOp op, const Matrix &factors, ArrayRef<Value> terms) {
  unsigned size = terms.size();
  Values inputs;
  SmallVector<Attribute> identity;
  for (unsigned row = 0; row < size; ++row)
    for (unsigned column = 0; column < size; ++column)
      if (Value factor = factors(row, column)) {
        inputs.push_back(factor);
        identity.push_back(
            b.getFloatAttr(getElementTypeOrSelf(factor.getType()), row == column ? 1 : 0));
      }
  inputs.append(terms.begin(), terms.end());
  for (Value term : terms)
    identity.push_back(b.getZeroAttr(getElementTypeOrSelf(term.getType())));
  // The factors of a side of the combiner.
  auto matrixOf = [&](ValueRange scalars) {
    Matrix matrix(size);
    auto next = scalars.begin();
    for (unsigned row = 0; row < size; ++row)
      for (unsigned column = 0; column < size; ++column)
        if (factors(row, column))
          matrix(row, column) = *next++;
    return matrix;
  };
  Location loc = op.getLoc();
  auto compose = [&](OpBuilder &inner, ValueRange before, ValueRange next) {
    Matrix first = matrixOf(before), second = matrixOf(next);
    Values results;
    for (unsigned row = 0; row < size; ++row)
      for (unsigned column = 0; column < size; ++column)
        if (second(row, column)) {
          Value entry =
              product(inner, loc, second, row, [&](unsigned k) { return first(k, column); });
          // Products of a pattern like this are zero.
          results.push_back(
              entry ? entry
                    : arith::MulFOp::create(inner, loc, first(row, column), second(row, column)));
        }
    for (unsigned row = 0; row < size; ++row) {
      Value moved =
          product(inner, loc, second, row, [&](unsigned k) { return before.take_back(size)[k]; });
      results.push_back(addScalars(inner, loc, moved, next.take_back(size)[row]));
    }
    return results;
  };
  Values results = writeScan(b, op, !op.getReverse(), false, inputs, identity, compose);
  return Values(ArrayRef<Value>(results).take_back(size));
}

LogicalResult dist::reverseScan(Reverse &reverse, ext::ScanOp op, ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  auto zeroTensor = [&](Value like) -> Value {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(like.getType()));
  };
  Values arriving(cotangents);
  if (addsOnly(op)) {
    for (auto [value, result] : llvm::zip(arriving, op.getResults()))
      value = value ? value : zeroTensor(result);
    SmallVector<Attribute> zeros = llvm::map_to_vector(arriving, [&](Value value) -> Attribute {
      return b.getZeroAttr(getElementTypeOrSelf(value.getType()));
    });
    Values back = writeScan(b, op, !op.getReverse(), op.getExclusive(), arriving, zeros,
                            [&](OpBuilder &inner, ValueRange before, ValueRange next) {
                              return addAll(inner, loc, before, next);
                            });
    for (auto [input, value] : llvm::zip(op.getInputs(), back))
      reverse.add(input, value);
    return success();
  }
  unsigned count = op.getInputs().size();
  int64_t dim = op.getDim(), extent = op.getShape()[dim];
  if (llvm::is_contained(op.getShape(), 0) || (extent == 1 && op.getExclusive()))
    return success();
  if (extent == 1) { // the elements themselves
    for (auto [input, value] : llvm::zip(op.getInputs(), arriving))
      if (value)
        reverse.add(input, value);
    return success();
  }
  bool isReverse = op.getReverse();
  auto shift = [&](Value value, bool later) -> Value { // by one step of the scan
    if (!value)
      return {};
    bool up = later != isReverse;
    Value kept = sliceDim(b, loc, value, dim, up ? 0 : 1, extent - 1);
    return padDim(b, loc, kept, dim, up ? 1 : 0, up ? 0 : 1);
  };
  // The values before each step; the first one has none.
  Values arguments;
  for (Value result : op.getResults())
    arguments.push_back(op.getExclusive() ? result : shift(result, true));
  if (op.getExclusive())
    for (Value &value : arriving)
      value = shift(value, false);
  arguments.append(op.getInputs().begin(), op.getInputs().end());
  FailureOr<Jacobians> slopes = jacobiansOf(b, op, arguments);
  if (failed(slopes))
    return noDerivative(op, "an op of its region has no derivative; stop the gradient with "
                            "dist.stop_gradient");
  Values sums(count); // null for zero
  for (ArrayRef<unsigned> group : groupsOf(slopes->before)) {
    if (llvm::none_of(group, [&](unsigned input) { return arriving[input]; }))
      continue;
    auto elementOf = [&](unsigned input) {
      return getElementTypeOrSelf(op.getInputs()[input].getType());
    };
    if (!llvm::all_equal(llvm::map_range(group, elementOf)))
      return noDerivative(op, "values of different element types depend on each other; convert "
                              "them to one type, or stop the gradient with dist.stop_gradient");
    Matrix factors(group.size());
    Values terms;
    for (auto [row, input] : llvm::enumerate(group)) {
      terms.push_back(arriving[input] ? arriving[input] : zeroTensor(op.getResult(input)));
      for (auto [column, yielded] : llvm::enumerate(group))
        factors(row, column) = shift(slopes->before(yielded, input), false);
    }
    closeUnderProducts(factors, [&](unsigned row) { return zeroTensor(terms[row]); });
    for (auto [input, sum] : llvm::zip(group, recur(b, op, factors, terms)))
      sums[input] = sum;
  }
  for (auto [number, x] : llvm::enumerate(op.getInputs())) {
    // The first step yields its own element.
    Values read;
    if (sums[number])
      read.push_back(sums[number]);
    for (unsigned row = 0; row < count; ++row)
      if (sums[row] && slopes->next(row, number))
        llvm::append_values(read, sums[row], slopes->next(row, number));
    if (read.empty() || !reverse.isActive(x))
      continue;
    Values found = elementwise(b, op, read, x.getType(), [&](OpBuilder &inner, ValueRange scalars) {
      Value zero = constantOf(inner, loc, getElementTypeOrSelf(x.getType()), 0);
      Value own = sums[number] ? scalars.front() : zero, sum;
      for (ValueRange rest = scalars.drop_front(sums[number] ? 1 : 0); !rest.empty();
           rest = rest.drop_front(2))
        sum = addScalars(inner, loc, sum, arith::MulFOp::create(inner, loc, rest[0], rest[1]));
      Value first = arith::ConstantIndexOp::create(inner, loc, isReverse ? extent - 1 : 0);
      Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq,
                                            linalg::IndexOp::create(inner, loc, dim), first);
      return Values{arith::SelectOp::create(inner, loc, isFirst, own, sum ? sum : zero)};
    });
    reverse.add(x, found[0]);
  }
  return success();
}
