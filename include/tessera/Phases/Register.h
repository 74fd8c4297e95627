//===- Register.h - Dialects, passes and pipelines of all tools -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PHASES_REGISTER_H
#define TESSERA_PHASES_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace tessera {

/// Registers every dialect that a program may use, and the extensions for inlining and interfaces.
void registerDialects(mlir::DialectRegistry &registry);
/// Registers every pass of the compiler, the pipelines `--tessera-pipeline="compile-from=…
/// compile-to=…"` and `--codegen`, and MLIR's canonicalizer and CSE. Later calls do nothing.
void registerPasses();

} // namespace tessera

#endif // TESSERA_PHASES_REGISTER_H
