//===- Check.h - Assertions on values inside a program ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_CHECK_CHECK_H
#define TESSERA_DIALECT_CHECK_CHECK_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "tessera/Dialect/Check/CheckDialect.h.inc"

#define GET_OP_CLASSES
#include "tessera/Dialect/Check/CheckOps.h.inc"

#endif // TESSERA_DIALECT_CHECK_CHECK_H
