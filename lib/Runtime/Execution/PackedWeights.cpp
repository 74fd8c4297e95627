//===- PackedWeights.cpp - Packed operands of a program -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedWeights.h"

#include "Memory.h"
#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera::runtime {

/// Gives back the whole pages of a slot that shares no byte with another one.
static void drop(const Artifact &artifact, const Part &part, int64_t index) {
  const Slot &slot = part.slots[index];
  for (const Part &each : artifact.program.parts)
    for (const Slot &other : each.slots)
      if (&other != &slot && other.space == Slot::Space::constant &&
          other.offset < slot.offset + slot.bytes && slot.offset < other.offset + other.bytes)
        return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin =
      reinterpret_cast<uintptr_t>(artifact.constants.data()) + static_cast<uintptr_t>(slot.offset);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + static_cast<uintptr_t>(slot.bytes)) / page * page;
  if (first < end)
    (void)::madvise(reinterpret_cast<void *>(first), end - first, MADV_DONTNEED);
}

PackedWeights::~PackedWeights() {
  for (auto &[operand, block] : constants)
    ::munmap(block.data, block.size);
}

Status PackedWeights::load(const Artifact &artifact, WorkerPool &pool, bool dropsConstants) {
  const Program &program = artifact.program;
  plans = planPacking(program);
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const PackedOperand &operand : plans[i].operands) {
      const GemmStep &product = operand.product;
      if (operand.when != PackedOperand::When::load || !multipliesPanels(product.dtype))
        continue;
      const auto size = static_cast<size_t>(operand.bytes);
      std::byte *packed = mapZeroed(size);
      if (!packed)
        return Status::error("this machine has too little memory for " +
                             std::to_string(operand.bytes) + " bytes of packed constants");
      constants[&operand] = {packed, size};
      const std::byte *from = artifact.constants.data() + program.parts[i].slots[product.b].offset;
      constexpr int64_t kColumns = GemmCut::kColumns;
      pool.parallelFor((product.n + kColumns - 1) / kColumns, [&](int64_t block) {
        packColumns(product, from, block * kColumns, std::min(product.n, (block + 1) * kColumns),
                    packed);
      });
      if (dropsConstants)
        drop(artifact, program.parts[i], product.b);
    }
  }
  return {};
}

} // namespace tessera::runtime
