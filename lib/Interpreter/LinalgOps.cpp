//===- LinalgOps.cpp - linalg ops, point by point -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "tessera/Dialect/Dist/Rules/NarrowSums.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

namespace {

/// The access to one operand by an indexing map, from iteration to linear position.
class Access {
public:
  /// Fails if the map leaves the tensor somewhere in the iteration space; `index` is then an
  /// out-of-bounds index of dimension `dim`.
  static FailureOr<Access> get(AffineMap map, const Tensor &tensor, ArrayRef<int64_t> ranges,
                               int64_t &dim, int64_t &index);
  /// Position at an iteration; -1 if out of bounds (possible only for nonlinear maps).
  int64_t at(ArrayRef<int64_t> iteration) const;

private:
  AffineMap map;
  const Tensor *tensor = nullptr;
  bool linear = false;
  int64_t constant = 0;
  SmallVector<int64_t> strides; ///< by loop
};

} // namespace

/// Whether an expression is a sum of multiples of loops, without modulo and division.
static bool isLinear(AffineExpr expr) {
  bool found = true;
  expr.walk([&](AffineExpr part) {
    AffineExprKind kind = part.getKind();
    found &= kind != AffineExprKind::Mod && kind != AffineExprKind::FloorDiv &&
             kind != AffineExprKind::CeilDiv && kind != AffineExprKind::SymbolId;
  });
  return found;
}

FailureOr<Access> Access::get(AffineMap map, const Tensor &tensor, ArrayRef<int64_t> ranges,
                              int64_t &dim, int64_t &index) {
  Access access;
  access.map = map;
  access.tensor = &tensor;
  access.linear = llvm::all_of(map.getResults(), isLinear);
  if (!access.linear)
    return access;
  // A linear expression is determined by its values at the origin and at the unit points.
  SmallVector<int64_t> origin(ranges.size(), 0);
  SmallVector<int64_t> base = map.compose(ArrayRef<int64_t>(origin));
  access.strides.assign(ranges.size(), 0);
  for (int64_t d = 0; d < tensor.rank(); ++d)
    access.constant = access.constant * tensor.shape()[d] + base[d];
  SmallVector<int64_t> least = base, greatest = base;
  for (size_t loop = 0; loop < ranges.size(); ++loop) {
    SmallVector<int64_t> unit = origin;
    unit[loop] = 1;
    SmallVector<int64_t> there = map.compose(ArrayRef<int64_t>(unit));
    for (int64_t d = 0; d < tensor.rank(); ++d) {
      int64_t step = there[d] - base[d];
      access.strides[loop] = access.strides[loop] * tensor.shape()[d] + step;
      (step < 0 ? least : greatest)[d] += step * (ranges[loop] - 1);
    }
  }
  if (llvm::is_contained(ranges, 0))
    return access; // an empty tensor is never read
  for (int64_t d = 0; d < tensor.rank(); ++d)
    if (least[d] < 0 || greatest[d] >= tensor.shape()[d]) {
      dim = d;
      index = least[d] < 0 ? least[d] : greatest[d];
      return failure();
    }
  return access;
}

int64_t Access::at(ArrayRef<int64_t> iteration) const {
  if (!linear)
    return tensor->linearize(map.compose(iteration));
  int64_t position = constant;
  for (auto [stride, i] : llvm::zip_equal(strides, iteration))
    position += stride * i;
  return position;
}

/// The elements rounded to another float type.
static Tensor castElements(const Tensor &tensor, Type elementType) {
  Tensor result(elementType, tensor.shape());
  for (int64_t i = 0, n = tensor.numElements(); i < n; ++i)
    result.store(i, Scalar::ofFloat(roundTo(result.element(), tensor.load(i).f)));
  return result;
}

