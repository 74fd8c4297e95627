//===- Passes.h - From one device to many -----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PASSES_H
#define TESSERA_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::dist {

/// By dist-propagate with `mark-recuts`, on a module with an op that has a cut that no tensor of it
/// has.
inline constexpr llvm::StringLiteral kRecut = "dist.recut";

#define GEN_PASS_DECL
#include "tessera/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Transforms/Passes.h.inc"

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_PASSES_H
