//===- PartitionWindow.cpp - Windows of rearranged and padded values ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window of a padded value is computed from a window of the pad's source; a window of
// a rearrangement from windows of its operands. Thus fill between or around elements is
// not sent: for a transposed convolution, only the rows are.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Sharding/Collective.h"
#include "tessera/Sharding/Segments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

namespace {

/// The context for partitioning a `dist.rearrange` for a window of its result.
class WindowContext : public PartitionContext {
public:
  using DeviceIndex = llvm::function_ref<Value(const sharding::AxisList &)>;

  WindowContext(RearrangeOp op, OpBuilder &builder, sharding::ShardingRule rule,
                const sharding::Mesh &mesh, sharding::ReshardPlanner &planner,
                TensorSharding target, RankedTensorType type, DeviceIndex deviceIndex)
      : PartitionContext(op, builder), rule(std::move(rule)), mesh(mesh), planner(planner),
        target(std::move(target)), type(type), deviceIndex(deviceIndex), axes(this->target.dims) {}

  void addOperand(Value local, TensorSharding sharding) {
    operands.push_back(local);
    shardings.push_back(std::move(sharding));
  }

  // The factors of a rearrangement are the dimensions of its result.
  const sharding::ShardingRule &getRule() const override { return rule; }
  const sharding::FactorAxes &getFactorAxes() const override { return axes; }
  TensorSharding getOperandSharding(unsigned index) const override { return shardings[index]; }
  TensorSharding getResultSharding(unsigned) const override { return target; }
  Value getOperand(unsigned index) const override { return operands[index]; }
  RankedTensorType getLocalType(unsigned) const override { return type; }
  Value getDeviceIndex(const sharding::AxisList &axes) override { return deviceIndex(axes); }
  const sharding::Mesh &getMesh() const override { return mesh; }
  sharding::ReshardPlanner &getPlanner() const override { return planner; }

  Value getGlobalIteration(OpBuilder &at, Location loc, unsigned factor, Value local) override {
    sharding::DimLayout part = sharding::makeLayout(target, shapeOf(resultType())).dims[factor];
    auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(at, loc, value); };
    Value begin = arith::MulIOp::create(at, loc, deviceIndex(axes[factor]), number(part.step));
    if (part.offset != 0)
      begin = arith::AddIOp::create(at, loc, begin, number(part.offset));
    if (part.divisor != 1)
      begin = arith::CeilDivSIOp::create(at, loc, begin, number(part.divisor));
    if (part.begin != 0) // of a selection
      begin = arith::AddIOp::create(at, loc, begin, number(part.begin));
    return arith::AddIOp::create(at, loc, local, begin);
  }

  // A rearrangement uses no other methods.
  Value getLocal(Value) const override { llvm_unreachable("reads its operands alone"); }
  Operation *clone() override { llvm_unreachable("written anew"); }
  FailureOr<SmallVector<Value>> cloneOp() override { return failure(); }
  bool isUneven(unsigned) const override { return true; }
  Value getMaskedOperand(unsigned, TypedAttr) override { llvm_unreachable("reduces nothing"); }
  Value getCombined(Value, ArrayRef<int64_t>, int64_t, sharding::ReduceKind) override {
    llvm_unreachable("reduces nothing");
  }
  Value getFilledWindow(unsigned, Attribute) override { llvm_unreachable("has its windows"); }
  Value reshard(Value, RankedTensorType, const TensorSharding &, const TensorSharding &) override {
    llvm_unreachable("has its windows");
  }

private:
  RankedTensorType resultType() const { return cast<RankedTensorType>(op->getResult(0).getType()); }

  sharding::ShardingRule rule;
  const sharding::Mesh &mesh;
  sharding::ReshardPlanner &planner;
  TensorSharding target;
  RankedTensorType type;
  DeviceIndex deviceIndex;
  sharding::FactorAxes axes;
  SmallVector<Value> operands;
  SmallVector<TensorSharding> shardings;
};

} // namespace

