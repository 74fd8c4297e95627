//===- PackedProducts.h - Right operands packed once ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which products read their right operand in panels (PackedGemm.h), and when it is
// packed. The plan depends only on the program, so that results have equal bits for
// any number of workers, and so that the compiler can reserve the memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_PACKEDPRODUCTS_H
#define TESSERA_RUNTIME_EXECUTION_PACKEDPRODUCTS_H

#include "tessera/Runtime/Artifact/Program.h"

#include <limits>
#include <unordered_map>

namespace tessera::runtime {

/// A right operand that products of a part read packed.
struct PackedOperand {
  enum class When {
    load,    ///< a constant that nothing else reads: for all devices, when the program is loaded
    changes, ///< before the first product after it was written
    product  ///< for each product; such operands share their memory
  };
  When when = When::changes;
  GemmStep product;   ///< the first one that reads it
  int64_t offset = 0; ///< in the packed memory of a device; unless packed at load
  int64_t bytes = 0;
};

struct PackPlan {
  std::vector<PackedOperand> operands;
  std::unordered_map<const GemmStep *, int64_t> ofProduct; ///< to `operands`
  /// The operands that lie in memory that a step writes.
  std::unordered_map<const Step *, std::vector<int64_t>> writtenBy;
  int64_t bytes = 0; ///< of the packed memory of a device, at most what is allowed
};

/// The plan for a part of a program with at most `most` bytes for each device. Those that save the
/// most time for their bytes come first.
PackPlan planPacking(const Program &program, const Part &part,
                     int64_t most = std::numeric_limits<int64_t>::max());

/// The plans of all parts, for what this process multiplies in panels.
std::vector<PackPlan> planPacking(const Program &program);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_PACKEDPRODUCTS_H
