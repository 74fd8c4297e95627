//===- Gemm.h - Contractions as matrix products -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_GEMM_H
#define TESSERA_CODEGEN_GEMM_H

#include "tessera/Planning/Gemm.h"

namespace tessera::codegen {

using dist::GemmForm;
using dist::gemmLoopsOf;
using dist::hasWholeRows;
using dist::isGemmLike;
using dist::matchGemm;

/// The form of a contraction or an rt.product; empty when it is not gemm-like.
std::optional<GemmForm> matchGemm(mlir::Operation *op);

/// The ops of a function that multiply and add as the gemm interface does, in order.
llvm::SmallVector<mlir::linalg::LinalgOp> gemmLikeOps(mlir::Operation *function);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_GEMM_H
