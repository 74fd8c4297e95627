//===- tessera-opt.cpp - Runs passes on IR files ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Passes.h"
#include "tessera/Codegen/CPU/KernelCompiler.h"
#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  tessera::check::CheckDialect, tessera::dist::DistDialect, tessera::rt::RtDialect>();
  tessera::codegen::registerCodegenPasses();
  mlir::PassPipelineRegistration<>("codegen", "local view -> rt.program",
                                   tessera::codegen::buildCodegenPipeline);
  tessera::codegen::registerCompileKernelsPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tessera's pass driver\n", registry));
}
