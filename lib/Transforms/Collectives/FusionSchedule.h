//===- FusionSchedule.h - Join the collectives of a block -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H

#include "tessera/Planning/CollectiveJoins.h"

#include "mlir/IR/Block.h"

namespace tessera::dist {

/// Joins the candidates of a block as chosen by joinCollectives.
void fuseInBlock(mlir::Block &block,
                 llvm::function_ref<std::optional<JoinCandidate>(mlir::Operation *)> candidateOf,
                 JoinBudget *budget = nullptr);

/// Sets the reasons of the members of a joined collective.
void setReasons(mlir::Operation *joined, llvm::ArrayRef<mlir::Attribute> reasons);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H