/// The sharding of operand `index` of a rearrangement that a window of the result requires; empty
/// for windows of elements with gaps.
static std::optional<TensorSharding> neededFor(RearrangeOp op, unsigned index,
                                               const TensorSharding &target) {
  auto type = cast<RankedTensorType>(op.getInputs()[index].getType());
  sharding::Segment segment = op.getSegment(index);
  auto dim = static_cast<int64_t>(op.getDim());
  sharding::Layout result = sharding::makeLayout(target, shapeOf(op.getResult().getType()));
  sharding::Window part{dim, 0, 0, segment.count, 1, segment.from, segment.fromStep, segment.count};
  TensorSharding needed = target;
  llvm::erase_if(needed.windows, [&](const sharding::Window &window) { return window.dim == dim; });
  if (target.dims[dim].empty()) {
    if (needed.windows.size() != target.windows.size())
      return std::nullopt; // a selection of the result, which is whole
  } else {
    sharding::DimLayout own = result.dims[dim];
    if (own.stride != 1)
      return std::nullopt;
    own.offset += own.begin * own.divisor;
    own = sharding::partOf(segment, own);
    part.step = own.step;
    part.offset = own.offset;
    part.length = own.length;
    part.divisor = own.divisor;
  }
  bool isAll = segment.from == 0 && segment.fromStep == 1 && segment.count == type.getDimSize(dim);
  if (isAll)
    part.count = -1;
  int64_t chunk = sharding::ceilDiv(type.getDimSize(dim), sharding::sizeOf(target.dims[dim]));
  bool isShard = isAll && (target.dims[dim].empty() || (part.step == chunk && part.offset == 0 &&
                                                        part.length == chunk && part.divisor == 1));
  if (!isShard)
    needed.windows.push_back(part);
  return sharding::canonical(needed);
}

int64_t Partitioner::exchangedBytes(Value value, const TensorSharding &target,
                                    FlatSymbolRefAttr meshName) {
  const sharding::Mesh &mesh = meshes.get(meshName);
  auto type = cast<RankedTensorType>(value.getType());
  sharding::Layout wants = sharding::makeLayout(target, shapeOf(type));
  sharding::Layout has =
      sharding::selectLike(sharding::makeLayout(shardingOf(value), shapeOf(type)), wants);
  return sharding::trafficOf(sharding::CollectiveKind::exchange, mesh.numDevices(),
                             bytesPerElement(type.getElementType()), mesh, has, mesh, wants)
      .wireBytes;
}

Value Partitioner::sourceOf(Value value, FlatSymbolRefAttr mesh) {
  if (auto reshard = value.getDefiningOp<ReshardOp>()) // the sharding for its other reader
    value = reshard.getOperand();
  return getSharding(value).getMesh() == mesh ? value : Value();
}

Value Partitioner::windowThroughRearrangement(Part &part, RearrangeOp op,
                                              const TensorSharding &target,
                                              const WindowRequest &request) {
  if (request.fill && op.getFillAttr() != request.fill)
    return {};
  // Compares the bytes sent for windows of the operands with those sent for the result and then for
  // its window.
  int64_t through = 0, direct = exchangedBytes(op.getResult(), target, request.mesh);
  SmallVector<std::pair<Value, TensorSharding>> needs;
  for (unsigned index = 0; index < op.getInputs().size(); ++index) {
    Value operand = op.getInputs()[index], source = sourceOf(operand, request.mesh);
    std::optional<TensorSharding> needed = neededFor(op, index, target);
    if (!source || !needed || shardingOf(source).isPartial() || !shardingOf(source).windows.empty())
      return {};
    through += exchangedBytes(source, *needed, request.mesh);
    if (op.getResult().hasOneUse() && source != operand)
      direct += exchangedBytes(source, shardingOf(operand), request.mesh);
    needs.push_back({source, *needed});
  }
  if (through >= direct)
    return {};
  auto deviceIndex = [&](const sharding::AxisList &axes) {
    return axisIndex(part, request.mesh, axes);
  };
  WindowContext context(op, part.builder, *getShardingRule(op), meshes.get(request.mesh), planner,
                        target, localType(cast<RankedTensorType>(op.getResult().getType()), target),
                        deviceIndex);
  for (auto &[source, needed] : needs)
    context.addOperand(
        windowOf(part, source, needed, {request.loc, request.mesh, request.reason, {}}), needed);
  FailureOr<SmallVector<Value>> made =
      cast<ShardingRuleOpInterface>(op.getOperation()).partition(context);
  if (failed(made))
    return {};
  Operation *maker = made->front().getDefiningOp();
  if (maker && !maker->hasAttr(DistDialect::kGlobalType)) { // else it is an unchanged operand
    RankedTensorType type = op.getResult().getType();
    sharding::Layout layout = sharding::makeLayout(target, shapeOf(type));
    annotate(made->front(),
             ShardingAttr::get(request.mesh, meshes.get(request.mesh), denseShardingOf(layout),
                               op.getContext()),
             type.clone(layout.globalShape));
  }
  return made->front();
}

