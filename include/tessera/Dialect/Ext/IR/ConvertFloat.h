//===- ConvertFloat.h - Conversions between float types ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_CONVERTFLOAT_H
#define TESSERA_DIALECT_EXT_IR_CONVERTFLOAT_H

#include "mlir/IR/Builders.h"

namespace tessera::ext {

/// Converts the float `x` to another float type, rounding once.
mlir::Value convertFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Type type);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_CONVERTFLOAT_H
