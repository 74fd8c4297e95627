//===- PartitionSelection.cpp - Moves of selected elements ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window may select some elements of a dimension. Its collective moves a tensor
// of only these: a device first packs its selected elements, so that boxes are
// dense and runtimes need no selections.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::DimLayout;
using sharding::Layout;
using sharding::TensorSharding;

TensorSharding Partitioner::denseShardingOf(const Layout &layout) {
  TensorSharding result = TensorSharding::replicated(static_cast<int64_t>(layout.dims.size()));
  result.partial = layout.partial;
  for (auto [d, dim] : llvm::enumerate(layout.dims)) {
    result.dims[d] = dim.axes;
    int64_t chunk = sharding::ceilDiv(layout.globalShape[d], sharding::sizeOf(dim.axes));
    bool isShard = dim.offset == 0 && dim.length == chunk && dim.divisor == 1 &&
                   (dim.axes.empty() || dim.step == chunk);
    if (!isShard)
      result.windows.push_back(
          {static_cast<int64_t>(d), dim.step, dim.offset, dim.length, dim.divisor});
  }
  return result;
}

bool Partitioner::selects(const TensorSharding &source, const TensorSharding &target) {
  auto isSelection = [](const sharding::Window &window) { return window.isSelection(); };
  return llvm::any_of(source.windows, isSelection) || llvm::any_of(target.windows, isSelection);
}

Partitioner::Selected Partitioner::select(Part &part, Location loc, Value local,
                                          RankedTensorType global, FlatSymbolRefAttr mesh,
                                          const TensorSharding &source,
                                          const TensorSharding &target) {
  std::vector<int64_t> shape = global.getShape().vec();
  Layout has = sharding::makeLayout(source, shape), wants = sharding::makeLayout(target, shape);
  Layout held = sharding::selectLike(has, wants);
  auto type = RankedTensorType::get(held.globalShape, global.getElementType());
  Selected result{local, type, denseShardingOf(held), denseShardingOf(wants)};
  if (held.localShape() == has.localShape() &&
      llvm::all_of_zip(held.dims, has.dims, [](auto &a, auto &b) {
        return a.stride == b.stride && (sharding::sizeOf(a.axes) > 1 || a.begin == b.begin);
      }))
    return result; // the same buffer with another origin
  result.local = collect(part, loc, local, mesh, has, held);
  annotate(result.local,
           ShardingAttr::get(mesh, meshes.get(mesh), result.source, global.getContext()), type);
  return result;
}

Value Partitioner::collect(Part &part, Location loc, Value local, FlatSymbolRefAttr mesh,
                           const Layout &has, const Layout &held) {
  OpBuilder &b = part.builder;
  auto type = cast<RankedTensorType>(local.getType());
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); };
  SmallVector<OpFoldResult> offsets, sizes, strides;
  SmallVector<Value> firsts(type.getRank()); // of dimensions whose phase depends on the device
  SmallVector<int64_t> steps(type.getRank(), 1);
  bool isSlice = true;
  std::vector<int64_t> shape = held.localShape();
  for (auto [d, dims] : llvm::enumerate(llvm::zip_equal(has.dims, held.dims))) {
    const auto &[own, kept] = dims;
    int64_t stride = kept.stride / own.stride, offset = 0;
    bool isSame = own.begin == kept.begin && own.stride == kept.stride &&
                  has.globalShape[d] == held.globalShape[d];
    if (!isSame && sharding::sizeOf(own.axes) == 1) {
      offset = (kept.begin - own.begin) / own.stride - own.offset;
    } else if (!isSame && stride > 1) {
      // The first selected element of a device, relative to the start of its buffer.
      offset = kept.begin - own.begin - own.offset + stride * kept.offset;
      if (kept.divisor != 1) {
        isSlice = false;
        Value device = axisIndex(part, mesh, own.axes);
        Value begin = arith::AddIOp::create(
            b, loc, arith::MulIOp::create(b, loc, device, constant(kept.step)),
            constant(kept.offset));
        Value first = arith::CeilDivSIOp::create(b, loc, begin, constant(kept.divisor));
        first = arith::MulIOp::create(b, loc, first, constant(stride));
        // kept.offset = own.offset + own.begin - kept.begin, and steps are equal.
        firsts[d] = arith::SubIOp::create(b, loc, first, begin);
      }
    }
    offsets.push_back(b.getIndexAttr(offset));
    sizes.push_back(b.getIndexAttr(shape[d]));
    strides.push_back(b.getIndexAttr(steps[d] = isSame ? 1 : stride));
  }
  auto result = RankedTensorType::get(shape, type.getElementType());
  if (isSlice)
    return tensor::ExtractSliceOp::create(b, loc, result, local, offsets, sizes, strides);
  Value init = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &body, Location at, ValueRange) {
    auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(body, at, value); };
    SmallVector<Value> places;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      Value place = linalg::IndexOp::create(body, at, d);
      if (steps[d] > 1)
        place = arith::MulIOp::create(body, at, place, number(steps[d]));
      Value first = firsts[d] ? firsts[d] : number(*getConstantIntValue(offsets[d])).getResult();
      place = arith::AddIOp::create(body, at, place, first);
      // Parts with one element less than others would read one beyond.
      places.push_back(arith::MinSIOp::create(body, at, place, number(type.getDimSize(d) - 1)));
    }
    linalg::YieldOp::create(body, at,
                            tensor::ExtractOp::create(body, at, local, places).getResult());
  };
  return linalg::GenericOp::create(b, loc, result, ValueRange{}, init,
                                   ArrayRef<AffineMap>{b.getMultiDimIdentityMap(type.getRank())},
                                   iterators, body)
      .getResult(0);
}
