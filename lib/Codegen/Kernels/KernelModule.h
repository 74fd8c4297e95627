//===- KernelModule.h - The kernels of a program ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELMODULE_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELMODULE_H

#include "tessera/Codegen/Kernels/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tessera::codegen {

/// A module of only the kernels of a module, in order.
inline mlir::OwningOpRef<mlir::ModuleOp> kernelsAlone(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> alone = mlir::ModuleOp::create(module.getLoc());
  mlir::OpBuilder b = mlir::OpBuilder::atBlockEnd(alone->getBody());
  for (auto function : module.getOps<mlir::func::FuncOp>())
    if (function->hasAttr(kKernelReadsAttr))
      b.clone(*function);
  return alone;
}

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELMODULE_H
