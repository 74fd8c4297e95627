//===- SinkProducts.h - Sums of products after a loop -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPRODUCTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPRODUCTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Computes what a loop adds up, products or sums of values that are stacked in any case, as one
/// product of the stacks after the loop: the gradients of a recurrent layer's weights. Stacks that
/// are read once and cleared behind, as derivatives do, are read alone.
void sinkProducts(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPRODUCTS_H
