//===- ExtOps.cpp - The ext dialect, line by line -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

/// Visits the lines of a shape along `dim`, by the position of the first element and the stride.
static bool forEachLine(ArrayRef<int64_t> shape, unsigned dim,
                        function_ref<bool(int64_t line, int64_t stride)> visit) {
  SmallVector<int64_t> lines(shape);
  lines[dim] = 1;
  int64_t stride = 1;
  for (int64_t extent : shape.drop_front(dim + 1))
    stride *= extent;
  return forEachIndex(lines, [&](ArrayRef<int64_t> index) {
    int64_t position = 0;
    for (auto [i, extent] : llvm::zip_equal(index, shape))
      position = position * extent + i;
    return visit(position, stride);
  });
}

static Outcome executeScan(Evaluator &evaluator, ext::ScanOp op) {
  SmallVector<Tensor> inputs = evaluator.get(op.getInputs()), results;
  FailureOr<ElementBody> body = ElementBody::prepare(op.getBody(), evaluator);
  if (failed(body))
    return Outcome::failed;
  for (const Tensor &input : inputs)
    results.push_back(Tensor(input.getElementType(), input.shape()));
  SmallVector<Scalar> identity;
  if (ArrayAttr values = op.getIdentityAttr())
    for (Attribute value : values)
      identity.push_back(toTensor(cast<TypedAttr>(value)).item());
  size_t count = inputs.size();
  int64_t extent = op.getShape()[op.getDim()];
  bool good = forEachLine(op.getShape(), op.getDim(), [&](int64_t line, int64_t stride) {
    SmallVector<Scalar> arguments(2 * count), before(identity);
    for (int64_t i = 0; i < extent; ++i) {
      int64_t at = line + (op.getReverse() ? extent - 1 - i : i) * stride;
      for (size_t k = 0; k < count; ++k) {
        if (op.getExclusive())
          results[k].store(at, before[k]);
        arguments[count + k] = inputs[k].load(at);
      }
      if (i == 0) {
        before.assign(arguments.begin() + count, arguments.end());
      } else {
        std::copy(before.begin(), before.end(), arguments.begin());
        if (failed(body->run(arguments, {})))
          return false;
        for (size_t k = 0; k < count; ++k)
          before[k] = body->yielded(k);
      }
      for (size_t k = 0; k < count && !op.getExclusive(); ++k)
        results[k].store(at, before[k]);
    }
    return true;
  });
  if (!good)
    return Outcome::failed;
  for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
    evaluator.set(result, value);
  return Outcome::done;
}

/// Negative if `a` comes before `b` in ascending order: NaN is last, and the zeros are equal.
static int compareKeys(ElementType type, Scalar a, Scalar b) {
  if (!type.isFloat()) {
    if (type.width == 1) // true is stored as -1
      std::swap(a, b);
    return a.i < b.i ? -1 : a.i > b.i;
  }
  if (std::isnan(a.f) || std::isnan(b.f))
    return int(std::isnan(a.f)) - int(std::isnan(b.f));
  return a.f < b.f ? -1 : a.f > b.f;
}

static Outcome executeSort(Evaluator &evaluator, ext::SortOp op) {
  SmallVector<Tensor> inputs = evaluator.get(op.getInputs()), results;
  for (auto [input, result] : llvm::zip_equal(inputs, op.getResults()))
    results.push_back(
        Tensor(input.getElementType(), cast<RankedTensorType>(result.getType()).getShape()));
  int64_t extent = op.getShape()[op.getDim()], count = op.getCount();
  SmallVector<int64_t> lines;
  forEachLine(op.getShape(), op.getDim(), [&](int64_t line, int64_t) {
    lines.push_back(line);
    return true;
  });
  size_t next = 0;
  if (count > 0)
    forEachLine(results[0].shape(), op.getDim(), [&](int64_t to, int64_t stride) {
      int64_t line = lines[next++];
      SmallVector<int64_t> order(extent);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        for (size_t k = 0; k < op.getKeys(); ++k) {
          int compared = compareKeys(inputs[k].element(), inputs[k].load(line + a * stride),
                                     inputs[k].load(line + b * stride));
          if (compared != 0)
            return op.getDescending() ? compared > 0 : compared < 0;
        }
        return false;
      });
      for (auto [input, result] : llvm::zip_equal(inputs, results))
        for (int64_t i = 0; i < count; ++i)
          result.store(to + i * stride, input.load(line + order[i] * stride));
      return true;
    });
  for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
    evaluator.set(result, value);
  return Outcome::done;
}

Outcome interpreter::executeExt(Evaluator &evaluator, Operation *op) {
  if (auto scan = dyn_cast<ext::ScanOp>(op))
    return executeScan(evaluator, scan);
  if (auto sort = dyn_cast<ext::SortOp>(op))
    return executeSort(evaluator, sort);
  return Outcome::unknown;
}