/// Iterates in row-major order: outputs are read, combined and written in place.
static LogicalResult walk(Evaluator &evaluator, linalg::LinalgOp op, ArrayRef<int64_t> ranges,
                          MutableArrayRef<Tensor> operands, ArrayRef<Operation *> wide) {
  SmallVector<Access> accesses;
  for (auto [index, map] : llvm::enumerate(op.getIndexingMapsArray())) {
    int64_t dim = 0, outside = 0;
    FailureOr<Access> access = Access::get(map, operands[index], ranges, dim, outside);
    if (failed(access))
      return evaluator.error(op) << "reaches index " << outside << " of dimension " << dim
                                 << " of operand " << index << ", " << operands[index].tensorType();
    accesses.push_back(*access);
  }
  Block &block = *op.getBlock();
  FailureOr<ElementBody> body = ElementBody::prepare(block, evaluator, wide);
  if (failed(body))
    return failure();
  // Every operand has a block argument, except inits of ops whose body never reads them.
  size_t numArguments = block.getNumArguments();
  size_t firstInit = op.getNumDpsInputs();
  SmallVector<Scalar> arguments(numArguments);
  SmallVector<int64_t> positions(operands.size());
  bool good = forEachIndex(ranges, [&](ArrayRef<int64_t> iteration) {
    for (size_t i = 0; i < operands.size(); ++i) {
      positions[i] = accesses[i].at(iteration);
      if (positions[i] < 0) {
        evaluator.error(op) << "leaves operand " << i << ", " << operands[i].tensorType();
        return false;
      }
      if (i < numArguments)
        arguments[i] = operands[i].load(positions[i]);
    }
    if (failed(body->run(arguments, iteration)))
      return false;
    for (size_t i = firstInit; i < operands.size(); ++i)
      operands[i].store(positions[i], body->yielded(i - firstInit));
    return true;
  });
  return success(good);
}

static Outcome executeStructured(Evaluator &evaluator, linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return Outcome::unknown;
  SmallVector<Tensor> operands = evaluator.get(op->getOperands());
  SmallVector<int64_t> sizes;
  for (const Tensor &operand : operands)
    llvm::append_range(sizes, operand.shape());
  AffineMap shapesToLoops = op.getShapesToLoopsMap();
  if (!shapesToLoops) {
    evaluator.error(op) << "has indexing maps that do not determine its iteration space";
    return Outcome::failed;
  }
  SmallVector<int64_t> ranges = shapesToLoops.compose(ArrayRef<int64_t>(sizes));
  // Accumulators of 16-bit floats are f32 until the end.
  SmallVector<dist::NarrowSum> sums = dist::narrowSums(op);
  SmallVector<Operation *> wide;
  for (const dist::NarrowSum &sum : sums) {
    wide.push_back(sum.combiner);
    if (sum.product)
      wide.push_back(sum.product);
    Tensor &accumulator = operands[op.getNumDpsInputs() + sum.output];
    accumulator = castElements(accumulator, Float32Type::get(op->getContext()));
  }
  if (failed(walk(evaluator, op, ranges, operands, wide)))
    return Outcome::failed;
  for (const dist::NarrowSum &sum : sums) {
    Tensor &accumulator = operands[op.getNumDpsInputs() + sum.output];
    accumulator =
        castElements(accumulator, getElementTypeOrSelf(op->getResult(sum.output).getType()));
  }
  for (OpResult result : op->getResults())
    evaluator.set(result, operands[op.getNumDpsInputs() + result.getResultNumber()]);
  return Outcome::done;
}

/// exp(x - max) / sum of exp(x - max), along one dimension.
static Outcome executeSoftmax(Evaluator &evaluator, linalg::SoftmaxOp op) {
  const Tensor &input = evaluator.get(op.getInput());
  Tensor result = input;
  ElementType type = input.element();
  int64_t dim = op.getDimension(), extent = input.shape()[dim];
  int64_t inner = 1;
  for (int64_t size : input.shape().drop_front(dim + 1))
    inner *= size;
  int64_t outer = extent ? input.numElements() / (extent * inner) : 0;
  for (int64_t row = 0; row < outer * inner; ++row) {
    int64_t start = (row / inner) * extent * inner + row % inner;
    auto at = [&](int64_t i) { return start + i * inner; };
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < extent; ++i) {
      double value = input.load(at(i)).f;
      // Propagates NaN, as arith.maximumf does.
      greatest = std::isnan(value) || value > greatest ? value : greatest;
      if (std::isnan(value))
        break;
    }
    for (int64_t i = 0; i < extent; ++i) {
      double power = std::exp(roundTo(type, input.load(at(i)).f - greatest));
      result.store(at(i), Scalar::ofFloat(power));
      sum = type.width == 16 ? static_cast<float>(sum + result.load(at(i)).f) // docs/numerics.md
                             : roundTo(type, sum + result.load(at(i)).f);
    }
    sum = roundTo(type, sum);
    for (int64_t i = 0; i < extent; ++i)
      result.store(at(i), Scalar::ofFloat(roundTo(type, result.load(at(i)).f / sum)));
  }
  evaluator.set(op->getResult(0), result);
  return Outcome::done;
}

Outcome tessera::interpreter::executeLinalg(Evaluator &evaluator, Operation *op) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op); softmax && softmax->getNumResults() == 1)
    return executeSoftmax(evaluator, softmax);
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return executeStructured(evaluator, structured);
  return Outcome::unknown;
}
