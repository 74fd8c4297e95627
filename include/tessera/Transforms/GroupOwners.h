//===- GroupOwners.h - Rows of groups where their matrices are --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_GROUPOWNERS_H
#define TESSERA_TRANSFORMS_GROUPOWNERS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// Computes what is between look-ups, or products of rows with the matrices of their groups, for
/// each part of tables that annotations cut by rows or groups, where rows of the same groups are
/// looked up again, multiplied again, or added to their groups. Each device then computes the rows
/// of its groups. Takes as many times the memory as there are parts, unless these are cut: they get
/// a dist.shard_tensor. For normalized programs; returns whether there was such a chain.
bool computeAtGroupOwners(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_GROUPOWNERS_H
