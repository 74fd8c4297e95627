//===- KernelNames.h - Names of kernels -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELNAMES_H
#define TESSERA_LIB_CODEGEN_KERNELNAMES_H

#include "mlir/IR/Operation.h"

namespace tessera::codegen {

/// A description of ops in at most four words: "max_sub_exp", "transpose", "conv_2d_nhwc_hwcf_add".
std::string describe(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELNAMES_H
