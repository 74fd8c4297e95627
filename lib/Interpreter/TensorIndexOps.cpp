//===- TensorIndexOps.cpp - Elements, gather and scatter of tensors -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::interpreter;

/// The position of the element that an op accesses, or -1 after an error.
static int64_t positionOf(Evaluator &evaluator, Operation *op, const Tensor &tensor,
                          ValueRange indices) {
  SmallVector<int64_t> index;
  for (auto [value, extent] : llvm::zip_equal(indices, tensor.shape()))
    index.push_back(clampedIndex(evaluator.getInt(value), extent));
  int64_t position = tensor.linearize(index);
  if (position < 0)
    evaluator.error(op) << "names an element of " << tensor.tensorType() << ", which has none";
  return position;
}

static Outcome extract(Evaluator &evaluator, tensor::ExtractOp op) {
  const Tensor &source = evaluator.get(op.getTensor());
  int64_t position = positionOf(evaluator, op, source, op.getIndices());
  if (position < 0)
    return Outcome::failed;
  evaluator.set(op.getResult(), Tensor::scalar(source.getElementType(), source.load(position)));
  return Outcome::done;
}

static Outcome insert(Evaluator &evaluator, tensor::InsertOp op) {
  Tensor result = evaluator.get(op.getDest());
  int64_t position = positionOf(evaluator, op, result, op.getIndices());
  if (position < 0)
    return Outcome::failed;
  result.store(position, evaluator.get(op.getScalar()).item());
  evaluator.set(op.getResult(), result);
  return Outcome::done;
}

static Outcome fromElements(Evaluator &evaluator, tensor::FromElementsOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Tensor result(type.getElementType(), type.getShape());
  for (auto [position, element] : llvm::enumerate(op.getElements()))
    result.store(position, evaluator.get(element).item());
  evaluator.set(op.getResult(), result);
  return Outcome::done;
}

/// Visits the common iteration of gather and scatter: the last dimension of `indices` holds
/// coordinates in the `dims` of `large`; `small` has the leading dimensions of `indices` and then
/// the other dimensions of `large`. Calls `visit` with the positions in both.
static LogicalResult walkGathered(Evaluator &evaluator, Operation *op, const Tensor &large,
                                  const Tensor &indices, ArrayRef<int64_t> dims,
                                  llvm::function_ref<void(int64_t, int64_t)> visit) {
  // The slice at one tuple of coordinates has extent 1 in the gathered dimensions.
  SmallVector<int64_t> slice(large.shape());
  for (int64_t d : dims)
    slice[d] = 1;
  int64_t width = static_cast<int64_t>(dims.size());
  int64_t tuples = width ? indices.numElements() / width : 0;
  int64_t small = 0;
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    SmallVector<int64_t> base(large.rank(), 0);
    for (auto [k, d] : llvm::enumerate(dims)) {
      base[d] = clampedIndex(indices.load(tuple * width + k).i, large.shape()[d]);
      if (large.shape()[d] == 0)
        return evaluator.error(op)
               << "names an element of " << large.tensorType() << ", which has none";
    }
    forEachIndex(slice, [&](ArrayRef<int64_t> offset) {
      SmallVector<int64_t> index = base;
      for (auto [i, o] : llvm::zip_equal(index, offset))
        i += o;
      visit(large.linearize(index), small++);
      return true;
    });
  }
  return success();
}

static Outcome gather(Evaluator &evaluator, tensor::GatherOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  const Tensor &indices = evaluator.get(op.getIndices());
  // The leading dimensions of the indices, then the slice's, with or without the gathered ones.
  SmallVector<int64_t> shape(indices.shape().drop_back());
  bool reduced = op.getType().getRank() < static_cast<int64_t>(shape.size()) + source.rank();
  for (int64_t d = 0; d < source.rank(); ++d) {
    bool gathered = llvm::is_contained(op.getGatherDims(), d);
    if (!gathered || !reduced)
      shape.push_back(gathered ? 1 : source.shape()[d]);
  }
  Tensor result(source.getElementType(), shape);
  if (failed(walkGathered(
          evaluator, op, source, indices, op.getGatherDims(),
          [&](int64_t large, int64_t small) { result.store(small, source.load(large)); })))
    return Outcome::failed;
  evaluator.set(op.getResult(), result);
  return Outcome::done;
}

static Outcome scatter(Evaluator &evaluator, tensor::ScatterOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  Tensor result = evaluator.get(op.getDest());
  if (failed(walkGathered(
          evaluator, op, evaluator.get(op.getDest()), evaluator.get(op.getIndices()),
          op.getScatterDims(),
          [&](int64_t large, int64_t small) { result.store(large, source.load(small)); })))
    return Outcome::failed;
  evaluator.set(op.getResult(), result);
  return Outcome::done;
}

Outcome tessera::interpreter::executeTensorIndex(Evaluator &evaluator, Operation *op) {
  return TypeSwitch<Operation *, Outcome>(op)
      .Case([&](tensor::ExtractOp op) { return extract(evaluator, op); })
      .Case([&](tensor::InsertOp op) { return insert(evaluator, op); })
      .Case([&](tensor::FromElementsOp op) { return fromElements(evaluator, op); })
      .Case([&](tensor::GatherOp op) { return gather(evaluator, op); })
      .Case([&](tensor::ScatterOp op) { return scatter(evaluator, op); })
      .Default([](Operation *) { return Outcome::unknown; });
}
