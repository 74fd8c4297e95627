//===- Inline.h - Calls become copies of what they call --------*- C++ -*-===//
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

/// Inlines every func.call of the module, so that each call site can lie on the mesh in its own
/// way; shardings declared by a called function become dist.shard_tensor at its arguments and
/// results. Private functions that nobody calls any more are erased. Fails on recursion and unknown
/// callees.
mlir::LogicalResult inlineCalls(mlir::ModuleOp module);

/// The same for the calls of one function and of those that it calls, but for calls with a
/// derivative of their own (`dist.custom_vjp`), which stay.
mlir::LogicalResult inlineCallsForDerivative(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_INLINE_H
