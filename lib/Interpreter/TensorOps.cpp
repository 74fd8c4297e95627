//===- TensorOps.cpp - The tensor dialect: shapes and slices --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::interpreter;

static Outcome finish(Evaluator &evaluator, Operation *op, Tensor result) {
  evaluator.set(op->getResult(0), std::move(result));
  return Outcome::done;
}

/// A tensor type's shape; dynamic extents are taken from `sizes` in order.
static SmallVector<int64_t> shapeWith(Evaluator &evaluator, Type type, ValueRange sizes) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent)) {
      extent = evaluator.getInt(sizes.front());
      sizes = sizes.drop_front();
    }
  return shape;
}

/// Emits an error if `shape` has a negative extent or not `count` elements (if given).
static LogicalResult checkShape(Evaluator &evaluator, Operation *op, ArrayRef<int64_t> shape,
                                std::optional<int64_t> count = std::nullopt) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 0)
      return evaluator.error(op) << "has a result of extent " << extent;
    product *= extent;
  }
  if (count && product != *count)
    return evaluator.error(op) << "reshapes " << *count << " elements to a shape of " << product;
  return success();
}

static Outcome reshape(Evaluator &evaluator, Operation *op, const Tensor &source,
                       ArrayRef<int64_t> shape) {
  if (failed(checkShape(evaluator, op, shape, source.numElements())))
    return Outcome::failed;
  return finish(evaluator, op, source.reshaped(shape));
}

static Outcome collapse(Evaluator &evaluator, tensor::CollapseShapeOp op) {
  const Tensor &source = evaluator.get(op.getSrc());
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    shape.push_back(1);
    for (int64_t d : group)
      shape.back() *= source.shape()[d];
  }
  return reshape(evaluator, op, source, shape);
}

static Outcome reshapeTo(Evaluator &evaluator, tensor::ReshapeOp op) {
  const Tensor &wanted = evaluator.get(op.getShape());
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < wanted.numElements(); ++d)
    shape.push_back(wanted.load(d).i);
  return reshape(evaluator, op, evaluator.get(op.getSource()), shape);
}

static Outcome castTo(Evaluator &evaluator, tensor::CastOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  if (auto type = dyn_cast<RankedTensorType>(op.getType()))
    for (auto [extent, wanted] : llvm::zip_equal(source.shape(), type.getShape()))
      if (!ShapedType::isDynamic(wanted) && extent != wanted) {
        evaluator.error(op) << "casts a " << source.tensorType() << " to " << type;
        return Outcome::failed;
      }
  return finish(evaluator, op, source);
}

static Outcome bitcastTo(Evaluator &evaluator, tensor::BitcastOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  Tensor result(getElementTypeOrSelf(op.getType()), source.shape());
  llvm::copy(source.bytes(), result.mutableBytes().begin());
  return finish(evaluator, op, result);
}

static Outcome dim(Evaluator &evaluator, tensor::DimOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  int64_t index = evaluator.getInt(op.getIndex());
  if (index < 0 || index >= source.rank()) {
    evaluator.error(op) << "reads dimension " << index << " of " << source.tensorType();
    return Outcome::failed;
  }
  return finish(evaluator, op, Tensor::index(op.getContext(), source.shape()[index]));
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

namespace {

/// A strided box of a large tensor, and a small tensor with the elements of the box and without the
/// dimensions that the op drops.
struct Slice {
  SmallVector<int64_t> offsets, sizes, strides;
  llvm::SmallBitVector dropped;

  /// Shape of the small tensor.
  SmallVector<int64_t> smallShape() const {
    SmallVector<int64_t> shape;
    for (auto [d, size] : llvm::enumerate(sizes))
      if (!dropped.test(d))
        shape.push_back(size);
    return shape;
  }
  /// Calls `visit` with the positions in the large and the small tensor, both row-major.
  void forEach(const Tensor &large, llvm::function_ref<void(int64_t, int64_t)> visit) const {
    int64_t small = 0; // dropped dimensions have extent 1, so the order is the same
    forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
      int64_t position = 0;
      for (auto [d, i] : llvm::enumerate(index))
        position = position * large.shape()[d] + offsets[d] + i * strides[d];
      visit(position, small++);
      return true;
    });
  }
};

} // namespace

