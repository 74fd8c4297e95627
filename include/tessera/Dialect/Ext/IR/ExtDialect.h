//===- ExtDialect.h - Tensor operations beyond affine loops -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_EXTDIALECT_H
#define TESSERA_DIALECT_EXT_IR_EXTDIALECT_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Dialect/Ext/IR/AttentionDomain.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h.inc"

namespace tessera::ext {
using mlir::FailureOr; // names used by the declarations of AggregatedOpInterface
using mlir::OpBuilder;
using mlir::SmallVector;
using mlir::Value;

/// The trait of ops that code generation keeps whole, each a kernel of its own.
template <typename ConcreteOp>
class KernelOp : public mlir::OpTrait::TraitBase<ConcreteOp, KernelOp> {};
} // namespace tessera::ext

#define GET_OP_CLASSES
#include "tessera/Dialect/Ext/IR/ExtOps.h.inc"

#endif // TESSERA_DIALECT_EXT_IR_EXTDIALECT_H
