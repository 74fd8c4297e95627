//===- Coverage.h - Coverage of a set of programs ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_COVERAGE_H
#define TESSERA_LIB_FUZZ_COVERAGE_H

#include "tessera/Fuzz/Check.h"

namespace tessera::fuzz {

/// Counts the shardings of the values of a program after propagation.
void countShardings(Coverage &coverage, mlir::ModuleOp module);
/// Counts the collectives of a local view.
void countCollectives(Coverage &coverage, mlir::ModuleOp module);

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_COVERAGE_H
