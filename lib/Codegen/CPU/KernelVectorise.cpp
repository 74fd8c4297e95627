//===- KernelVectorise.cpp - Loops over vectors ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuStages.h"
#include "KernelEmitter.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// Applies [begin, end) if the kernel consists only of task loops over the same range; returns the
/// number of tasks, otherwise 1.
static int64_t splitIntoTasks(func::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  int64_t step = 0, last = 0;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && loop->hasAttr(kTaskLoopAttr)) {
      std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
      std::optional<int64_t> by = getConstantIntValue(loop.getStep());
      if (!upper || !by || (step && *by != step))
        return 1;
      step = *by;
      last = std::max(last, *upper);
      loops.push_back(loop);
    } else if (!isPure(&op) && !isa<memref::AllocOp, memref::AllocaOp, memref::DeallocOp>(op)) {
      return 1;
    }
  }
  if (loops.empty())
    return 1;
  unsigned count = kernel.getNumArguments();
  Value begin = kernel.getArgument(count - 2), end = kernel.getArgument(count - 1);
  for (scf::ForOp loop : loops) {
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    Value size = arith::ConstantIndexOp::create(b, loc, step);
    Value from = arith::MulIOp::create(b, loc, begin, size);
    Value to = arith::MulIOp::create(b, loc, end, size);
    loop.setLowerBound(arith::MaxSIOp::create(b, loc, loop.getLowerBound(), from));
    loop.setUpperBound(arith::MinSIOp::create(b, loc, loop.getUpperBound(), to));
  }
  return (last + step - 1) / step;
}

LogicalResult vectoriseKernel(func::FuncOp kernel, const KernelTarget &target, KernelInfo &info) {
  info.tasks = splitIntoTasks(kernel);
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::GenericOp op : ops) {
    std::string reason;
    rewriter.setInsertionPoint(op);
    expandIndices(rewriter, op);
    FailureOr<Nest> nest = failure();
    if (hasLaneForm(op, reason))
      nest = Nest::get(op, reason);
    if (succeeded(nest)) {
      // The combiners are known: products that are accumulated may be fused.
      if (target.fma)
        contractMultiplyAdds(op);
      NestPlan plan = planNest(*nest, target);
      NestEmitter(rewriter, *nest, plan).emit();
    } else {
      if (failed(linalg::linalgOpToLoops(rewriter, op)))
        return op.emitOpError("has no loop form");
      if (info.reason.find(reason) == std::string::npos)
        info.reason += (info.reason.empty() ? "scalar loops: " : ", ") + reason;
    }
    rewriter.eraseOp(op);
  }
  return success();
}

} // namespace tessera::codegen
