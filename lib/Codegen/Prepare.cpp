//===- Prepare.cpp - Forms that kernels, gemms and views express ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerGroups.h"
#include "OverwriteBlocks.h"
#include "PadProducts.h"
#include "PrepareScalars.h"
#include "PrepareTensors.h"
#include "TakeLookups.h"
#include "TakeSlices.h"
#include "TakeUnitDims.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENPREPARE
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Steps have slots, not shardings: annotations of ops would only make equal kernels differ.
/// Collectives and functions keep theirs.
static void dropShardings(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (isa<func::FuncOp>(op) || isa_and_nonnull<dist::DistDialect>(op->getDialect()))
      return;
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (isa_and_nonnull<dist::DistDialect>(attribute.getNameDialect()))
        op->removeDiscardableAttr(attribute.getName());
  });
}

namespace {
struct CodegenPrepare : codegen::impl::CodegenPrepareBase<CodegenPrepare> {
  using CodegenPrepareBase::CodegenPrepareBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!dist::isLocalView(function))
      return;
    dropShardings(function);
    if (parallel)
      padProducts(function);
    lowerGroups(function);
    if (failed(checkSignature(function)) || failed(prepareTensors(function, parallel)))
      return signalPassFailure();
    if (!parallel)
      takeSlices(function);
    overwriteBlocks(function);
    takeLookups(function);
    takeUnitDims(function);
    prepareScalars(function);
  }

  /// The driver supports only tensors as arguments and results.
  LogicalResult checkSignature(func::FuncOp function) {
    auto check = [&](Type type, const Twine &what) -> LogicalResult {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        return function.emitError()
               << what << " is " << type << "; arguments and results must be tensors";
      if (!tensor.hasStaticShape())
        return function.emitError() << what << " is " << type << "; shapes must be static";
      return success();
    };
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (failed(check(type, "argument " + Twine(index))))
        return failure();
    for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
      if (failed(check(type, "result " + Twine(index))))
        return failure();
    return success();
  }
};
} // namespace
