//===- Views.h - Values that are parts of others' bytes ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_VIEWS_H
#define TESSERA_PLANNING_VIEWS_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether an op gives the elements of a tensor another shape.
bool isReshape(mlir::Operation *op);

/// Where the elements of a view begin in its source, in elements; fails when the op is no view: a
/// slice whose elements are not contiguous, or that is dynamic, or whose start is not aligned.
mlir::FailureOr<int64_t> viewOffset(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_VIEWS_H
