//===- SerializeSteps.cpp - Steps, and their total order ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serializer.h"
#include "tessera/Dialect/Rt/IR/Bounds.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// "file:line:column" of the first position in a location; empty if there is none.
static std::string textOf(Location loc) {
  std::string text;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
           std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

static std::optional<double> numberOf(Attribute attribute) {
  if (auto value = dyn_cast_or_null<FloatAttr>(attribute))
    return value.getValueAsDouble();
  if (auto value = dyn_cast_or_null<IntegerAttr>(attribute))
    return static_cast<double>(value.getInt());
  return std::nullopt;
}

runtime::CollectiveStep Serializer::collective(rt::CollectiveOp op) {
  runtime::CollectiveStep step;
  step.kind = *sharding::parseCollectiveKind(op.getKind());
  step.mesh = meshIndex.lookup(op.getMesh());
  const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
  const sharding::Mesh &targetMesh =
      op.getTargetMeshAttr() ? meshes.get(op.getTargetMeshAttr()) : mesh;
  if (op.getTargetMeshAttr())
    step.targetMesh = meshIndex.lookup(*op.getTargetMesh());
  step.axes = *dist::resolveAxes(op.getAxes(), mesh, [&]() { return op.emitOpError(); });
  if (std::optional<dist::ReduceKind> kind = op.getReduction())
    step.reduction = dist::toAlgebra(*kind);
  if (op.getToken()) {
    step.token = static_cast<int64_t>(tokens.size());
    tokens[op.getToken()] = *step.token;
  }
  step.id = nextCollective++;
  std::vector<sharding::MovedTensor> moved;
  int64_t group = step.axes.empty() ? mesh.numDevices() : sharding::sizeOf(step.axes);
  for (auto [source, target, from, to, type] :
       llvm::zip_equal(op.getSources(), op.getTargets(), op.getSourceLayouts(),
                       op.getTargetLayouts(), op.getGlobalTypes())) {
    Type global = cast<TypeAttr>(type).getValue();
    runtime::Operand operand;
    operand.src = slotOf(source);
    operand.dst = slotOf(target);
    operand.dtype = toDType(cast<RankedTensorType>(global).getElementType());
    operand.globalShape = dist::shapeOf(global);
    operand.source = layoutOf(cast<dist::ShardingAttr>(from), global);
    operand.target = layoutOf(cast<dist::ShardingAttr>(to), global);
    operand.fill = numberOf(op.getFillAttr());
    moved.push_back({runtime::sizeOf(operand.dtype), operand.source, operand.target});
    step.operands.push_back(std::move(operand));
  }
  step.wireBytes = sharding::trafficOf(step.kind, group, mesh, targetMesh, moved).wireBytes;
  return step;
}

runtime::TransferStep Serializer::transfer(Value slot, int64_t id, dist::ShardingAttr source,
                                           dist::ShardingAttr target, Type global, bool isSend) {
  runtime::TransferStep step;
  step.isSend = isSend;
  step.id = id;
  step.sourceMesh = meshIndex.lookup(source.getMesh().getValue());
  step.targetMesh = meshIndex.lookup(target.getMesh().getValue());
  runtime::Operand operand;
  (isSend ? operand.src : operand.dst) = slotOf(slot);
  operand.dtype = toDType(cast<RankedTensorType>(global).getElementType());
  operand.globalShape = dist::shapeOf(global);
  operand.source = layoutOf(source, global);
  operand.target = layoutOf(target, global);
  step.wireBytes = sharding::trafficOf(sharding::CollectiveKind::transfer, 2,
                                       runtime::sizeOf(operand.dtype), meshes.get(source.getMesh()),
                                       operand.source, meshes.get(target.getMesh()), operand.target)
                       .wireBytes;
  step.operands.push_back(std::move(operand));
  return step;
}

std::optional<runtime::Step> Serializer::stepOf(Operation *op) {
  runtime::Step step;
  step.loc = textOf(op->getLoc());
  auto bound = [&](Value slot, IntegerAttr number) {
    return slot ? runtime::Bound{0, slotOf(slot)} : runtime::Bound{number.getInt(), {}};
  };
  bool known = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](rt::LaunchOp launch) {
        runtime::LaunchStep one;
        one.kernel = kernelIndex.lookup(launch.getKernel());
        for (Value slot : launch->getOperands())
          one.slots.push_back(slotOf(slot));
        one.reads = launch.getReads().size();
        one.blocks = launch.getBlocks();
        if (launch.getCut())
          one.cut.assign(launch.getCut()->begin(), launch.getCut()->end());
        one.joins = launch.getJoins();
        step.name = launch.getKernel().str();
        step.action = std::move(one);
      })
      .Case([&](rt::GemmOp gemm) {
        runtime::GemmStep one;
        one.dtype = toDType(gemm.getA().getType().getElementType());
        if (runtime::DType result = toDType(gemm.getC().getType().getElementType());
            result != one.dtype)
          one.resultDType = result;
        one.a = slotOf(gemm.getA()), one.b = slotOf(gemm.getB()), one.c = slotOf(gemm.getC());
        one.batch = gemm.getBatch(), one.m = gemm.getM();
        one.n = gemm.getN(), one.k = gemm.getK();
        one.transA = gemm.getTransA(), one.transB = gemm.getTransB();
        one.lda = gemm.getLd()[0], one.ldb = gemm.getLd()[1], one.ldc = gemm.getLd()[2];
        one.strideA = gemm.getStride()[0], one.strideB = gemm.getStride()[1];
        one.strideC = gemm.getStride()[2];
        one.accumulate = gemm.getAccumulate();
        if (gemm.getBias())
          one.bias = slotOf(gemm.getBias());
        if (std::optional<StringRef> epilogue = gemm.getEpilogue())
          one.epilogue = *epilogue == "relu" ? runtime::Epilogue::relu : runtime::Epilogue::gelu;
        step.name = "gemm";
        step.action = one;
      })
      .Case([&](rt::ContractOp contract) {
        runtime::ContractStep one;
        one.dtype = toDType(contract.getA().getType().getElementType());
        one.a = slotOf(contract.getA()), one.b = slotOf(contract.getB());
        one.c = slotOf(contract.getC());
        llvm::copy(contract.getStarts(), one.starts.begin());
        for (auto [extent, a, b, c] :
             llvm::zip_equal(contract.getExtents(), contract.getAStrides(), contract.getBStrides(),
                             contract.getCStrides()))
          one.loops.push_back({extent, {a, b, c}});
        one.accumulate = contract.getAccumulate();
        if (DenseI64ArrayAttr bounds = rt::withinOf(contract)) {
          const size_t size = one.loops.size() + 2;
          for (ArrayRef<int64_t> rest = bounds; !rest.empty(); rest = rest.drop_front(size))
            one.within.push_back({rest.slice(2, size - 2).vec(), rest[0], rest[1]});
        }
        step.action = std::move(one);
      })
      .Case([&](rt::CollectiveOp one) {
        step.name = one.getKind().str();
        step.action = collective(one);
      })
      .Case([&](rt::SendOp send) {
        step.name = "send";
        step.action = transfer(send.getSlot(), send.getId(), send.getSourceLayout(),
                               send.getTargetLayout(), send.getGlobalType(), true);
      })
      .Case([&](rt::RecvOp recv) {
        step.name = "recv";
        step.action = transfer(recv.getSlot(), recv.getId(), recv.getSourceLayout(),
                               recv.getTargetLayout(), recv.getGlobalType(), false);
      })
      .Case(
          [&](rt::WaitOp wait) { step.action = runtime::WaitStep{tokens.lookup(wait.getToken())}; })
      .Case([&](rt::CopyOp copy) {
        step.action = runtime::CopyStep{slotOf(copy.getSource()), slotOf(copy.getTarget()),
                                        copy.getSource().getType().getNumBytes()};
      })
      .Case([&](rt::LoopOp loop) {
        runtime::LoopStep one;
        one.iv = slotOf(loop.getIv());
        one.lower = bound(loop.getLowerSlot(), loop.getLowerAttr());
        one.upper = bound(loop.getUpperSlot(), loop.getUpperAttr());
        one.step = bound(loop.getStepSlot(), loop.getStepAttr());
        one.body = stepsOf(loop.getBody().front());
        step.action = std::move(one);
      })
      .Case([&](rt::WhileOp loop) {
        runtime::WhileStep one;
        one.before = stepsOf(loop.getBefore().front());
        one.condition = slotOf(loop.getCondition());
        one.body = stepsOf(loop.getBody().front());
        step.action = std::move(one);
      })
      .Case([&](rt::IfOp branch) {
        runtime::IfStep one;
        one.condition = slotOf(branch.getCondition());
        one.thenSteps = stepsOf(branch.getThenSteps().front());
        one.elseSteps = stepsOf(branch.getElseSteps().front());
        step.action = std::move(one);
      })
      .Default([&](Operation *) { known = false; });
  if (!known)
    return std::nullopt;
  return step;
}

