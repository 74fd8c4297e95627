//===- Passes.h - Pipelines -------------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_PASSES_H
#define TESSERA_TRANSFORMS_PIPELINE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::dist {

#define GEN_PASS_DECL
#include "tessera/Transforms/Pipeline/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Transforms/Pipeline/Passes.h.inc"

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_PIPELINE_PASSES_H
