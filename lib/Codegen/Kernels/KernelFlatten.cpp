//===- KernelFlatten.cpp - Kernels as flow graphs and addresses -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {

LogicalResult lowerToScalarLoops(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::linalgOpToLoops(rewriter, op)))
      return op.emitOpError("has no loop form");
    rewriter.eraseOp(op);
  }
  return success();
}

LogicalResult flattenKernel(ModuleOp module) {
  MLIRContext *context = module.getContext();
  {
    RewritePatternSet patterns(context);
    memref::populateExpandStridedMetadataPatterns(patterns);
    memref::populateExpandOpsPatterns(patterns);
    vector::populateVectorStepLoweringPatterns(patterns);
    if (failed(applyPatternsGreedily(module, std::move(patterns))))
      return failure();
  }
  RewritePatternSet patterns(context);
  populateAffineToStdConversionPatterns(patterns);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<affine::AffineDialect, scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

void useMemoryTypes(LLVM::LLVMFuncOp function) {
  auto inMemory = [](Type type) -> Type {
    Type element = getElementTypeOrSelf(type);
    auto vector = dyn_cast<VectorType>(type);
    if (!element.isBF16() && !(vector && element.isInteger(1)))
      return {};
    Type integer = IntegerType::get(type.getContext(), element.isBF16() ? 16 : 8);
    return vector ? Type(vector.clone(integer)) : integer;
  };
  function.walk([&](Operation *op) {
    OpBuilder builder(op);
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      Type type = load.getType(), memory = inMemory(type);
      if (!memory)
        return;
      builder.setInsertionPointAfter(load);
      load.getResult().setType(memory);
      Operation *cast =
          getElementTypeOrSelf(type).isBF16()
              ? LLVM::BitcastOp::create(builder, load.getLoc(), type, load.getResult())
              : LLVM::TruncOp::create(builder, load.getLoc(), type, load.getResult());
      load.getResult().replaceAllUsesExcept(cast->getResult(0), cast);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      Value value = store.getValue();
      Type memory = inMemory(value.getType());
      if (!memory)
        return;
      Operation *cast = getElementTypeOrSelf(value.getType()).isBF16()
                            ? LLVM::BitcastOp::create(builder, store.getLoc(), memory, value)
                            : LLVM::ZExtOp::create(builder, store.getLoc(), memory, value);
      store.getValueMutable().assign(cast->getResult(0));
    } else if (isa<LLVM::SelectOp, LLVM::ShuffleVectorOp, LLVM::InsertElementOp,
                   LLVM::ExtractElementOp>(op)) {
      // Including selects and moves: in bf16, these would also affect the loads.
      Type type = op->getResult(0).getType();
      if (!getElementTypeOrSelf(type).isBF16())
        return;
      for (OpOperand &operand : op->getOpOperands())
        if (getElementTypeOrSelf(operand.get().getType()).isBF16())
          operand.set(LLVM::BitcastOp::create(builder, op->getLoc(),
                                              inMemory(operand.get().getType()), operand.get()));
      op->getResult(0).setType(inMemory(type));
      builder.setInsertionPointAfter(op);
      auto cast = LLVM::BitcastOp::create(builder, op->getLoc(), type, op->getResult(0));
      op->getResult(0).replaceAllUsesExcept(cast, cast);
    }
  });
}

} // namespace tessera::codegen
