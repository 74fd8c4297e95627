//===- ProgramHash.h - Whether two attempts made one program ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_VARIANTS_PROGRAMHASH_H
#define TESSERA_LIB_VARIANTS_PROGRAMHASH_H

#include "mlir/IR/BuiltinOps.h"

#include "llvm/Support/xxhash.h"

namespace tessera {

/// A hash of the program's text, which is verified, without locations.
inline uint64_t hashOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().assumeVerified());
  return llvm::xxh3_64bits(text);
}

} // namespace tessera

#endif // TESSERA_LIB_VARIANTS_PROGRAMHASH_H
