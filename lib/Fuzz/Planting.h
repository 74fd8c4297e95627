//===- Planting.h - Planting faults in a local view -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_PLANTING_H
#define TESSERA_LIB_FUZZ_PLANTING_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Fuzz/PlantedFaults.h"

namespace tessera::fuzz {

/// The families of faults, one file each.
void addIndexFaults(std::vector<PlantedFault> &faults);
void addPartialFaults(std::vector<PlantedFault> &faults);
void addMoveFaults(std::vector<PlantedFault> &faults);

/// One operand of a collective with its layouts before and after.
struct PlantedMove {
  const sharding::Mesh &mesh;
  std::vector<int64_t> shape; ///< global
  sharding::TensorSharding source, target;
};

/// Edits the moves of one collective that states its layouts within one mesh. `edit` returns
/// whether it changed its argument; it must keep local shapes. Returns whether any move changed.
bool editMoves(dist::CollectiveOpInterface op, llvm::function_ref<bool(PlantedMove &)> edit);

/// The same for every op of one kind in a module.
template <typename Op>
bool editAll(mlir::ModuleOp local, llvm::function_ref<bool(PlantedMove &)> edit) {
  bool changed = false;
  local.walk([&](Op op) { changed |= editMoves(op, edit); });
  return changed;
}

/// Gives each device of the groups over `axes` the value of the next device. False if there is no
/// next device.
bool rotate(mlir::Value value, mlir::FlatSymbolRefAttr mesh, const sharding::Mesh &axesOf,
            const sharding::AxisList &axes);

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_PLANTING_H
