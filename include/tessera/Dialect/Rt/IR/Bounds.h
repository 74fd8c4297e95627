//===- Bounds.h - Where contractions read padding ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_RT_IR_BOUNDS_H
#define TESSERA_DIALECT_RT_IR_BOUNDS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace tessera::rt {

/// An attribute of `rt.contraction` and `rt.contract` that may be dropped: integers, for each bound
/// a begin, an end and a stride for each loop. Where the sum of index times stride is not in
/// [begin, end), an operand is padded with zeros, so that the product may be left out.
inline constexpr llvm::StringLiteral kWithin = "rt.within";

inline mlir::DenseI64ArrayAttr withinOf(mlir::Operation *op) {
  return op->getAttrOfType<mlir::DenseI64ArrayAttr>(kWithin);
}

} // namespace tessera::rt

#endif // TESSERA_DIALECT_RT_IR_BOUNDS_H
