//===- WindowKinds.cpp - Convolutions and pools ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace tessera::fuzz;

namespace {

/// One spatial dimension: kernel, stride, dilation, and output extent.
struct Spatial {
  int64_t kernel, stride, dilation, output;
};

} // namespace

/// A window that fits an extent.
static Spatial anyWindow(ProgramBuilder &p, int64_t extent) {
  Spatial s{p.random.between(1, std::min<int64_t>(3, extent)), p.random.percent(70) ? 1 : 2, 1, 0};
  if (p.random.percent(20) && (s.kernel - 1) * 2 + 1 <= extent)
    s.dilation = 2;
  s.output = (extent - ((s.kernel - 1) * s.dilation + 1)) / s.stride + 1;
  return s;
}

/// The same tensor, most often with a border of `fill` in the given dimensions.
static Entry padded(ProgramBuilder &p, Entry x, ArrayRef<int64_t> dims, double fill) {
  if (p.random.percent(50))
    return x;
  SmallVector<OpFoldResult> low(x.rank(), p.b.getIndexAttr(0)), high = low;
  Shape shape(x.shape());
  for (int64_t d : dims) {
    low[d] = high[d] = p.b.getIndexAttr(1);
    shape[d] += 2;
  }
  auto type = RankedTensorType::get(shape, x.element());
  x.value =
      tensor::PadOp::create(p.b, p.loc, type, x.value, low, high, p.constant(x.element(), fill));
  return x;
}

static Attribute numbers(ProgramBuilder &p, ArrayRef<Spatial> windows, int64_t Spatial::*field) {
  SmallVector<int64_t> values;
  for (const Spatial &window : windows)
    values.push_back(window.*field);
  return p.b.getI64TensorAttr(values);
}

/// Channels last; small, because every output element is a sum over a window and all channels.
static Entry anyImage(ProgramBuilder &p, int64_t spatialDims) {
  return p.any(spatialDims + 2, spatialDims + 2, [&](const Entry &entry) {
    return entry.type().getNumElements() <= 1000 && !entry.element().isInteger(1);
  });
}

static bool conv1d(ProgramBuilder &p) {
  Entry x = anyImage(p, 1);
  if (!x.value)
    return false;
  x = padded(p, x, {1}, 0);
  Spatial w = anyWindow(p, x.shape()[1]);
  int64_t features = p.random.between(1, 5), channels = x.shape()[2];
  Entry kernel = p.ofType({w.kernel, channels, features}, x.element());
  Entry init = p.init({x.shape()[0], w.output, features}, x.element(), 0);
  auto op = linalg::Conv1DNwcWcfOp::create(
      p.b, p.loc, TypeRange{init.type()}, ValueRange{x.value, kernel.value}, ValueRange{init.value},
      numbers(p, w, &Spatial::stride), numbers(p, w, &Spatial::dilation));
  double most = static_cast<double>(w.kernel * channels) * x.magnitude() * kernel.magnitude() +
                init.magnitude();
  p.push(op.getResult(0), -most, most, !x.isFloat() && x.exact && kernel.exact && init.exact,
         std::max({x.steps, kernel.steps, init.steps}) + 1);
  return true;
}

static bool conv2d(ProgramBuilder &p) {
  Entry x = anyImage(p, 2);
  if (!x.value)
    return false;
  bool channelsFirst = p.random.percent(25), depthwise = !channelsFirst && p.random.percent(30);
  int64_t firstSpatial = channelsFirst ? 2 : 1;
  x = padded(p, x, {firstSpatial, firstSpatial + 1}, 0);
  Spatial h = anyWindow(p, x.shape()[firstSpatial]), w = anyWindow(p, x.shape()[firstSpatial + 1]);
  int64_t n = x.shape()[0], channels = x.shape()[channelsFirst ? 1 : 3];
  int64_t features = p.random.between(1, 4);
  Shape kernelShape{h.kernel, w.kernel, channels, features}, shape{n, h.output, w.output, features};
  if (channelsFirst) {
    kernelShape = {features, channels, h.kernel, w.kernel};
    shape = {n, features, h.output, w.output};
  }
  if (depthwise) {
    kernelShape = {h.kernel, w.kernel, channels};
    shape = {n, h.output, w.output, channels};
  }
  Entry kernel = p.ofType(kernelShape, x.element());
  Entry init = p.init(shape, x.element(), 0);
  Attribute strides = numbers(p, {h, w}, &Spatial::stride);
  Attribute dilations = numbers(p, {h, w}, &Spatial::dilation);
  ValueRange outputs(init.value);
  SmallVector<Value> inputs{x.value, kernel.value};
  Value result =
      depthwise ? linalg::DepthwiseConv2DNhwcHwcOp::create(p.b, p.loc, TypeRange{init.type()},
                                                           inputs, outputs, strides, dilations)
                      .getResult(0)
      : channelsFirst ? linalg::Conv2DNchwFchwOp::create(p.b, p.loc, TypeRange{init.type()}, inputs,
                                                         outputs, strides, dilations)
                            .getResult(0)
                      : linalg::Conv2DNhwcHwcfOp::create(p.b, p.loc, TypeRange{init.type()}, inputs,
                                                         outputs, strides, dilations)
                            .getResult(0);
  double terms = static_cast<double>(h.kernel * w.kernel * (depthwise ? 1 : channels));
  double most = terms * x.magnitude() * kernel.magnitude() + init.magnitude();
  p.push(result, -most, most, !x.isFloat() && x.exact && kernel.exact && init.exact,
         std::max({x.steps, kernel.steps, init.steps}) + 1);
  return true;
}

