//===- GpuGroup.cpp - Groups of ops that become one launch ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuGroup.h"
#include "../GpuLimits.h"

using namespace mlir;

namespace tessera::codegen {

/// Fewer than kBusyTeams rows that are longer than this do not use the rows scheme.
static constexpr int64_t kLongRow = 8 << 10;
/// One thread processes own loops of fewer reduced iterations.
static constexpr int64_t kShortRow = 8;

GpuGroup::GpuGroup(GpuMember member) {
  for (unsigned loop = 0; loop < member.extents.size(); ++loop)
    if (!member.reduction[loop] && member.extents[loop] != 1) {
      member.classOf[loop] = static_cast<int>(extents.size());
      extents.push_back(member.extents[loop]);
    }
  members.push_back(std::move(member));
  orderClasses();
  if (!choose())
    rows = false;
}

int64_t GpuGroup::count() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

SmallVector<unsigned> GpuGroup::classLoops(const GpuMember &member, unsigned classes) {
  SmallVector<unsigned> loops(classes);
  for (auto [loop, c] : llvm::enumerate(member.classOf))
    if (c >= 0)
      loops[c] = loop;
  return loops;
}

SmallVector<unsigned> GpuGroup::ownLoops(const GpuMember &member) {
  SmallVector<unsigned> loops;
  for (auto [loop, c] : llvm::enumerate(member.classOf))
    if (c < 0 && member.extents[loop] != 1)
      loops.push_back(loop);
  return loops;
}

bool GpuGroup::any(function_ref<bool(const GpuMember &)> is) const {
  return llvm::any_of(members, is) || llvm::any_of(columns, [&](const GpuColumns &sums) {
           return is(sums.member) || llvm::any_of(sums.fills, is);
         });
}

bool GpuGroup::writes(Value root) const {
  return any([&](const GpuMember &member) {
    return llvm::any_of(member.accesses, [&](const GpuAccess &access) {
      return access.output && access.root == root;
    });
  });
}

bool GpuGroup::reads(Value root) const {
  return any([&](const GpuMember &member) {
    return llvm::is_contained(member.gathered, root) ||
           llvm::any_of(member.accesses,
                        [&](const GpuAccess &access) { return access.root == root; });
  });
}

bool GpuGroup::conflicts(const GpuMember &member) const {
  for (const GpuAccess &access : member.accesses)
    if (!access.scalar && (writes(access.root) || (access.output && reads(access.root))))
      return true;
  return llvm::any_of(member.gathered, [&](Value root) { return writes(root); });
}

bool GpuGroup::flatPossible() const {
  for (const GpuMember &member : members)
    for (unsigned loop : ownLoops(member))
      if (!member.reduction[loop])
        return false;
  if (members.size() == 1)
    return true;
  // A thread sees only its own writes.
  for (const GpuMember &member : members)
    for (const GpuAccess &access : member.accesses) {
      if (!access.output)
        continue;
      auto flatOf = [&](const GpuMember &m, const GpuAccess &a) {
        return FlatAccess::get(a, m.extents, classLoops(m, extents.size()));
      };
      for (const GpuMember &other : members)
        for (const GpuAccess &use : other.accesses) {
          if (use.root != access.root)
            continue;
          bool own = llvm::any_of(ownLoops(other), [&](unsigned l) { return use.step[l] != 0; });
          if (own || use.base != access.base || use.view != access.view ||
              !(flatOf(other, use).dims == flatOf(member, access).dims))
            return false;
        }
    }
  return true;
}

bool GpuGroup::rowsPossible() const {
  for (const GpuMember &member : members) {
    SmallVector<unsigned> own = ownLoops(member);
    if (llvm::any_of(own, [&](unsigned loop) { return member.extents[loop] == 0; }))
      return false;
    bool reduced = llvm::any_of(own, [&](unsigned loop) { return member.reduction[loop]; });
    bool parallel = llvm::any_of(own, [&](unsigned loop) { return !member.reduction[loop]; });
    if (reduced && parallel)
      return false;
    for (const NestOutput &output : member.outputs)
      if (reduced && output.accumulates && !output.kind)
        return false;
  }
  return true;
}

/// The operands with the most elements decide.
bool GpuGroup::contiguousAlongOwn() const {
  for (const GpuMember &member : members) {
    SmallVector<unsigned> own = ownLoops(member);
    if (own.empty())
      continue;
    int64_t best = -1;
    bool contiguous = false;
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar)
        continue;
      FlatAccess flat = FlatAccess::get(access, member.extents, own);
      int64_t elements = 1; // in all iterations of the group
      for (auto [loop, step] : llvm::enumerate(access.step))
        elements *= step != 0 ? member.extents[loop] : 1;
      if (elements < best)
        continue;
      bool here = flat.dims.empty() || flat.dims[0].step <= 1;
      contiguous = elements > best ? here : contiguous || here;
      best = elements;
    }
    if (!contiguous)
      return false;
  }
  return true;
}

bool GpuGroup::choose() {
  tiles.reset();
  bool flat = flatPossible(), team = rowsPossible();
  int64_t longest = 1;
  bool parallel = false;
  for (const GpuMember &member : members) {
    int64_t own = 1;
    for (unsigned loop : ownLoops(member)) {
      own *= member.extents[loop];
      parallel |= !member.reduction[loop];
    }
    longest = std::max(longest, own);
  }
  if (longest == 1 && flat) {
    rows = false;
    tiles = findTiles();
    return true;
  }
  if (team && (!flat || (contiguousAlongOwn() && longest > kShortRow))) {
    rows = true;
    // A member that runs well alone should not get a strided or a single team.
    return !parallel || (contiguousAlongOwn() && (count() >= kBusyTeams || longest <= kLongRow));
  }
  rows = false;
  return flat;
}

} // namespace tessera::codegen
