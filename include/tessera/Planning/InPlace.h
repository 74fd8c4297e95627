//===- InPlace.h - Results in the bytes of operands -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_INPLACE_H
#define TESSERA_PLANNING_INPLACE_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether a kernel may write `result` over `source`, a tensor of the same type that it reads: all
/// of its ops that read the source, or what is computed of it on the way, contribute to the result,
/// and every op between source and result computes element i from element i. Thus the last read of
/// element i of the source precedes the write of element i of the result. `isInside` returns
/// whether an op is in the kernel.
bool mayReplace(mlir::Value source, mlir::Value result,
                llvm::function_ref<bool(mlir::Operation *)> isInside);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_INPLACE_H
