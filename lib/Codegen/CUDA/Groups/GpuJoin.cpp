//===- GpuJoin.cpp - Join ops with common loops ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuGroup.h"

using namespace mlir;

namespace tessera::codegen {

/// Limit on the iterations of a member in a group without classes, which one block runs.
static constexpr int64_t kMaxAlone = 32 << 10;

bool GpuGroup::separable() const {
  SmallVector<Value> written;
  for (const GpuMember &member : members)
    for (const GpuAccess &access : member.accesses)
      if (access.output && !llvm::is_contained(written, access.root))
        written.push_back(access.root);
  for (Value root : written) {
    SmallVector<int64_t> steps;
    int64_t low = 0, high = 0;
    unsigned count = 0;
    Value view;
    for (const GpuMember &member : members) {
      if (llvm::is_contained(member.gathered, root))
        return false;
      SmallVector<unsigned> loops = classLoops(member, extents.size());
      for (const GpuAccess &access : member.accesses) {
        if (access.root != root)
          continue;
        SmallVector<int64_t> mine;
        for (unsigned loop : loops)
          mine.push_back(access.step[loop]);
        int64_t begin = access.base;
        int64_t end = begin + FlatAccess::get(access, member.extents, ownLoops(member)).span();
        if (count++ == 0) {
          steps = mine;
          low = begin;
          high = end;
          view = access.view;
          continue;
        }
        if (mine != steps || access.view != view)
          return false;
        low = std::min(low, begin);
        high = std::max(high, end);
      }
    }
    if (count <= 1)
      continue;
    // The intervals of iterations must not overlap: each step exceeds the reach of all smaller
    // ones.
    SmallVector<std::pair<int64_t, int64_t>> dims;
    for (auto [step, extent] : llvm::zip_equal(steps, extents))
      dims.emplace_back(step, extent);
    if (sumsInto(root)) // rows of a part follow each other
      dims.pop_back();
    llvm::sort(dims);
    int64_t reach = high - low;
    for (auto [step, extent] : dims) {
      if (step <= reach)
        return false;
      reach += step * (extent - 1);
    }
  }
  return true;
}

void GpuGroup::orderClasses() {
  // The access with the most classes, outputs first, of the last member with memory along the
  // classes.
  const GpuAccess *primary = nullptr;
  SmallVector<unsigned> loops;
  for (const GpuMember &member : llvm::reverse(members)) {
    int64_t best = 0;
    SmallVector<unsigned> mine = classLoops(member, extents.size());
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar)
        continue;
      int64_t used = llvm::count_if(mine, [&](unsigned loop) { return access.step[loop] != 0; });
      used = 2 * used + access.output;
      if (used > best) {
        best = used;
        primary = &access;
        loops = mine;
      }
    }
    if (primary)
      break;
  }
  if (!primary)
    return;
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, extents.size()));
  auto key = [&](unsigned c) {
    int64_t step = primary->step[loops[c]];
    return step == 0 ? std::numeric_limits<int64_t>::max() : step;
  };
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return key(a) > key(b); });
  SmallVector<int64_t> sorted;
  SmallVector<int> place(order.size());
  for (auto [to, from] : llvm::enumerate(order)) {
    sorted.push_back(extents[from]);
    place[from] = static_cast<int>(to);
  }
  extents = sorted;
  for (GpuMember &member : members)
    for (int &c : member.classOf)
      if (c >= 0)
        c = place[c];
}

namespace {
/// A member and its loop of each class; -1 if it has none.
struct Linked {
  const GpuMember *member;
  SmallVector<int> loopOf;
};
} // namespace

/// The loop of each class in `member`: the one with the same steps through memory shared with a
/// linked member. Memory that one of them writes has priority over memory that both only read.
static SmallVector<int> linkLoops(const GpuMember &member, ArrayRef<Linked> linked,
                                  ArrayRef<int64_t> extents) {
  SmallVector<int> loopOf(extents.size(), -1);
  auto link = [&](const GpuAccess &ours, const GpuAccess &theirs, ArrayRef<int> loops) {
    for (unsigned c = 0; c < extents.size(); ++c) {
      if (loopOf[c] >= 0 || loops[c] < 0 || theirs.step[loops[c]] == 0)
        continue;
      for (unsigned loop = 0; loop < member.extents.size(); ++loop)
        if (!member.reduction[loop] && member.extents[loop] == extents[c] &&
            ours.step[loop] == theirs.step[loops[c]] &&
            !llvm::is_contained(loopOf, static_cast<int>(loop))) {
          loopOf[c] = static_cast<int>(loop);
          break;
        }
    }
  };
  for (bool flowing : {true, false})
    for (const Linked &other : linked)
      for (const GpuAccess &theirs : other.member->accesses)
        for (const GpuAccess &ours : member.accesses)
          if (!theirs.scalar && !ours.scalar && theirs.root == ours.root &&
              theirs.view == ours.view && flowing == (theirs.output || ours.output))
            link(ours, theirs, other.loopOf);
  return loopOf;
}

bool GpuGroup::join(const GpuMember &member, ArrayRef<GpuMember> fills) {
  return joinIterations(member, fills) || joinColumns(member, fills);
}

bool GpuGroup::joinIterations(const GpuMember &member, ArrayRef<GpuMember> fills) {
  bool shared = llvm::any_of(member.accesses, [&](const GpuAccess &access) {
    return !access.scalar && (reads(access.root) || writes(access.root));
  });
  bool sums = llvm::any_of(member.accesses, [&](const GpuAccess &access) {
    return !access.scalar && sumsInto(access.root);
  });
  if (!shared || sums)
    return false;
  std::vector<Linked> linked;
  for (const GpuMember &other : members) {
    SmallVector<int> loops;
    for (unsigned loop : classLoops(other, extents.size()))
      loops.push_back(static_cast<int>(loop));
    linked.push_back({&other, loops});
  }
  std::vector<Linked> added;
  added.push_back({&member, linkLoops(member, linked, extents)});
  for (const GpuMember &fill : fills)
    added.insert(added.end() - 1, {&fill, linkLoops(fill, added.back(), extents)});

  // Drop unshared classes, then further ones until the group is separable, innermost first.
  SmallVector<unsigned> kept;
  for (unsigned c = 0; c < extents.size(); ++c)
    if (llvm::all_of(added, [&](const Linked &entry) { return entry.loopOf[c] >= 0; }))
      kept.push_back(c);
  while (columns.empty() || kept.size() == extents.size()) {
    GpuGroup trial = *this;
    trial.extents.clear();
    for (GpuMember &m : trial.members)
      for (int &c : m.classOf)
        if (c >= 0) {
          const unsigned *found = llvm::find(kept, static_cast<unsigned>(c));
          c = found == kept.end() ? -1 : static_cast<int>(found - kept.begin());
        }
    for (const Linked &entry : added) {
      trial.members.push_back(*entry.member);
      for (auto [to, from] : llvm::enumerate(kept))
        trial.members.back().classOf[entry.loopOf[from]] = static_cast<int>(to);
    }
    for (unsigned from : kept)
      trial.extents.push_back(extents[from]);
    if (trial.extents.empty() &&
        llvm::any_of(trial.members, [](const GpuMember &m) { return m.volume() > kMaxAlone; }))
      return false;
    if (trial.separable()) {
      trial.orderClasses();
      if (!trial.choose() || (!columns.empty() && !trial.walked()))
        return false;
      *this = std::move(trial);
      return true;
    }
    if (kept.empty())
      return false;
    kept.pop_back();
  }
  return false;
}

} // namespace tessera::codegen
