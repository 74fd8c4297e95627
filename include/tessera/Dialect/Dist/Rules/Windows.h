//===- Windows.h - Ops that compute windows of their results ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_WINDOWS_H
#define TESSERA_DIALECT_DIST_RULES_WINDOWS_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether an op can compute windows of its result (`windows` of `dist.op_sharding`): one that
/// moves them, a slice, a linalg op.
bool computesWindows(mlir::Operation *op);
/// Whether it moves elements alone, and fills what is beyond: a splat constant, a pad by a
/// constant, a rearrangement.
bool movesWindows(mlir::Operation *op);

/// The element that every window of a value, in the global view, has beyond the tensor: the fill of
/// the reshard or op that makes the window. Null where these elements are undefined.
mlir::Attribute fillOf(mlir::Value value);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_WINDOWS_H
