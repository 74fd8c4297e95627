//===- Memory.h - Memory of a planned program -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_MEMORY_H
#define TESSERA_DRIVER_MEMORY_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Planned peak, in bytes, of the device with the largest peak; read from the rt.program of a
/// module.
int64_t peakMemory(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_DRIVER_MEMORY_H
