//===- GpuIndexWriter.h - Index arithmetic of a launch ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_EMIT_GPUINDEXWRITER_H
#define TESSERA_CODEGEN_CUDA_EMIT_GPUINDEXWRITER_H

#include "mlir/IR/Builders.h"

namespace tessera::codegen {

/// Emits arithmetic on indices, which are not negative.
class IndexWriter {
public:
  /// `wide`: dividends may exceed 32 bits, in which divisions are several times as fast.
  IndexWriter(mlir::OpBuilder &b, mlir::Location loc, bool wide) : b(b), loc(loc), wide(wide) {}

  mlir::Value constant(int64_t value);
  /// A null value is 0.
  mlir::Value add(mlir::Value left, mlir::Value right);
  mlir::Value add(mlir::Value left, int64_t right);
  mlir::Value multiply(mlir::Value left, int64_t right);
  mlir::Value divide(mlir::Value left, int64_t right);
  mlir::Value remainder(mlir::Value left, int64_t right);

  mlir::OpBuilder &b;
  mlir::Location loc;

private:
  template <typename Op> mlir::Value combine(mlir::Value left, int64_t right);

  const bool wide;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_EMIT_GPUINDEXWRITER_H
