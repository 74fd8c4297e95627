//===- Propagation.h - Axes carried from tensor to tensor -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H

#include "Decide.h"

namespace tessera::dist {

/// Carries the axes that the user wrote over the graph until nothing changes. Tells the context's
/// action handler where each axis came from; without a context nobody.
void propagateAxes(PropagationGraph &graph, mlir::MLIRContext *context);

/// Writes a plan into the IR: arguments, results of the function and what control flow hands on have
/// the shardings of the graph's tensors (closed), ops and their results those of the decision.
void writeShardings(mlir::func::FuncOp function, const PropagationGraph &graph,
                    const Decision &decision);

/// Leaves results that nobody placed open over axes of which there are contributions, as far as they
/// may be cut: where contributions reach such a result, they are scattered (Reshard/OpenResults.h).
void leaveResultsOpen(mlir::func::FuncOp function, const PropagationGraph &graph,
                      const Decision &decision);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATION_H
