//===- GpuTiles.cpp - Find tiles of groups that permute loops -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuGroup.h"

using namespace mlir;

namespace tessera::codegen {

/// Fewer iterations, or shorter contiguous runs (in bytes), do not justify tiles in shared memory.
static constexpr int64_t kSmallestTiled = 1024, kShortestRun = 16;

bool GpuGroup::isTiled(const GpuMember &member, const GpuAccess &access) const {
  if (!tiles || access.scalar || access.output || writes(access.root))
    return false;
  SmallVector<unsigned> loops = classLoops(member, extents.size());
  return access.step[loops[tiles->loops.back().lastClass]] > 1 &&
         access.step[loops[tiles->loops[tiles->across].lastClass]] == 1;
}

std::optional<GpuTiles> GpuGroup::findTiles() const {
  if (count() < kSmallestTiled ||
      llvm::any_of(members, [](const GpuMember &m) { return m.hasReduction(); }))
    return std::nullopt;
  GpuTiles result;
  SmallVector<SmallVector<unsigned>> loopsOf;
  for (const GpuMember &member : members)
    loopsOf.push_back(classLoops(member, extents.size()));
  for (unsigned c = 0; c < extents.size(); ++c) {
    bool continues = c > 0;
    for (auto [member, loops] : llvm::zip_equal(members, loopsOf))
      for (const GpuAccess &access : member.accesses)
        continues = continues && (access.scalar ||
                                  access.step[loops[c - 1]] == access.step[loops[c]] * extents[c]);
    if (!continues)
      result.loops.push_back({1, c});
    result.loops.back().extent *= extents[c];
    result.loops.back().lastClass = c;
  }
  // The loop along which the widest operand that is not contiguous along the last loop is
  // contiguous.
  int64_t best = 0;
  unsigned last = result.loops.size() - 1;
  for (auto [member, loops] : llvm::zip_equal(members, loopsOf))
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar || access.output || writes(access.root) ||
          access.step[loops[result.loops[last].lastClass]] <= 1)
        continue;
      for (unsigned l = 0; l < last; ++l) {
        int64_t bytes = bytesOf(access.element);
        if (access.step[loops[result.loops[l].lastClass]] != 1 || bytes <= best ||
            result.loops[l].extent * bytes < kShortestRun ||
            result.loops[last].extent * bytes < kShortestRun)
          continue;
        best = bytes;
        result.across = l;
      }
    }
  return best ? std::optional(result) : std::nullopt;
}

} // namespace tessera::codegen
