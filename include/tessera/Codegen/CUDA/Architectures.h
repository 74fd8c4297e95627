//===- Architectures.h - GPUs that there is code for ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_ARCHITECTURES_H
#define TESSERA_CODEGEN_CUDA_ARCHITECTURES_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace tessera::codegen {

/// Empty when kernels can be compiled for all of GpuOptions::archs; else the first that is of
/// another form than sm_NN, compute_NN and stub, that LLVM does not know, or that is named twice.
std::string checkArchitectures(llvm::ArrayRef<std::string> archs);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_ARCHITECTURES_H
