//===- Rt.h - The rt dialect ------------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_RT_IR_RT_H
#define TESSERA_DIALECT_RT_IR_RT_H

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

#include "tessera/Dialect/Rt/IR/RtDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Rt/IR/RtTypes.h.inc"

#define GET_OP_CLASSES
#include "tessera/Dialect/Rt/IR/RtOps.h.inc"

namespace tessera::rt {

/// Whether a function is a kernel (has `kernel.reads`).
bool isKernel(mlir::Operation *function);
/// Rule R2 for a mesh that `op`, inside a part whose mesh is declared, names.
mlir::LogicalResult verifySameDevices(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh);

} // namespace tessera::rt

#endif // TESSERA_DIALECT_RT_IR_RT_H
