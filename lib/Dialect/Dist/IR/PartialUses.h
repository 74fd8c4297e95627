//===- PartialUses.h - Uses of contributions (rule C6) ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_IR_PARTIALUSES_H
#define TESSERA_LIB_DIALECT_DIST_IR_PARTIALUSES_H

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera::dist {

/// Rule C6 for one value of the local view with the (verified) sharding `sharding`. Values of the
/// global view have no restrictions.
mlir::LogicalResult verifyPartialUses(mlir::Value value, ShardingAttr sharding);

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_IR_PARTIALUSES_H
