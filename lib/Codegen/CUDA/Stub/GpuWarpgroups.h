//===- GpuWarpgroups.h - Products of warpgroups -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma of sm_90a: four warps multiply 64 rows of A by N columns of B, a matrix in shared memory,
// while they go on. Kernels have the instructions as assembly code, since registers of a product
// that is under way must not move:
//
//   fence     the registers that pass it are what the next products read
//   multiply  begins a product
//   commit    ends a group of products
//   wait      waits for all groups but the last ones; sums are valid if they pass it
//
// "Passing" is an operand that is tied to a result, so that the order holds for LLVM, too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUWARPGROUPS_H
#define TESSERA_CODEGEN_CUDA_GPUWARPGROUPS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>

namespace tessera::codegen {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32 of 16-bit floats.
struct WarpgroupProduct {
  int64_t columns = 0; ///< N
  bool isBf16 = false;
  bool leftInRegisters = false; ///< 4 words of A in place of a descriptor
  bool accumulates = false;     ///< else the sums before are not read
  bool transposesRight = false; ///< the columns of B are contiguous, not the summed index

  std::string code() const;
  /// Reads the text of the instruction; none if it is another one.
  static std::optional<WarpgroupProduct> read(llvm::StringRef code);
};

inline constexpr llvm::StringLiteral kFenceProducts = "wgmma.fence.sync.aligned;";
inline constexpr llvm::StringLiteral kCommitProducts = "wgmma.commit_group.sync.aligned;";
inline constexpr llvm::StringLiteral kWaitProducts = "wgmma.wait_group.sync.aligned ";
/// Products read what the thread has written to shared memory.
inline constexpr llvm::StringLiteral kFenceProxy = "fence.proxy.async.shared::cta;";

/// Emits assembly code that values of f32 and i32 pass, in the order of all such code and of
/// accesses to memory. Returns their values after it.
llvm::SmallVector<mlir::Value> passCode(mlir::OpBuilder &b, mlir::Location loc,
                                        llvm::StringRef code, mlir::ValueRange values);
/// Begins a product. `left`: 4 words, or a descriptor (i64); `sums`: N / 2 values of f32, or none.
llvm::SmallVector<mlir::Value> beginProduct(mlir::OpBuilder &b, mlir::Location loc,
                                            const WarpgroupProduct &product, mlir::ValueRange left,
                                            mlir::Value right, mlir::ValueRange sums);

/// The fields of a matrix descriptor but the start: bytes between parts of the matrix
/// (PTX ISA, "Strides"), and the bytes of a row that is swizzled: 128, 64 or 32.
uint64_t descriptorOf(int64_t leadingBytes, int64_t strideBytes, int64_t swizzle);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUWARPGROUPS_H
