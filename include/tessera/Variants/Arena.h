//===- Arena.h - Planned memory of a program --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_VARIANTS_ARENA_H
#define TESSERA_VARIANTS_ARENA_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Planned peak, in bytes, of the device with the largest peak; read from the rt.program of a
/// module.
int64_t peakMemory(mlir::ModuleOp module);

/// The same of a module in the local view, which is lowered in a copy.
mlir::FailureOr<int64_t> arenaOf(mlir::ModuleOp localView);

} // namespace tessera

#endif // TESSERA_VARIANTS_ARENA_H
