//===- CheckKernel.cpp - Requirements of all targets on a kernel ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Codegen/Kernels/TaskLoop.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/SubsetOpInterfaceImpl.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace tessera::codegen {

void registerKernelDialects(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
              ext::ExtDialect, rt::RtDialect, cf::ControlFlowDialect, func::FuncDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerSubsetOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

LogicalResult checkKernel(func::FuncOp kernel) {
  auto reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr);
  if (!reads || reads.getInt() < 0 || reads.getInt() > kernel.getNumArguments())
    return kernel.emitError("kernel needs the attribute '")
           << kKernelReadsAttr << "', the number of arguments it only reads";
  if (kernel.isExternal())
    return kernel.emitError("kernel has no body");
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("kernel has more than one block");
  // Names become symbols in a linker script.
  if (!llvm::all_of(kernel.getName(),
                    [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; }))
    return kernel.emitError("kernel name '") << kernel.getName() << "' is not a symbol name";
  int64_t destinations = kernel.getNumArguments() - reads.getInt();
  if (destinations != kernel.getNumResults())
    return kernel.emitError("kernel has ")
           << destinations << " destinations for " << kernel.getNumResults() << " results";
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return kernel.emitError("kernel argument ") << i << " is not a static tensor: " << type;
    if (int64_t(i) >= reads.getInt() && type != kernel.getResultTypes()[i - reads.getInt()])
      return kernel.emitError("destination ")
             << i << " has type " << type << " but its result has type "
             << kernel.getResultTypes()[i - reads.getInt()];
  }
  WalkResult walk = kernel.walk([&](Operation *op) {
    if (op == kernel)
      return WalkResult::advance();
    Dialect *dialect = op->getDialect();
    bool known =
        dialect && isa<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                       math::MathDialect, scf::SCFDialect, tensor::TensorDialect,
                       affine::AffineDialect, ub::UBDialect, vector::VectorDialect>(dialect);
    known |= op->hasTrait<ext::KernelOp>() || isa<ext::YieldOp, rt::ContractionOp>(op);
    if (!known || isa<func::CallOp, func::CallIndirectOp, func::FuncOp>(op)) {
      op->emitError("'") << op->getName() << "' is not allowed in a kernel";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

std::string canonicalText(func::FuncOp kernel) {
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  copy->setName("kernel");
  copy->setPrivate();
  copy->removeArgAttrsAttr();
  copy->removeResAttrsAttr();
  copy->walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (attribute.getName() != kKernelReadsAttr && attribute.getName() != kTaskLoopAttr)
        op->removeDiscardableAttr(attribute.getName());
  });
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

SmallVector<bool> mayAliasOf(func::FuncOp kernel) {
  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  SmallVector<bool> mayAlias(kernel.getNumArguments(), false);
  for (unsigned input = 0; input < reads; ++input)
    for (unsigned output = reads; output < kernel.getNumArguments(); ++output)
      if (canRunInPlace(kernel, input, output))
        mayAlias[input] = mayAlias[output] = true;
  return mayAlias;
}

ErrorCollector::ErrorCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          text += (text.empty() ? "" : "; ") + diagnostic.str();
        return success();
      }) {}

} // namespace tessera::codegen
