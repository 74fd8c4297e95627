//===- PartitionReshard.cpp - Lower reshards to collectives ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/CollectiveTraits.h"
#include "tessera/Sharding/ReshardChain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::CollectiveKind;
using sharding::TensorSharding;

Value Partitioner::emit(Part &part, Location loc, Value local, RankedTensorType global,
                        FlatSymbolRefAttr meshName, const sharding::Move &step, Attribute reason,
                        Attribute fill) {
  if (selects(step.source, step.target)) {
    Selected moved = select(part, loc, local, global, meshName, step.source, step.target);
    sharding::Move dense = step;
    dense.source = moved.source;
    dense.target = moved.target;
    return emit(part, loc, moved.local, moved.global, meshName, dense, reason, fill);
  }
  if (step.kind == CollectiveKind::exchange && !fill &&
      sharding::makeLayout(step.source, shapeOf(global)) ==
          sharding::makeLayout(step.target, shapeOf(global)))
    return local; // every device has the elements that it needs
  MLIRContext *context = global.getContext();
  const sharding::Mesh &mesh = meshes.get(meshName);
  OpBuilder &b = part.builder;
  ShardingAttr source = ShardingAttr::get(meshName, mesh, step.source, context);
  ShardingAttr target = ShardingAttr::get(meshName, mesh, step.target, context);
  ArrayAttr sources = b.getArrayAttr({source}), targets = b.getArrayAttr({target});
  ArrayAttr globals = b.getArrayAttr({TypeAttr::get(global)});
  SmallVector<Type> types{localType(global, step.target)};
  SmallVector<Value> operands{local};
  AxisListAttr axes = toIR(context, mesh, step.axes);
  IntegerAttr dim = b.getI64IntegerAttr(step.dim);
  ReduceKindAttr reduction = ReduceKindAttr::get(context, toIR(step.reduction));
  Operation *op = nullptr;
  switch (step.kind) {
  case CollectiveKind::halo_exchange: {
    auto wanted = llvm::find_if(step.target.windows,
                                [&](const sharding::Window &w) { return w.dim == step.dim; });
    op = HaloExchangeOp::create(b, loc, types, operands, meshName, axes, dim,
                                b.getI64IntegerAttr(-wanted->offset),
                                b.getI64IntegerAttr(wanted->offset + wanted->length - wanted->step),
                                fill, sources, targets, globals);
    break;
  }
  case CollectiveKind::exchange:
    op = ExchangeOp::create(b, loc, types, operands, source, target, fill, sources, targets,
                            globals);
    break;
  default: { // the op of the kind, with the attributes that its traits name
    const sharding::CollectiveTraits &traits = sharding::traitsOf(step.kind);
    StringRef name = step.makesPartial ? StringRef("make_partial") : StringRef(traits.name);
    OperationState state(loc, (DistDialect::getDialectNamespace() + "." + name).str(), operands,
                         types);
    state.addAttribute("mesh", meshName);
    state.addAttribute("axes", axes);
    if (!traits.dim.empty() && !step.makesPartial)
      state.addAttribute(traits.dim, dim);
    if (!traits.splitDim.empty())
      state.addAttribute(traits.splitDim, b.getI64IntegerAttr(step.splitDim));
    if (traits.reduces || step.makesPartial)
      state.addAttribute("reduction", reduction);
    state.addAttribute("sources", sources);
    state.addAttribute("targets", targets);
    state.addAttribute("global_types", globals);
    op = b.create(state);
  }
  }
  if (reason)
    op->setAttr(DistDialect::kReason, reason);
  annotate(op->getResult(0), target, global);
  return op->getResult(0);
}

Value Partitioner::emitSteps(Part &part, Location loc, Value local, RankedTensorType global,
                             FlatSymbolRefAttr mesh, ArrayRef<sharding::Move> steps,
                             Attribute reason, Attribute fill) {
  for (const sharding::Move &step : steps) {
    if (step.makesPartial && isIdentityFill(local, step.reduction) &&
        localType(global, step.source) == localType(global, step.target))
      continue;
    if (!step.axes.empty() && sharding::sizeOf(step.axes) == 1 &&
        step.kind != CollectiveKind::halo_exchange) { // an axis of one device: nothing moves
      if (selects(step.source, step.target))
        local = select(part, loc, local, global, mesh, step.source, step.target).local;
      continue;
    }
    local = emit(part, loc, local, global, mesh, step, reason, fill);
  }
  return local;
}

