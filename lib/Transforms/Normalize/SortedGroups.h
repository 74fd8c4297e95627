//===- SortedGroups.h - The group of each sorted row ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SORTEDGROUPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SORTEDGROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Replaces the groups of rows that are found from the ends of groups by the sorted keys, where the
/// ends are sums of the numbers of equal keys.
void takeSortedGroups(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SORTEDGROUPS_H