template <typename Op>
static FailureOr<Slice> sliceOf(Evaluator &evaluator, Op op, const Tensor &large) {
  Slice slice{evaluator.getInts(op.getMixedOffsets()), evaluator.getInts(op.getMixedSizes()),
              evaluator.getInts(op.getMixedStrides()), op.getDroppedDims()};
  for (int64_t d = 0; d < large.rank(); ++d) {
    int64_t &first = slice.offsets[d], extent = large.shape()[d], steps = slice.sizes[d] - 1;
    if (op.isDynamicOffset(d))
      first = op.isDynamicStride(d) ? clampedIndex(first, extent)
                                    : clampedIndex(first, extent, steps + 1, slice.strides[d]);
    if (op.isDynamicStride(d) && steps > 0)
      slice.strides[d] =
          std::min(std::max(slice.strides[d], -(first / steps)), (extent - 1 - first) / steps);
    int64_t last = first + (slice.sizes[d] - 1) * slice.strides[d];
    bool inside = std::min(first, last) >= 0 && std::max(first, last) < large.shape()[d];
    // An empty slice accesses nothing.
    if (slice.sizes[d] < 0 || (slice.sizes[d] > 0 && !inside))
      return evaluator.error(op.getOperation())
             << "takes offset " << first << ", size " << slice.sizes[d] << ", stride "
             << slice.strides[d] << " of dimension " << d << " of " << large.tensorType();
  }
  return slice;
}

static Outcome extractSlice(Evaluator &evaluator, tensor::ExtractSliceOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  FailureOr<Slice> slice = sliceOf(evaluator, op, source);
  if (failed(slice))
    return Outcome::failed;
  Tensor result(source.getElementType(), slice->smallShape());
  slice->forEach(source,
                 [&](int64_t large, int64_t small) { result.store(small, source.load(large)); });
  return finish(evaluator, op, result);
}

static Outcome insertSlice(Evaluator &evaluator, tensor::InsertSliceOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  Tensor result = evaluator.get(op.getDest());
  FailureOr<Slice> slice = sliceOf(evaluator, op, result);
  if (failed(slice))
    return Outcome::failed;
  slice->forEach(evaluator.get(op.getDest()),
                 [&](int64_t large, int64_t small) { result.store(large, source.load(small)); });
  return finish(evaluator, op, result);
}

static Outcome concat(Evaluator &evaluator, tensor::ConcatOp op) {
  SmallVector<Tensor> inputs = evaluator.get(op.getInputs());
  int64_t along = op.getDim();
  SmallVector<int64_t> shape(inputs.front().shape());
  shape[along] = 0;
  for (const Tensor &input : inputs)
    shape[along] += input.shape()[along];
  Tensor result(inputs.front().getElementType(), shape);
  std::vector<int64_t> begin(shape.size(), 0);
  for (const Tensor &input : inputs) {
    // The input as a box of the result's indices that begins at `begin`.
    tessera::sharding::Box box{begin, input.shape().vec()};
    copyBox(input, begin, result, std::vector<int64_t>(shape.size(), 0), box);
    begin[along] += input.shape()[along];
  }
  return finish(evaluator, op, result);
}

static Outcome rearrange(Evaluator &evaluator, tessera::dist::RearrangeOp op) {
  RankedTensorType type = op.getResult().getType();
  auto dim = static_cast<int64_t>(op.getDim());
  Tensor result = op.getFill() ? Tensor::filled(type.getElementType(), type.getShape(),
                                                toTensor(cast<TypedAttr>(op.getFillAttr())).item())
                               : Tensor(type.getElementType(), type.getShape());
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    const Tensor &source = evaluator.get(input);
    tessera::sharding::Segment segment = op.getSegment(number);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = segment.count;
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index), to(index);
      from[dim] = segment.from + index[dim] * segment.fromStep;
      to[dim] = segment.to + index[dim] * segment.toStep;
      result.store(result.linearize(to), source.load(source.linearize(from)));
      return true;
    });
  }
  return finish(evaluator, op, result);
}

