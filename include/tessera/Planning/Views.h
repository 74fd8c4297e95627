//===- Views.h - Values that share others' bytes ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_VIEWS_H
#define TESSERA_PLANNING_VIEWS_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether an op only changes the shape of a tensor.
bool isReshape(mlir::Operation *op);

/// The offset of a view in its source, in elements. Fails if the op is not a view: a slice whose
/// elements are not contiguous, a dynamic slice, or one whose start is not aligned.
mlir::FailureOr<int64_t> viewOffset(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_VIEWS_H
