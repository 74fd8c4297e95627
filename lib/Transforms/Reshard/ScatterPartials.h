//===- ScatterPartials.h - Reduce-scatter instead of all-reduce -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Solver/MinimumCut.h"

namespace tessera::dist {

/// Bytes sent per device in half an all-reduce of a tensor with this sharding over `devices`.
int64_t bytesOfHalf(mlir::RankedTensorType type, const sharding::TensorSharding &own,
                    int64_t devices);
/// Executions of a block, at most 2^48, so that products with bytes do not overflow.
solver::Capacity boundedTrips(mlir::Block *block);

/// Cuts ops after the reductions over axes of one mesh where that sends fewer bytes (see
/// ScatterPartials.cpp), or if it `dividesUpdates`, where it saves more work than its latencies
/// take; state that is open is cut with them. Gathered results take memory, so under a budget that
/// is done only where state is cut. The places of the reductions are already decided.
enum class UpdateDivision { none, savesMemory, savesTime };
void scatterPartials(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                     mlir::FlatSymbolRefAttr mesh,
                     const std::vector<sharding::PartialAxis> &partial, const OpCosts &costs,
                     const CostOptions &options, UpdateDivision division);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_SCATTERPARTIALS_H
