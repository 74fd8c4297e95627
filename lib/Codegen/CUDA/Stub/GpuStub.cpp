//===- GpuStub.cpp - Emit object files for the emulator -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../CPU/KernelTarget.h"
#include "../GpuStages.h"
#include "GpuRetarget.h"
#include "tessera/Runtime/Gpu/StubKernel.h"
#include "tessera/Support/CpuFeatures.h"

#include "mlir/Target/LLVMIR/Export.h"

using namespace mlir;

namespace tessera::codegen {

/// The pointer to the table, in the object of emitStubRuntime.
static constexpr llvm::StringLiteral kTable = "tessera_stub_table";

static FailureOr<std::string> toObject(ModuleOp module, std::string &error) {
  // Images run on other machines, so target the baseline CPU of this architecture.
  CpuOptions options;
  options.cpu = hostArchitecture();
  FailureOr<KernelTarget> target = KernelTarget::get(options, error);
  if (failed(target))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(module, context, "stub");
  if (!translated) {
    error = "translation to LLVM IR failed";
    return failure();
  }
  FailureOr<std::string> object = emitObject(*translated, *target, OptimiseLevel::Explicit);
  if (failed(object))
    error = "code generation failed";
  return object;
}

FailureOr<std::string> emitStub(ModuleOp launches,
                                const std::map<std::string, std::vector<int64_t>> &argumentBytes,
                                bool reportAccesses, std::string &error) {
  OpBuilder b = OpBuilder::atBlockBegin(launches.getBody());
  auto table = LLVM::GlobalOp::create(
      b, launches.getLoc(), LLVM::LLVMPointerType::get(launches.getContext()),
      /*isConstant=*/false, LLVM::Linkage::External, kTable, Attribute());
  table.setVisibility_(LLVM::Visibility::Hidden);
  for (auto function : llvm::to_vector(launches.getOps<LLVM::LLVMFuncOp>()))
    retargetToStub(function, table, argumentBytes.at(function.getName().str()), reportAccesses);
  if (Operation *shared = launches.lookupSymbol("tessera_shared"))
    shared->erase();
  return toObject(launches, error);
}

FailureOr<std::string> emitStubRuntime(std::string &error) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<LLVM::LLVMDialect>();
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  Type pointer = LLVM::LLVMPointerType::get(&context), i32 = b.getI32Type();
  LLVM::GlobalOp::create(b, loc, i32, /*isConstant=*/true, LLVM::Linkage::External,
                         "tessera_stub_version", b.getI32IntegerAttr(TESSERA_STUB_VERSION));
  auto table = LLVM::GlobalOp::create(b, loc, pointer, /*isConstant=*/false,
                                      LLVM::Linkage::External, kTable, Attribute());
  table.setVisibility_(LLVM::Visibility::Hidden);
  Block *initial = b.createBlock(&table.getInitializerRegion());
  b.setInsertionPointToStart(initial);
  LLVM::ReturnOp::create(b, loc, ValueRange{LLVM::ZeroOp::create(b, loc, pointer)});
  b.setInsertionPointToEnd(module->getBody());
  auto bind = LLVM::LLVMFuncOp::create(
      b, loc, "tessera_stub_bind",
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context), {pointer}));
  Block *block = bind.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  LLVM::StoreOp::create(b, loc, block->getArgument(0), LLVM::AddressOfOp::create(b, loc, table));
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return toObject(*module, error);
}

} // namespace tessera::codegen
