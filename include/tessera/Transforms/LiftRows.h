//===- LiftRows.h - Rows of a rotating dimension ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_LIFTROWS_H
#define TESSERA_TRANSFORMS_LIFTROWS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// In loops that rotate a state by its first dimension (pipelines written as rolls), computes what
/// follows from one row of it for all rows, across iterations, up to where it is put back into a
/// row or leaves the loop. Where the dimension is cut, rows then stay where they are. Takes as
/// many times the memory of what is lifted as there are rows, unless these are cut. For normalized
/// programs; returns whether there was such a loop.
bool liftRows(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_LIFTROWS_H
