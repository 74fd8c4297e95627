//===- WriteByMap.h - Updates at indices that follow a rule -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_WRITEBYMAP_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_WRITEBYMAP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Rewrites updates of rows with distinct indices that are known at compile time, such as
/// `x.at[1::2].mul(u)`, without a search: the update is rearranged to the rows that it changes, and
/// the remaining op has only the loop over rows.
void writeByMap(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_WRITEBYMAP_H
