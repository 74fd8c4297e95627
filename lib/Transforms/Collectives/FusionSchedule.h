//===- FusionSchedule.h - Which collectives of a block become one -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H

#include "mlir/IR/Block.h"

#include <optional>

namespace tessera::dist {

/// A collective of one operand that may be joined with others.
struct FusionCandidate {
  int64_t group; ///< small and dense; members of one group may become one op
  int64_t bytes; ///< of the operand
  int64_t limit; ///< bytes that a joined op may have
};

/// Joins the candidates of a block: one joins the newest op of its group unless it depends on it or
/// the limit is hit. The joined op stands where its last member stood, what uses the others waits
/// behind it; all else keeps its order. Time: linear in operands, times groups, and a sort.
void fuseInBlock(mlir::Block &block,
                 llvm::function_ref<std::optional<FusionCandidate>(mlir::Operation *)> candidateOf);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_FUSIONSCHEDULE_H
