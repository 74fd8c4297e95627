//===- KernelLower.cpp - Kernels in the LLVM dialect --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

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
      // Choosing and moving, too: left in bf16, they draw the loads along.
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

/// `void symbol(void **args, i64 begin, i64 end)`, which unpacks its arguments for `body`.
static void addEntryPoint(ModuleOp module, LLVM::LLVMFuncOp body, StringRef symbol) {
  MLIRContext *context = module.getContext();
  Location loc = body.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(context), i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, i64, i64});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, symbol, type);
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (unsigned i = 0, e = body.getNumArguments() - 2; i < e; ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, block->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  arguments.push_back(block->getArgument(1));
  arguments.push_back(block->getArgument(2));
  LLVM::CallOp::create(builder, loc, body, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

LogicalResult lowerKernelToLLVM(ModuleOp module, func::FuncOp kernel, StringRef symbol,
                                ArrayRef<bool> mayAlias) {
  MLIRContext *context = module.getContext();
  // A name that no other function has: objects of many kernels are linked together.
  std::string bodyName = (symbol + ".body").str();
  kernel.setName(bodyName);
  for (StringAttr name : llvm::map_to_vector(kernel->getDiscardableAttrs(),
                                             [](NamedAttribute a) { return a.getName(); }))
    kernel->removeDiscardableAttr(name);
  if (failed(flattenKernel(module)))
    return failure();
  {
    // Near zero LLVM's lowering of these, exp(x) - 1 and log(1 + x), has no digits left.
    RewritePatternSet patterns(context);
    populateMathToLibmConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalOp<math::ExpM1Op, math::Log1pOp>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }

  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  options.allocLowering = LowerToLLVMOptions::AllocLowering::AlignedAlloc;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  // Instructions before library calls: both know fma, sqrt and their like.
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false,
                                       /*benefit=*/2);
  populateMathToLibmConversionPatterns(patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return failure();

  auto body = module.lookupSymbol<LLVM::LLVMFuncOp>(bodyName);
  body.setLinkage(LLVM::Linkage::Internal);
  useMemoryTypes(body);
  OpBuilder builder(context);
  for (auto [i, alias] : llvm::enumerate(mayAlias)) {
    if (!alias)
      body.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    body.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(64));
  }
  // Inlined, the promises about its arguments would be lost.
  body.setNoInline(true);
  addEntryPoint(module, body, symbol);
  return success();
}

} // namespace tessera::codegen
