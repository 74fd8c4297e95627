//===- Passes.h - Lower the local view to steps -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_PASSES_H
#define TESSERA_CODEGEN_PASSES_H

#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Fusion/FuseGraph.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace tessera::codegen {

#define GEN_PASS_DECL
#include "tessera/Codegen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Codegen/Passes.h.inc"

/// What differs between the targets up to the steps.
struct CodegenPipelineOptions : mlir::PassPipelineOptions<CodegenPipelineOptions> {
  Option<bool> gpu{*this, "gpu",
                   llvm::cl::desc("Bias and activation become a part of products, and sums over "
                                  "rows a part of the kernels of these rows"),
                   llvm::cl::init(false)};
};

/// Local view -> `rt.program`: the passes of this folder in order.
void buildCodegenPipeline(mlir::OpPassManager &manager, const CodegenPipelineOptions &options);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PASSES_H
