//===- ScatterPartials.h - Reduce-scatter instead of all-reduce -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Bytes sent per device in half an all-reduce of a tensor with this sharding over `devices`,
/// bounded for a minimum cut.
int64_t bytesOfHalf(mlir::RankedTensorType type, const sharding::TensorSharding &own,
                    int64_t devices);
/// Executions of a block, bounded so that products with bytes do not overflow.
int64_t boundedTrips(mlir::Block *block);

/// Cuts ops after the reductions over one axis of one mesh where that sends fewer bytes (see
/// ScatterPartials.cpp). The places of the reductions are already decided.
void scatterPartials(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                     mlir::FlatSymbolRefAttr mesh, sharding::PartialAxis partial);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
