//===- ScatterPartials.h - Reduce-scatter in place of all-reduce *- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Bytes that a device sends in half an all-reduce of a tensor that lies so over `devices`, small
/// enough for a minimum cut.
int64_t bytesOfHalf(mlir::RankedTensorType type, const sharding::TensorSharding &lies,
                    int64_t devices);
/// Executions of a block, few enough to multiply them with bytes.
int64_t boundedTrips(mlir::Block *block);

/// Cuts ops behind the reductions over one axis of one mesh where that sends fewer bytes: see the
/// file's head. Contributions wait where they are to be reduced.
void scatterPartials(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                     mlir::FlatSymbolRefAttr mesh, sharding::PartialAxis partial);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
