//===- FormGemms.cpp - Make contractions readable as matrix products -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Gemm.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMGEMMS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {
struct CodegenFormGemms : codegen::impl::CodegenFormGemmsBase<CodegenFormGemms> {
  void runOnOperation() override {
  }
};
} // namespace
