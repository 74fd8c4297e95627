//===- PlantedFaults.h - Mistakes that the generator must find --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test that never failed proves nothing. Each planted fault is a mistake that
// partition, planner or fusion could make, put into the local view of a correct
// program; comparing generated programs must show every one of them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUZZ_PLANTEDFAULTS_H
#define TESSERA_FUZZ_PLANTEDFAULTS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tessera::fuzz {

struct PlantedFault {
  std::string name;        ///< `reduction-mask-dropped`
  std::string description; ///< what the compiler would have done wrong
  /// Makes the mistake wherever it is possible in a module of the local view. Returns whether there
  /// was such a place; the module is unchanged when there was none.
  bool (*plant)(mlir::ModuleOp local);
};

/// All of them, in a fixed order.
const std::vector<PlantedFault> &plantedFaults();

/// Registers `test-plant-fault{fault=NAME}`, which plants one fault in a module of the local view.
void registerPlantFaultPass();

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_PLANTEDFAULTS_H