static Outcome pad(Evaluator &evaluator, tensor::PadOp op) {
  const Tensor &source = evaluator.get(op.getSource());
  SmallVector<int64_t> low = evaluator.getInts(op.getMixedLowPad());
  SmallVector<int64_t> high = evaluator.getInts(op.getMixedHighPad());
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < source.rank(); ++d) {
    int64_t own = source.shape()[d], extent = op.getType().getDimSize(d);
    if (!ShapedType::isDynamic(extent)) { // the source is within the result
      if (ShapedType::isDynamic(op.getStaticLow()[d]))
        low[d] = clampedIndex(low[d], extent, own);
      if (ShapedType::isDynamic(op.getStaticHigh()[d]))
        high[d] = extent - own - low[d];
    }
    shape.push_back(low[d] + own + high[d]);
  }
  if (failed(checkShape(evaluator, op, shape)))
    return Outcome::failed;
  FailureOr<ElementBody> body = ElementBody::prepare(op.getRegion().front(), evaluator);
  if (failed(body))
    return Outcome::failed;
  Tensor result(source.getElementType(), shape);
  int64_t position = 0;
  SmallVector<int64_t> inner(source.rank());
  SmallVector<Scalar> arguments(source.rank());
  bool good = forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    for (auto [d, i] : llvm::enumerate(index)) {
      inner[d] = i - low[d];
      arguments[d] = Scalar::ofInt(i);
    }
    int64_t from = source.linearize(inner);
    if (from < 0 && failed(body->run(arguments, {})))
      return false;
    result.store(position++, from < 0 ? body->yielded(0) : source.load(from));
    return true;
  });
  return good ? finish(evaluator, op, result) : Outcome::failed;
}

static Outcome generate(Evaluator &evaluator, tensor::GenerateOp op) {
  SmallVector<int64_t> shape = shapeWith(evaluator, op.getType(), op.getDynamicExtents());
  FailureOr<ElementBody> body = ElementBody::prepare(op.getBody().front(), evaluator);
  if (failed(checkShape(evaluator, op, shape)) || failed(body))
    return Outcome::failed;
  Tensor result(getElementTypeOrSelf(op.getType()), shape);
  SmallVector<Scalar> arguments(shape.size());
  int64_t position = 0;
  bool good = forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    for (auto [argument, i] : llvm::zip_equal(arguments, index))
      argument = Scalar::ofInt(i);
    if (failed(body->run(arguments, {})))
      return false;
    result.store(position++, body->yielded(0));
    return true;
  });
  return good ? finish(evaluator, op, result) : Outcome::failed;
}

Outcome tessera::interpreter::executeTensor(Evaluator &evaluator, Operation *op) {
  return TypeSwitch<Operation *, Outcome>(op)
      .Case([&](tensor::EmptyOp op) {
        SmallVector<int64_t> shape = shapeWith(evaluator, op.getType(), op.getDynamicSizes());
        if (failed(checkShape(evaluator, op, shape)))
          return Outcome::failed;
        return finish(evaluator, op, evaluator.undefined(op.getType().getElementType(), shape));
      })
      .Case([&](tensor::SplatOp op) {
        SmallVector<int64_t> shape = shapeWith(evaluator, op.getType(), op.getDynamicSizes());
        if (failed(checkShape(evaluator, op, shape)))
          return Outcome::failed;
        const Tensor &value = evaluator.get(op.getInput());
        return finish(evaluator, op, Tensor::filled(value.getElementType(), shape, value.item()));
      })
      .Case([&](tensor::ExpandShapeOp op) {
        return reshape(evaluator, op, evaluator.get(op.getSrc()),
                       evaluator.getInts(op.getMixedOutputShape()));
      })
      .Case([&](tensor::RankOp op) {
        return finish(evaluator, op,
                      Tensor::index(op.getContext(), evaluator.get(op.getTensor()).rank()));
      })
      .Case([&](tensor::CollapseShapeOp op) { return collapse(evaluator, op); })
      .Case([&](tensor::ReshapeOp op) { return reshapeTo(evaluator, op); })
      .Case([&](tensor::CastOp op) { return castTo(evaluator, op); })
      .Case([&](tensor::BitcastOp op) { return bitcastTo(evaluator, op); })
      .Case([&](tensor::DimOp op) { return dim(evaluator, op); })
      .Case([&](tensor::ExtractSliceOp op) { return extractSlice(evaluator, op); })
      .Case([&](tensor::InsertSliceOp op) { return insertSlice(evaluator, op); })
      .Case([&](tensor::ConcatOp op) { return concat(evaluator, op); })
      .Case([&](tensor::PadOp op) { return pad(evaluator, op); })
      .Case([&](tessera::dist::RearrangeOp op) { return rearrange(evaluator, op); })
      .Case([&](tensor::GenerateOp op) { return generate(evaluator, op); })
      .Default([&](Operation *other) { return executeTensorIndex(evaluator, other); });
}
