//===- AttributeSyntax.h - Syntax of attributes and ops ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_ATTRIBUTESYNTAX_H
#define TESSERA_DIALECT_DIST_IR_ATTRIBUTESYNTAX_H

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera::dist {

/// `"tp"` or `"tp":(1)2`.
mlir::ParseResult parseAxisRef(mlir::AsmParser &parser, AxisRefAttr &axis);
void printAxisRef(llvm::raw_ostream &os, AxisRefAttr axis);
/// `["dp", "tp"]`.
mlir::ParseResult parseAxes(mlir::AsmParser &parser, AxisListAttr &axes);
void printAxes(llvm::raw_ostream &os, AxisListAttr axes);
/// `#dist.sharding<…>`, or an alias of one; `swallowed` is the type after it that the generic
/// parser has consumed, or null.
mlir::ParseResult parseShardingOperand(mlir::AsmParser &parser, ShardingAttr &sharding,
                                       mlir::Type &swallowed);

/// `(dim, step, offset, length)`, with the divisor and the selection unless they are the default.
void printWindow(llvm::raw_ostream &os, WindowAttr window);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_ATTRIBUTESYNTAX_H
