//===- Collectives.h - Effects of collectives on buffers --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_COLLECTIVES_H
#define TESSERA_LIB_INTERPRETER_COLLECTIVES_H

#include "Evaluator.h"

namespace tessera::interpreter {

/// Buffers of one tensor by position in a mesh.
using Buffers = std::vector<Tensor>;

/// Both ends of a move of one tensor.
struct Move {
  sharding::Mesh sourceMesh, targetMesh;
  sharding::Layout source, target;
};

/// Executes a move and returns the buffers of the target mesh. Elements outside the tensor are
/// `padding`. Contributions are reduced in the order of their sources, 16-bit floats in f32.
Buffers executeMove(const Move &move, const Buffers &sources, Scalar padding);

/// Executes a collective on the operands of every device, by position in its mesh, and returns the
/// results in the same order. Fails with an error.
mlir::FailureOr<std::vector<llvm::SmallVector<Tensor>>>
executeCollective(Program &program, dist::CollectiveOpInterface op,
                  llvm::ArrayRef<llvm::SmallVector<Tensor>> operands);

/// A tensor on one device without a mesh: the source of global inputs and the target of results.
sharding::Mesh hostMesh();
sharding::Layout hostLayout(const std::vector<int64_t> &shape);

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_COLLECTIVES_H
