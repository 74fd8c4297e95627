//===- TaskLoop.h - Loops divided among workers -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELS_TASKLOOP_H
#define TESSERA_CODEGEN_KERNELS_TASKLOOP_H

#include "llvm/ADT/StringRef.h"

namespace tessera::codegen {

/// Set on an outermost scf.for of a kernel with independent iterations, which are the kernel's
/// tasks. Buffers before the loop belong to one call, which runs some of the tasks.
inline constexpr llvm::StringLiteral kTaskLoopAttr = "kernel.task_loop";

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_TASKLOOP_H