runtime::StepList Serializer::stepsOf(Block &block) {
  runtime::StepList steps;
  for (Operation &op : block)
    if (std::optional<runtime::Step> step = stepOf(&op))
      steps.push_back(std::move(*step));
  return steps;
}

/// A part's steps in textual order, those of bodies after their heads.
static void flatten(runtime::StepList &steps, std::vector<runtime::Step *> &flat) {
  for (runtime::Step &step : steps) {
    flat.push_back(&step);
    if (auto *loop = std::get_if<runtime::LoopStep>(&step.action)) {
      flatten(loop->body, flat);
    } else if (auto *loop = std::get_if<runtime::WhileStep>(&step.action)) {
      flatten(loop->before, flat);
      flatten(loop->body, flat);
    } else if (auto *branch = std::get_if<runtime::IfStep>(&step.action)) {
      flatten(branch->thenSteps, flat);
      flatten(branch->elseSteps, flat);
    }
  }
}

LogicalResult Serializer::assignOrders() {
  std::vector<std::vector<runtime::Step *>> parts;
  for (runtime::Part &part : result.program.parts)
    flatten(part.steps, parts.emplace_back());
  std::vector<size_t> next(parts.size(), 0);
  int64_t order = 0;
  auto transferAt = [&](size_t part) -> runtime::TransferStep * {
    return next[part] < parts[part].size()
               ? std::get_if<runtime::TransferStep>(&parts[part][next[part]]->action)
               : nullptr;
  };
  std::set<int64_t> sent; // without their receives
  while (true) {
    // All steps up to the next transfer of each part, and receives of sent values; then the first
    // transfer with both sides next. If there is none, a pipeline sends ahead: the first send
    // alone, which never blocks.
    std::map<int64_t, SmallVector<size_t, 2>> waiting;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (; next[part] < parts[part].size(); parts[part][next[part]++]->order = order++) {
        runtime::TransferStep *transfer = transferAt(part);
        if (!transfer || (!transfer->isSend && sent.erase(transfer->id)))
          continue;
        waiting[transfer->id].push_back(part);
        break;
      }
    }
    if (waiting.empty())
      return success();
    auto both = llvm::find_if(waiting, [](auto &entry) { return entry.second.size() == 2; });
    if (both == waiting.end()) {
      auto ahead = llvm::find_if(
          waiting, [&](auto &entry) { return transferAt(entry.second.front())->isSend; });
      if (ahead != waiting.end()) {
        size_t part = ahead->second.front();
        parts[part][next[part]++]->order = order++;
        sent.insert(ahead->first);
        continue;
      }
      size_t part = waiting.begin()->second.front();
      return op.emitError() << "the transfers of the parts form a cycle; part '"
                            << result.program.parts[part].name << "' waits for transfer "
                            << waiting.begin()->first << ", whose send never runs";
    }
    auto [first, second] = std::pair(both->second[0], both->second[1]);
    if (!transferAt(first)->isSend)
      std::swap(first, second);
    parts[first][next[first]++]->order = order++;
    parts[second][next[second]++]->order = order++;
  }
}
