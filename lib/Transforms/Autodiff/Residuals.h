//===- Residuals.h - Forward values that a reverse region reads -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_RESIDUALS_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_RESIDUALS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::dist {

/// The reverse of a loop's body or a branch is written as if it stood behind the forward ops; then
/// it reads values of `forward` that it cannot see. This replaces each such use in `reverse`: a
/// value that costs nothing (constants, index arithmetic, slices and reshapes of what is visible)
/// is made again in front of its first use; for any other, `keep` is asked, once each and in the
/// order of first use, for a value that holds it, to be written at the builder.
void replaceResiduals(mlir::Block &forward, mlir::Block &reverse, mlir::IRMapping &known,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> keep);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_RESIDUALS_H
