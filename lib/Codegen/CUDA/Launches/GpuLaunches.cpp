//===- GpuLaunches.cpp - Split a kernel into grid launches ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Emit/GpuEmitter.h"
#include "../GpuStages.h"
#include "GpuPlan.h"
#include "GpuWorkspace.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

class Splitter {
public:
  Splitter(func::FuncOp kernel, ModuleOp launches, StringRef symbol, ArrayRef<bool> mayAlias,
           const GpuLaunchLimits &limits, runtime::GpuKernel &result, GpuKernelInfo &info)
      : kernel(kernel), launches(launches), symbol(symbol), mayAlias(mayAlias), limits(limits),
        result(result), info(info) {}

  LogicalResult run(bool schemes) {
    if (schemes) {
      plans = planLaunches(kernel);
      if (succeeded(emitPlans()))
        return success();
      addReason("a single thread: " + reason);
      restart();
    }
    plans.clear();
    GpuPlan all;
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isa<memref::AllocOp, memref::AllocaOp, memref::DeallocOp>(op))
        all.ops.push_back(&op);
    plans.push_back(std::move(all));
    return emitPlans();
  }

private:
  LogicalResult emitPlans() {
    for (size_t i = 0; i < plans.size(); ++i)
      if (failed(emit(i)))
        return failure();
    workspace.layOut(result);
    info.workspaceBytes = result.workspaceBytes;
    return success();
  }

  /// Whether a plan at or before `index` writes `root` after the kernel's op `load`, or a later
  /// plan contains a write before `load`.
  bool changedBefore(size_t index, Operation *load, Value root) {
    for (auto [i, plan] : llvm::enumerate(plans)) {
      SmallVector<Value> reads, writes;
      plan.effects(reads, writes);
      if (llvm::is_contained(writes, root) && plan.any([&](Operation *op) {
            return i <= index ? load->isBeforeInBlock(op) : op->isBeforeInBlock(load);
          }))
        return true;
    }
    return false;
  }

  bool liveAfter(size_t index, Value root) {
    if (isa<BlockArgument>(root))
      return true;
    for (size_t i = index + 1; i < plans.size(); ++i) {
      SmallVector<Value> reads, writes;
      plans[i].effects(reads, writes);
      // Launches load the scalars that the kernel loads between launches.
      if (llvm::is_contained(reads, root))
        return true;
      for (Operation *user : root.getUsers())
        if (isa<memref::LoadOp>(user))
          return true;
    }
    return false;
  }

  LogicalResult emit(size_t index) {
    GpuPlan &plan = plans[index];
    Operation *first = plan.group ? plan.group->members.front().op.getOperation() : plan.ops[0];
    std::string name = (symbol + "_" + Twine(result.launches.size())).str();
    GpuLaunchBuilder builder(launches, name, first->getLoc());
    auto changed = [&](Operation *load, Value root) { return changedBefore(index, load, root); };
    builder.changed = changed;
    GpuLaunchInfo launchInfo;
    FailureOr<GpuShape> shape;
    if (plan.group) {
      for (const GpuMember &member : plan.group->members)
        contractMultiplyAdds(member.op);
      auto live = [&](Value root) { return liveAfter(index, root); };
      shape = GpuEmitter(builder, *plan.group, launchInfo, live, limits).emit();
    } else {
      shape = emitLoops(plan, builder, launchInfo);
      if (launchInfo.scheme != GpuScheme::scatter)
        addReason(plan.reason);
    }
    if (failed(shape)) {
      reason = builder.reason;
      builder.function.erase();
      return failure();
    }
    addReason(builder.reason); // for the scheme
    if (builder.buffers.empty()) {
      builder.function.erase(); // no code
      return success();
    }
    builder.finish(shape->threads, shape->resident);
    runtime::GpuLaunch launch;
    launch.symbol = name;
    launch.grid = {shape->blocks, 1, 1};
    launch.block = {shape->threads, 1, 1};
    launch.sharedBytes = builder.sharedBytes;
    for (const GpuLaunchBuilder::Buffer &buffer : builder.buffers) {
      auto type = cast<MemRefType>(buffer.root.getType());
      runtime::GpuArgument argument;
      argument.bytes = type.getNumElements() * bytesOf(type.getElementType());
      argument.writes = buffer.written;
      if (auto block = dyn_cast<BlockArgument>(buffer.root))
        argument.slot = block.getArgNumber();
      else
        workspace.use(buffer.root, result.launches.size(), launch.arguments.size());
      unsigned place = launch.arguments.size();
      auto block = dyn_cast<BlockArgument>(buffer.root);
      if (!block || !mayAlias[block.getArgNumber()])
        builder.function.setArgAttr(place, LLVM::LLVMDialect::getNoAliasAttrName(),
                                    builder.b.getUnitAttr());
      builder.function.setArgAttr(place, LLVM::LLVMDialect::getAlignAttrName(),
                                  builder.b.getI64IntegerAttr(64));
      launch.arguments.push_back(argument);
    }
    result.launches.push_back(std::move(launch));
    info.launches.push_back(launchInfo);
    return success();
  }

  void addReason(const std::string &why) {
    if (why.empty() || info.reason.find(why) != std::string::npos)
      return;
    info.reason += (info.reason.empty() ? "" : ", ") + why;
  }

  void restart() {
    for (const runtime::GpuLaunch &launch : result.launches)
      launches.lookupSymbol(launch.symbol)->erase();
    result = {};
    info.launches.clear();
    workspace.clear();
  }

  func::FuncOp kernel;
  ModuleOp launches;
  StringRef symbol;
  ArrayRef<bool> mayAlias;
  const GpuLaunchLimits &limits;
  runtime::GpuKernel &result;
  GpuKernelInfo &info;
  std::vector<GpuPlan> plans;
  std::string reason;
  GpuWorkspace workspace;
};

} // namespace

LogicalResult splitIntoLaunches(func::FuncOp kernel, ModuleOp launches, StringRef symbol,
                                ArrayRef<bool> mayAlias, bool schemes,
                                const GpuLaunchLimits &limits, runtime::GpuKernel &result,
                                GpuKernelInfo &info) {
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<MemRefType>(argument.getType());
    info.argumentBytes += type.getNumElements() * bytesOf(type.getElementType());
  }
  return Splitter(kernel, launches, symbol, mayAlias, limits, result, info).run(schemes);
}

} // namespace tessera::codegen
