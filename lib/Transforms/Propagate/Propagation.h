//===- Propagation.h - Propagation of axes between tensors ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H

#include "tessera/Planning/Decide.h"

namespace tessera::dist {

/// Propagates the annotated axes over the graph to a fixpoint. Reports the origin of each axis to
/// the context's action handler, if there is a context.
void propagateAxes(PropagationGraph &graph, mlir::MLIRContext *context);

/// Writes a plan into the IR: arguments, results of the function and values of control flow get the
/// shardings of the graph's tensors (closed), ops and their results those of the decision.
void writeShardings(mlir::func::FuncOp function, const PropagationGraph &graph,
                    const Decision &decision);

/// Leaves results without a placement open over axes with contributions, if they may be cut:
/// contributions that reach such a result are scattered (Reshard/OpenResults.h).
void leaveResultsOpen(mlir::func::FuncOp function, const PropagationGraph &graph,
                      const Decision &decision);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H