Value Partitioner::windowThroughPad(Part &part, tensor::PadOp pad, const TensorSharding &target,
                                    const WindowRequest &request) {
  if (!pad.getConstantPaddingValue())
    return {};
  Value inner = sourceOf(pad.getSource(), request.mesh);
  if (!inner)
    return {};
  TensorSharding wanted = TensorSharding::replicated(target.rank());
  wanted.dims = target.dims;
  for (int64_t d = 0; d < target.rank(); ++d) {
    auto window =
        llvm::find_if(target.windows, [&](const sharding::Window &w) { return w.dim == d; });
    if (target.dims[d].empty()) {
      if (window != target.windows.end())
        return {}; // a selection of the padded value, which is whole
      continue;
    }
    int64_t low = pad.getStaticLow()[d], high = pad.getStaticHigh()[d];
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(high))
      return {}; // known only at run time
    if (window == target.windows.end()) {
      if (low || high)
        return {}; // the padded dimension is cut, but has no window
      continue;
    }
    if (window->stride != 1 || window->divisor != 1)
      return {};
    sharding::Window inside{d, window->step, window->offset + window->begin - low, window->length};
    if (window->isSelection()) { // its elements outside of the padding
      inside.begin = std::max<int64_t>(0, window->begin - low);
      inside.count = std::min(cast<RankedTensorType>(inner.getType()).getDimSize(d),
                              window->begin + window->count - low) -
                     inside.begin;
      inside.offset -= inside.begin;
      if (inside.count <= 0)
        return {};
    }
    wanted.windows.push_back(inside);
  }
  Attribute fill;
  matchPattern(pad.getConstantPaddingValue(), m_Constant(&fill));
  if (!fill || (request.fill && request.fill != fill))
    return {};
  Value local = windowOf(part, inner, sharding::canonical(wanted),
                         {request.loc, request.mesh, request.reason, fill});
  return padWholeDims(part.builder, pad, local, target);
}

Value Partitioner::windowThrough(Part &part, Value value, const TensorSharding &target,
                                 const WindowRequest &request) {
  if (target.windows.empty() || target.isPartial())
    return {};
  if (auto pad = value.getDefiningOp<tensor::PadOp>())
    return windowThroughPad(part, pad, target, request);
  if (auto rearrange = value.getDefiningOp<RearrangeOp>())
    return windowThroughRearrangement(part, rearrange, target, request);
  return {};
}

Value Partitioner::windowOf(Part &part, Value value, const TensorSharding &target,
                            const WindowRequest &request) {
  if (Value made = windowThrough(part, value, target, request))
    return made;
  return move(part, request.loc, part.mapping.lookup(value),
              cast<RankedTensorType>(value.getType()), request.mesh, shardingOf(value), target,
              request.reason, request.fill);
}

Value Partitioner::windowThroughMoves(Part &part, ReshardOp op) {
  return windowThrough(
      part, op.getOperand(), shardingOf(op.getResult()),
      {op.getLoc(), op.getSharding().getMesh(), op->getAttr(DistDialect::kReason), Attribute()});
}
