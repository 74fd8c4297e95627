//===- Dist.h - The dist dialect --------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_DIST_H
#define TESSERA_DIALECT_DIST_IR_DIST_H

#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <memory>

namespace tessera::dist {
class OpShardingVerifier;
} // namespace tessera::dist

#include "tessera/Dialect/Dist/IR/DistDialect.h.inc"
#include "tessera/Dialect/Dist/IR/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "tessera/Dialect/Dist/IR/DistAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Dist/IR/DistTypes.h.inc"

#include "tessera/Dialect/Dist/IR/DistInterfaces.h.inc"

#define GET_OP_CLASSES
#include "tessera/Dialect/Dist/IR/DistOps.h.inc"

namespace tessera::dist {

/// Converts a kind between the algebra and the IR.
sharding::ReduceKind toAlgebra(ReduceKind kind);
ReduceKind toIR(sharding::ReduceKind kind);

/// The declared mesh with this name as seen from `op`, or null.
ProcessMeshOp lookupMesh(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

/// Converts axis lists by name to lists of the algebra. Fails with an error that names the violated
/// rule, S4 or S5.
mlir::FailureOr<sharding::AxisList>
resolveAxes(AxisListAttr axes, const sharding::Mesh &mesh,
            llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// The inverse.
AxisListAttr toIR(mlir::MLIRContext *context, const sharding::Mesh &mesh,
                  const sharding::AxisList &axes);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_DIST_H
