//===- PackProducts.cpp - Memory for packed operands of products ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Runtime/Execution/PackedProducts.h"

using namespace mlir;
using namespace tessera;

LogicalResult codegen::packProducts(ModuleOp module, double budget) {
  FailureOr<SerializedProgram> serialized = serialize(module, /*withConstants=*/false);
  if (failed(serialized))
    return failure();
  const runtime::Program &program = serialized->program;
  rt::ProgramOp op = *module.getOps<rt::ProgramOp>().begin();
  for (auto [index, part] : llvm::enumerate(op.getBody().front().getOps<rt::PartOp>())) {
    auto arena = static_cast<int64_t>(llvm::alignTo(part.getArenaBytes(), runtime::kAlignment));
    constexpr double kMost = 1e18;
    double left = budget - static_cast<double>(op.sumArenas()) - runtime::kAlignment;
    runtime::PackPlan plan = runtime::planPacking(
        program, program.parts[index], static_cast<int64_t>(std::clamp(left, 0.0, kMost)));
    if (plan.bytes == 0)
      continue;
    part.setArenaBytes(arena + plan.bytes);
    part.setPackedBytes(plan.bytes);
  }
  op.setPeakBytes(op.sumArenas());
  return success();
}
