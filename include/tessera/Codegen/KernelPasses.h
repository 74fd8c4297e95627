//===- KernelPasses.h - Passes on modules of kernels ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELPASSES_H
#define TESSERA_CODEGEN_KERNELPASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::codegen {

#define GEN_PASS_DECL
#include "tessera/Codegen/KernelPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Codegen/KernelPasses.h.inc"

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELPASSES_H
