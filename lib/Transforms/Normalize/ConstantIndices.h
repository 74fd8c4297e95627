//===- ConstantIndices.h - Integers known at compile time -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTINDICES_H

#include "tessera/Sharding/ShardingRule.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace tessera::dist {

/// The values of an integer in an op's body for each iteration of `loop`, computed from constants
/// and loop indices with the program's arithmetic. Nothing if it depends on data or on another
/// loop, or if there are more than `most` values.
std::optional<llvm::SmallVector<int64_t>> valuesOver(mlir::linalg::GenericOp op, mlir::Value value,
                                                     unsigned loop, int64_t most);

/// Indices as runs of a table, in steps. The runs alternate where the indices have a period, as
/// those of an interpolation by 3/2 have: 0, 0, 1, 2, 2, 3, ... Empty where they are too many.
llvm::SmallVector<sharding::Segment> runsOf(llvm::ArrayRef<int64_t> indices);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTINDICES_H
