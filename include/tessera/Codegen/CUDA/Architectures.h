//===- Architectures.h - Supported GPU architectures ------------*- C++ -*-===//
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

/// Empty if kernels can be compiled for all of `archs` (GpuOptions::archs); else an error message
/// about the first architecture that is not of the form sm_NN, compute_NN or stub, that LLVM does
/// not support, or that is a duplicate, or that lacks what `warpgroups` needs
/// (GpuOptions::warpgroups).
std::string checkArchitectures(llvm::ArrayRef<std::string> archs, bool warpgroups = false);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_ARCHITECTURES_H
