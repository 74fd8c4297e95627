//===- OpenResults.h - Results without a placement --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result without a placement is `?`: the compiler chooses. If contributions may
// reach it, dist-propagate leaves its axes open; it then has the sharding of the
// returned value, and contributions are scattered: a reduce-scatter sends half as
// much as an all-reduce.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_OPENRESULTS_H
#define TESSERA_PLANNING_OPENRESULTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The dimension along which contributions of so many devices to a tensor with this sharding are
/// scattered: the first that they divide evenly.
std::optional<int64_t> dimToScatter(const sharding::TensorSharding &own,
                                    llvm::ArrayRef<int64_t> shape, int64_t devices);

/// The sharding with contributions over `open` axes scattered if that divides evenly; other
/// contributions are all-reduced.
sharding::TensorSharding scattered(const sharding::TensorSharding &own,
                                   llvm::ArrayRef<int64_t> shape, const sharding::AxisList &open);

/// Gives every result and argument of the function that is open its placement: a result is
/// scattered, state (a result and the argument that it feeds) stays as it is.
void placeOpenResults(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_OPENRESULTS_H
