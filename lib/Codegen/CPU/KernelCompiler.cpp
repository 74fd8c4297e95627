//===- KernelCompiler.cpp - Tensor kernels to a shared object -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "KernelCache.h"
#include "KernelLink.h"
#include "KernelStages.h"
#include "KernelTarget.h"
#include "KernelUnits.h"

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
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace tessera::codegen {

void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
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
    return kernel.emitError("kernel name '") << kernel.getName() << "' is no symbol name";
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
        dialect &&
        isa<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
            scf::SCFDialect, tensor::TensorDialect, affine::AffineDialect, ub::UBDialect>(dialect);
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
      if (attribute.getName() != kKernelReadsAttr)
        op->removeDiscardableAttr(attribute.getName());
  });
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

namespace {
struct Unit : KernelUnit {
  KernelInfo info = {};
  std::string object = {}, error = {};
};
} // namespace

static llvm::json::Object writeInfo(const KernelInfo &info) {
  return llvm::json::Object{{"vectorised", info.scheme == KernelScheme::Vectorised},
                            {"reason", llvm::json::fixUTF8(info.reason)},
                            {"tasks", info.tasks},
                            {"stack_bytes", info.stackBytes},
                            {"heap_bytes", info.heapBytes}};
}

static void readInfo(const llvm::json::Object &about, KernelInfo &info) {
  info.scheme = about.getBoolean("vectorised").value_or(false) ? KernelScheme::Vectorised
                                                               : KernelScheme::Fallback;
  info.reason = about.getString("reason").value_or("").str();
  info.tasks = about.getInteger("tasks").value_or(1);
  info.stackBytes = about.getInteger("stack_bytes").value_or(0);
  info.heapBytes = about.getInteger("heap_bytes").value_or(0);
  info.cached = true;
}

static void compileUnits(std::vector<Unit> &units, const KernelTarget &target,
                         const CpuOptions &options, const KernelCache *cache) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  auto compile = [&](size_t i, llvm::function_ref<MLIRContext &()> context) {
    Unit &unit = units[i];
    if (llvm::json::Object about; cache && cache->load(unit.symbol, unit.object, about)) {
      readInfo(about, unit.info);
      return;
    }
    FailureOr<std::string> object = compileKernelText(context(), unit.text, unit.symbol, target,
                                                      options, unit.info, unit.error);
    if (failed(object))
      return;
    unit.object = std::move(*object);
    if (cache)
      cache->store(unit.symbol, unit.object, writeInfo(unit.info));
  };
  compileInParallel(units.size(), options.threads, registry, compile);
}

FailureOr<std::vector<char>> compileKernels(ModuleOp kernels, const CpuOptions &options,
                                            std::vector<KernelInfo> *infos) {
  std::string error;
  FailureOr<KernelTarget> target = KernelTarget::get(options, error);
  if (failed(target))
    return kernels.emitError(error), failure();

  std::string salt = target->key() + (options.vectorise ? "|v|" : "|s|") + kernelCompilerRevision();
  FailureOr<KernelUnits> collected = collectUnits(kernels, salt);
  if (failed(collected))
    return failure();
  std::vector<Unit> units;
  for (KernelUnit &unit : collected->units)
    units.push_back({std::move(unit)});

  bool useCache = options.useCache && !options.keepLLVMIR && !options.keepLoopIR;
  KernelCache cache(options.cacheDirectory, options.cacheLimitBytes);
  compileUnits(units, *target, options, useCache ? &cache : nullptr);
  if (useCache)
    cache.trim();

  std::vector<std::string> objects;
  for (Unit &unit : units) {
    if (unit.object.empty())
      return unit.first.emitError("kernel cannot be compiled: ") << unit.error, failure();
    objects.push_back(std::move(unit.object));
  }
  std::vector<ExportedSymbol> exports;
  for (auto &[name, unit] : collected->functions) {
    exports.emplace_back(name, units[unit].symbol);
    if (infos) {
      infos->push_back(units[unit].info);
      infos->back().name = name;
    }
  }
  FailureOr<std::vector<char>> linked = linkSharedObject(objects, exports, options.linker, error);
  if (failed(linked))
    return kernels.emitError(error), failure();
  return linked;
}

} // namespace tessera::codegen
