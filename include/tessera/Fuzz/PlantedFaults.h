//===- PlantedFaults.h - Faults that fuzzing must detect --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test that never failed proves nothing. Each planted fault is a possible mistake of
// partition, planner or fusion, made in the local view of a correct program; comparing
// generated programs must detect all of them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUZZ_PLANTEDFAULTS_H
#define TESSERA_FUZZ_PLANTEDFAULTS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tessera::fuzz {

/// A mistake that comparing programs must find.
struct PlantedFault {
  std::string name;        ///< `reduction-mask-dropped`
  std::string description; ///< the compiler's mistake
  /// Makes the mistake wherever it applies in a module of the local view. Returns whether it
  /// applied; otherwise the module is unchanged.
  bool (*plant)(mlir::ModuleOp local);
};

/// All of them, in a fixed order.
const std::vector<PlantedFault> &plantedFaults();

/// Registers `test-plant-fault{fault=NAME}`, which makes one fault in a module of the local view.
void registerPlantFaultPass();

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_PLANTEDFAULTS_H
