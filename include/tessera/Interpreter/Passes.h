//===- Passes.h - Running a program from tessera-opt ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_PASSES_H
#define TESSERA_INTERPRETER_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::interpreter {

#define GEN_PASS_DECL
#include "tessera/Interpreter/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Interpreter/Passes.h.inc"

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_PASSES_H
