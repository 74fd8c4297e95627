//===- Inline.h - Inline all calls ------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_INLINE_H
#define TESSERA_TRANSFORMS_INLINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// Inlines every func.call of the module, so that each call site can have its own shardings;
/// shardings declared by a called function become dist.shard_tensor at its arguments and results.
/// Erases private functions without calls. Fails on recursion and unknown callees.
mlir::LogicalResult inlineCalls(mlir::ModuleOp module);

/// The same for the transitive calls of one function, except calls with a custom derivative
/// (`dist.custom_vjp`).
mlir::LogicalResult inlineCallsForDerivative(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_INLINE_H
