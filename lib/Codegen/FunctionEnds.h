//===- FunctionEnds.h - Arguments, results of local functions ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_FUNCTIONENDS_H
#define TESSERA_LIB_CODEGEN_FUNCTIONENDS_H

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// The index of a local function's argument in the program (`dist.argument`, by default its own
/// index).
inline int64_t originalArgument(mlir::func::FuncOp function, unsigned index) {
  auto original = function.getArgAttrOfType<mlir::IntegerAttr>(index, dist::DistDialect::kArgument);
  return original ? original.getInt() : index;
}

/// The same of a result (`dist.result`).
inline int64_t originalResult(mlir::func::FuncOp function, unsigned index) {
  auto original =
      function.getResultAttrOfType<mlir::IntegerAttr>(index, dist::DistDialect::kResult);
  return original ? original.getInt() : index;
}

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_FUNCTIONENDS_H
