//===- PackedWeights.h - Packed operands of a program -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PACKEDWEIGHTS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PACKEDWEIGHTS_H

#include "WorkerPool.h"
#include "tessera/Runtime/Artifact/Artifact.h"
#include "tessera/Runtime/Execution/PackedProducts.h"

namespace tessera::runtime {

/// The plans of a program's parts, and its constants in panels. Devices of a process share them.
class PackedWeights {
public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights &) = delete;
  PackedWeights &operator=(const PackedWeights &) = delete;
  ~PackedWeights();

  /// Plans, and packs constants. `dropsConstants`: gives back the memory of those that nothing else
  /// reads, which are zero from then on. Fails if the machine has too little memory.
  Status load(const Artifact &artifact, WorkerPool &pool, bool dropsConstants);

  const PackPlan &planOf(const Program &program, const Part &part) const {
    return plans[&part - program.parts.data()];
  }
  /// An operand of a plan that is packed at load.
  const std::byte *shared(const PackedOperand &operand) const {
    return constants.at(&operand).data;
  }

private:
  struct Block {
    std::byte *data = nullptr;
    size_t size = 0;
  };
  std::vector<PackPlan> plans; ///< by part
  std::unordered_map<const PackedOperand *, Block> constants;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PACKEDWEIGHTS_H
