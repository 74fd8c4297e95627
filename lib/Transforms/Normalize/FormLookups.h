//===- FormLookups.h - Reads and writes at computed indices -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMLOOKUPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMLOOKUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Rewrites what reads or writes a tensor at computed indices so that any of its dimensions may be
/// cut: `tensor.gather`, `tensor.scatter` and the `tensor.extract` ops of elementwise bodies become
/// nests that select (Dialect/Dist/Rules/Selection.h), single elements become slices, and slices of
/// whole dimensions begin at 0. Indices are clamped as before.
void formLookups(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMLOOKUPS_H
