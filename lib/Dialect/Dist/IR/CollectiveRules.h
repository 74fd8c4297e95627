//===- CollectiveRules.h - Verifier of collectives --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_IR_COLLECTIVERULES_H
#define TESSERA_LIB_DIALECT_DIST_IR_COLLECTIVERULES_H

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera::dist {

/// Rules C1 to C5 and C8; called by the verifier of every collective.
mlir::LogicalResult verifyCollective(CollectiveOpInterface op);

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_IR_COLLECTIVERULES_H
