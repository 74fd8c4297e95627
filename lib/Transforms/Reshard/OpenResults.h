//===- OpenResults.h - Results that nobody placed ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result without a placement is `?`: left to the compiler. Where contributions
// may reach it, dist-propagate leaves its axes open; it then lies as the value
// that is returned does, and contributions are scattered: a reduce-scatter sends
// half of what an all-reduce does.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_OPENRESULTS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_OPENRESULTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The dimension by which contributions over `axis` to a tensor that lies so are scattered: the
/// first that the axis cuts into equal parts.
std::optional<int64_t> dimToScatter(const sharding::TensorSharding &lies,
                                    llvm::ArrayRef<int64_t> shape, const sharding::AxisRef &axis);

/// The sharding with contributions over `open` axes scattered where that cuts evenly; other
/// contributions are reduced to the whole.
sharding::TensorSharding scattered(const sharding::TensorSharding &lies,
                                   llvm::ArrayRef<int64_t> shape, const sharding::AxisList &open);

/// Gives every result of the function that is open its placement.
void placeOpenResults(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_OPENRESULTS_H
