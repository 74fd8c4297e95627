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

/// The reverse of a loop's body or a branch is emitted as if it followed the forward ops, so it
/// uses values of `forward` that are not visible. This replaces each such use in `reverse`: a free
/// value (constants, index arithmetic, slices and reshapes of visible values) is rematerialized
/// before its first use; for any other, `keep` is called, once each and in the order of first use,
/// and emits at the builder a value that holds it.
void replaceResiduals(mlir::Block &forward, mlir::Block &reverse, mlir::IRMapping &known,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> keep);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_RESIDUALS_H
