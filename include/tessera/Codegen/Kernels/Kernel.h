//===- Kernel.h - Definition of a kernel ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is a function on static tensors in destination style:
//
//   func.func @k0_softmax(%in: tensor<32x128xf32>, %out: tensor<32x128xf32>) -> tensor<32x128xf32>
//       attributes {kernel.reads = 1 : i64} { ... return %r : tensor<32x128xf32> }
//
// The first `kernel.reads` arguments are only read. The others are destinations, one per result,
// in order and of the result's type: result i is written to the buffer of destination i. The
// value of a destination on entry may be read (an accumulator). Scalars are rank-0 tensors. The
// body consists of linalg, tensor, arith, math and scf ops, without calls.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELS_KERNEL_H
#define TESSERA_CODEGEN_KERNELS_KERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// The attribute that counts the arguments a kernel only reads.
inline constexpr llvm::StringLiteral kKernelReadsAttr = "kernel.reads";

/// Whether the buffer of destination argument `output` may be that of read argument `input`
/// (donation in place). True if both types are equal, the destination's incoming value is unused,
/// every op that reads the input directly contributes to this output, and all ops from the input to
/// the output are elementwise with identity maps: then element i of the input is read for the last
/// time before or when element i of the output is written. Any other overlap between a destination
/// and another argument is undefined. `input` and `output` are argument indices.
bool canRunInPlace(mlir::func::FuncOp kernel, unsigned input, unsigned output);

/// Registers the dialects a kernel may use and the interfaces its compilation needs.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_KERNEL_H