static bool pool2d(ProgramBuilder &p) {
  Entry x = anyImage(p, 2);
  if (!x.value)
    return false;
  int64_t kind = p.random.between(0, 2); // sum, max, min
  x = padded(p, x, {1, 2}, 0);
  x.low = std::min(x.low, 0.0);
  x.high = std::max(x.high, 0.0);
  Spatial h = anyWindow(p, x.shape()[1]), w = anyWindow(p, x.shape()[2]);
  double infinity = x.isFloat() ? std::numeric_limits<double>::infinity() : 2147483647.0;
  Entry init = p.init({x.shape()[0], h.output, w.output, x.shape()[3]}, x.element(),
                      kind == 0   ? 0
                      : kind == 1 ? -infinity
                                  : infinity);
  Value window = p.empty({h.kernel, w.kernel}, x.element());
  Attribute strides = numbers(p, {h, w}, &Spatial::stride);
  Attribute dilations = numbers(p, {h, w}, &Spatial::dilation);
  SmallVector<Value> inputs{x.value, window};
  ValueRange outputs(init.value);
  Type type = init.type();
  TypeRange types(type);
  Value result =
      kind == 0
          ? linalg::PoolingNhwcSumOp::create(p.b, p.loc, types, inputs, outputs, strides, dilations)
                .getResult(0)
      : kind == 1
          ? linalg::PoolingNhwcMaxOp::create(p.b, p.loc, types, inputs, outputs, strides, dilations)
                .getResult(0)
          : linalg::PoolingNhwcMinOp::create(p.b, p.loc, types, inputs, outputs, strides, dilations)
                .getResult(0);
  bool exact = x.exact && init.exact;
  int64_t steps = std::max(x.steps, init.steps);
  if (kind != 0)
    p.push(result, std::min(x.low, init.low), std::max(x.high, init.high), exact, steps);
  else {
    double most = static_cast<double>(h.kernel * w.kernel) * x.magnitude() + init.magnitude();
    p.push(result, -most, most, exact && !x.isFloat(), steps + 1);
  }
  return true;
}

/// A sliding sum as a generic: the last dimension of x is read at i * stride + k.
static bool slidingSum(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t last = x.rank() - 1;
  Spatial w = anyWindow(p, x.shape()[last]);
  Shape shape(x.shape());
  shape[last] = w.output;
  SmallVector<AffineExpr> in, out;
  for (int64_t d = 0; d < x.rank(); ++d) {
    in.push_back(p.b.getAffineDimExpr(d));
    out.push_back(p.b.getAffineDimExpr(d));
  }
  in[last] = in[last] * w.stride + p.b.getAffineDimExpr(x.rank()) * w.dilation;
  AffineMap windowMap =
      AffineMap::get(x.rank() + 1, 0, p.b.getAffineDimExpr(x.rank()), p.b.getContext());
  Entry weights = p.ofType({w.kernel}, x.element());
  Entry init = p.init(shape, x.element(), 0);
  SmallVector<bool> isReduction(x.rank() + 1, false);
  isReduction.back() = true;
  Value result = p.generic({x, weights}, init.value,
                           {AffineMap::get(x.rank() + 1, 0, in, p.b.getContext()), windowMap,
                            AffineMap::get(x.rank() + 1, 0, out, p.b.getContext())},
                           isReduction, [&](OpBuilder &b, ValueRange args) -> Value {
                             if (x.isFloat()) {
                               Value product = arith::MulFOp::create(b, p.loc, args[0], args[1]);
                               return arith::AddFOp::create(b, p.loc, product, args[2]);
                             }
                             Value product = arith::MulIOp::create(b, p.loc, args[0], args[1]);
                             return arith::AddIOp::create(b, p.loc, product, args[2]);
                           });
  double most =
      static_cast<double>(w.kernel) * x.magnitude() * weights.magnitude() + init.magnitude();
  p.push(result, -most, most, !x.isFloat() && x.exact && weights.exact && init.exact,
         std::max({x.steps, weights.steps, init.steps}) + 1);
  return true;
}

void tessera::fuzz::addWindowKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"conv-1d", 4, conv1d});
  kinds.push_back({"conv-2d", 4, conv2d});
  kinds.push_back({"pool", 4, pool2d});
  kinds.push_back({"sliding-sum", 3, slidingSum});
}
