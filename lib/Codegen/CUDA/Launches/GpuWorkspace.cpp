//===- GpuWorkspace.cpp - Plan the temporaries of a kernel ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuWorkspace.h"

#include "../Groups/GpuAccess.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kWorkspaceAlignment = 256;

void GpuWorkspace::use(Value root, size_t launch, size_t argument) {
  auto [entry, fresh] = uses.try_emplace(root);
  if (fresh)
    order.push_back(root);
  entry->second.push_back({launch, argument});
}

void GpuWorkspace::clear() {
  uses.clear();
  order.clear();
}

/// First fit in the order of first use; buffers share bytes if their launches do not overlap.
void GpuWorkspace::layOut(runtime::GpuKernel &kernel) const {
  struct Interval {
    size_t first, last;
    int64_t begin, end;
  };
  SmallVector<Interval> placed;
  for (Value root : order) {
    const auto &own = uses.find(root)->second;
    auto type = cast<MemRefType>(root.getType());
    int64_t bytes =
        llvm::alignTo(type.getNumElements() * bytesOf(type.getElementType()), kWorkspaceAlignment);
    Interval mine{own.front().first, own.back().first, 0, bytes};
    for (bool moved = true; moved;) {
      moved = false;
      for (const Interval &other : placed) {
        bool together = mine.first <= other.last && other.first <= mine.last;
        if (together && mine.begin < other.end && other.begin < mine.end) {
          mine.begin = other.end;
          mine.end = mine.begin + bytes;
          moved = true;
        }
      }
    }
    placed.push_back(mine);
    kernel.workspaceBytes = std::max(kernel.workspaceBytes, mine.end);
    for (auto [launch, argument] : own)
      kernel.launches[launch].arguments[argument].offset = mine.begin;
  }
}

} // namespace tessera::codegen
