//===- MergeGroupRows.h - One dimension of rows of groups -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_MERGEGROUPROWS_H
#define TESSERA_LIB_CODEGEN_MERGEGROUPROWS_H

#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"

namespace tessera::codegen {

/// Replaces a product of groups, whose rows have several dimensions, by one whose rows have one;
/// null if it cannot.
mlir::linalg::GenericOp mergeGroupRows(mlir::linalg::GenericOp op,
                                       const dist::GroupedProduct &product);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_MERGEGROUPROWS_H