Value Partitioner::moveInside(Part &part, Operation *op, Value local, RankedTensorType global,
                              FlatSymbolRefAttr mesh, const TensorSharding &source,
                              const TensorSharding &target, const Twine &reason) {
  sharding::ReshardProblem problem{meshes.get(mesh), shapeOf(global),
                                   bytesPerElement(global.getElementType()),
                                   sharding::canonical(source), sharding::canonical(target)};
  sharding::ReshardPlan plan = sharding::chainOf(problem, /*isFilled=*/false, planner);
  if (remarks && plan.traffic.count > 0) {
    std::string chain;
    for (const sharding::Move &step : plan.moves)
      chain += (chain.empty() ? "" : ", ") + std::string(sharding::toString(step.kind));
    int64_t bound =
        problem.bytesPerElement *
        sharding::receiveBound(problem.mesh, sharding::makeLayout(source, problem.shape),
                               problem.mesh, sharding::makeLayout(target, problem.shape));
    op->emitRemark() << reason << ": " << chain << ", " << plan.traffic.wireBytes
                     << " bytes on the wire in " << plan.traffic.count << " collectives, "
                     << llvm::formatv("{0:F2}", plan.seconds * 1e6).str()
                     << " us modelled; no plan receives less than " << bound << " bytes";
  }
  return emitSteps(part, op->getLoc(), local, global, mesh, plan.moves,
                   part.builder.getStringAttr(reason));
}

/// Whether every device holds the same box, in the same buffer, on both of two meshes over the same
/// devices.
static bool haveEqualBoxes(const sharding::Mesh &from, const sharding::Layout &source,
                           const sharding::Mesh &to, const sharding::Layout &target) {
  return source.localShape() == target.localShape() &&
         llvm::all_of(from.processIds, [&](int64_t id) {
           return source.span(from, from.coordinate(from.positionOf(id))) ==
                  target.span(to, to.coordinate(to.positionOf(id)));
         });
}

Value Partitioner::exchangeMeshes(Part &part, ReshardOp op, Value local, ShardingAttr from,
                                  ShardingAttr to, Attribute reason) {
  auto type = cast<RankedTensorType>(op.getType());
  TensorSharding source = resolveVerified(from, meshes, type);
  TensorSharding target = resolveVerified(to, meshes, type);
  std::vector<int64_t> shape = shapeOf(type);
  if (haveEqualBoxes(meshes.get(from.getMesh()), sharding::makeLayout(source, shape),
                     meshes.get(to.getMesh()), sharding::makeLayout(target, shape)))
    return local;
  OpBuilder &b = part.builder;
  auto exchange = ExchangeOp::create(
      b, op.getLoc(), TypeRange{localType(type, target)}, ValueRange{local}, from, to, Attribute(),
      b.getArrayAttr({from}), b.getArrayAttr({to}), b.getArrayAttr({TypeAttr::get(type)}));
  exchange->setAttr(DistDialect::kReason, reason);
  annotate(exchange->getResult(0), to, type);
  return exchange->getResult(0);
}

LogicalResult Partitioner::lowerReshard(ReshardOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  FlatSymbolRefAttr from = getSharding(op.getOperand()).getMesh(), to = op.getSharding().getMesh();
  TensorSharding source = shardingOf(op.getOperand()), target = shardingOf(op.getResult());
  Attribute reason = op->getAttr(DistDialect::kReason);
  if (!reason)
    reason = StringAttr::get(op.getContext(), "required by dist.reshard");
  Part &sender = partOf(from), &receiver = partOf(to);
  Value local = sender.mapping.lookup(op.getOperand());
  if (auto move = op->getAttrOfType<MoveAttr>(DistDialect::kMove)) {
    FailureOr<sharding::Move> step =
        move.resolve(meshes.get(to), sharding::canonical(source), sharding::canonical(target),
                     [&]() { return op.emitError(); });
    if (failed(step))
      return failure();
    sender.mapping.map(op.getResult(), emitSteps(sender, op.getLoc(), local, type, from, *step,
                                                 reason, op.getFillAttr()));
    return success();
  }
  if (from == to)
    return op.emitError() << "'dist.reshard' has no '" << DistDialect::kMove
                          << "'; run dist-plan-reshards first";
  if (source.isPartial() || target.isPartial())
    return op.emitError() << "'dist.reshard' between meshes '" << from.getValue() << "' and '"
                          << to.getValue() << "' has contributions, "
                          << (source.isPartial() ? getSharding(op.getOperand()) : op.getSharding())
                          << "; run dist-plan-reshards first, which reduces and makes them within "
                          << "a mesh";
  ShardingAttr sent = ShardingAttr::get(from, meshes.get(from), source, op.getContext());
  ShardingAttr received = ShardingAttr::get(to, meshes.get(to), target, op.getContext());
  if (&sender == &receiver) { // two arrangements of the same devices
    sender.mapping.map(op.getResult(), exchangeMeshes(sender, op, local, sent, received, reason));
    return success();
  }
  IntegerAttr id = sender.builder.getI64IntegerAttr(nextTransfer++);
  auto send = SendOp::create(sender.builder, op.getLoc(), local, to, id, sent, received,
                             TypeAttr::get(type));
  auto recv = RecvOp::create(receiver.builder, op.getLoc(), localType(type, target), from, id, sent,
                             received, TypeAttr::get(type));
  send->setAttr(DistDialect::kReason, reason);
  recv->setAttr(DistDialect::kReason, reason);
  annotate(recv.getResult(), received, type);
  receiver.mapping.map(op.getResult(), recv.getResult());
  return success();
}
