//===- GpuWalk.cpp - Sums over the rows of a launch -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a norm contains sums over all rows besides its rows. GpuSplit cuts them into
// parts,
//
//   p[s, j] = sum over i' of x[s, i', j]
//
// and if a launch iterates over the rows of x anyway, a team processes those of a part in order and
// accumulates them in registers: x is read once. The rows' loops, one or several that form one, are
// split like the sum's, into parts and rows of a part.
//
//===----------------------------------------------------------------------===//

#include "../GpuLimits.h"
#include "GpuGroup.h"

using namespace mlir;

namespace tessera::codegen {

/// Longer rows do not fit in registers together with their sums.
static constexpr int64_t kLongestRow = 8 << 10;

/// The summed output, if the member computes nothing else.
static const GpuAccess *sumsOf(const GpuMember &member) {
  if (member.outputs.size() != 1 || !member.gathered.empty() ||
      !member.op.getBody()->getOps<linalg::IndexOp>().empty())
    return nullptr;
  const NestOutput &output = member.outputs[0];
  return output.accumulates && output.kind ? &member.accesses[output.operand] : nullptr;
}

/// Finds the loops s and i' of the sum: x is contiguous along both together.
static bool findLoops(GpuColumns &sums, const GpuAccess &output) {
  const GpuMember &member = sums.member;
  unsigned reduced = 0;
  for (auto [loop, is] : llvm::enumerate(member.reduction))
    if (is && member.extents[loop] > 1) {
      sums.walked = loop;
      ++reduced;
    }
  if (reduced != 1)
    return false;
  for (unsigned loop = 0; loop < member.extents.size(); ++loop)
    if (output.step[loop] != 0 && llvm::all_of(member.accesses, [&](const GpuAccess &access) {
          return access.output ||
                 access.step[loop] == access.step[sums.walked] * member.extents[sums.walked];
        })) {
      sums.part = loop;
      return true;
    }
  return false;
}

/// Replaces the loops of the classes by two: one over parts, class 0, and one over the rows of a
/// part, class 1. Fails if an access does not iterate over them as one loop.
static bool cutRows(GpuMember &member, unsigned classes, int64_t parts, int64_t walk) {
  SmallVector<unsigned> loops = GpuGroup::classLoops(member, classes);
  for (auto index : member.op.getBody()->getOps<linalg::IndexOp>())
    if (llvm::is_contained(loops, index.getDim()))
      return false;
  unsigned last = loops.pop_back_val();
  for (GpuAccess &access : member.accesses) {
    unsigned inner = last;
    for (unsigned loop : llvm::reverse(loops)) {
      if (access.step[loop] != access.step[inner] * member.extents[inner])
        return false;
      inner = loop;
    }
    for (unsigned loop : loops)
      access.step[loop] = 0;
    access.step.push_back(access.step[last] * walk);
  }
  for (unsigned loop : loops) {
    member.extents[loop] = 1;
    member.classOf[loop] = -1;
  }
  member.extents[last] = walk;
  member.classOf[last] = 1;
  member.extents.push_back(parts);
  member.classOf.push_back(0);
  member.reduction.push_back(false);
  return true;
}

/// Restricts the fill of p to once per part.
static bool cutFill(GpuMember &fill, const GpuColumns &sums, const GpuAccess &output) {
  const GpuAccess &filled = fill.accesses[fill.outputs[0].operand];
  if (fill.outputs.size() != 1 || filled.root != output.root)
    return false;
  fill.classOf.assign(fill.extents.size(), -1);
  for (unsigned loop = 0; loop < fill.extents.size(); ++loop)
    if (filled.step[loop] == output.step[sums.part] &&
        fill.extents[loop] == sums.member.extents[sums.part]) {
      fill.classOf[loop] = 0;
      fill.classOf.push_back(1);
      fill.extents.push_back(sums.member.extents[sums.walked]);
      fill.reduction.push_back(false);
      for (GpuAccess &access : fill.accesses)
        access.step.push_back(0);
      return true;
    }
  return false;
}

bool GpuGroup::sumsInto(Value root) const {
  return llvm::any_of(columns,
                      [&](const GpuColumns &sums) { return sumsOf(sums.member)->root == root; }) ||
         llvm::any_of(members, [&](const GpuMember &member) {
           return isColumns(member) && sumsOf(member)->root == root;
         });
}

bool GpuGroup::isColumns(const GpuMember &member) const {
  return walk > 1 && member.reduction[classLoops(member, extents.size()).back()];
}

bool GpuGroup::isColumnsFill(const GpuMember &member) const {
  return walk > 1 && member.isFill() && sumsInto(member.accesses[member.outputs[0].operand].root);
}

std::optional<GpuGroup> GpuGroup::walked() const {
  const GpuColumns &first = columns.front();
  int64_t parts = first.member.extents[first.part], rows = first.member.extents[first.walked];
  GpuGroup result = *this;
  result.members.clear();
  result.columns.clear();
  result.tiles.reset();
  result.extents = {parts, rows};
  result.walk = rows;
  for (const GpuColumns &sums : columns)
    for (GpuMember fill : sums.fills) {
      if (!cutFill(fill, sums, *sumsOf(sums.member)))
        return std::nullopt;
      result.members.push_back(std::move(fill));
    }
  auto next = columns.begin();
  for (size_t i = 0; i <= members.size(); ++i) {
    for (; next != columns.end() && next->at == i; ++next) {
      GpuMember member = next->member;
      member.classOf.assign(member.extents.size(), -1);
      member.classOf[next->part] = 0;
      member.classOf[next->walked] = 1;
      if (member.extents[next->part] != parts || member.extents[next->walked] != rows)
        return std::nullopt;
      result.members.push_back(std::move(member));
    }
    if (i == members.size())
      break;
    GpuMember member = members[i];
    if (!cutRows(member, extents.size(), parts, rows))
      return std::nullopt;
    result.members.push_back(std::move(member));
  }
  result.rows = true;
  if (!result.separable() || !result.rowsPossible() || !result.contiguousAlongOwn())
    return std::nullopt;
  return result;
}

void GpuGroup::spread() {
  if (!columns.empty())
    *this = *walked();
}

bool GpuGroup::joinColumns(const GpuMember &member, ArrayRef<GpuMember> fills) {
  const GpuAccess *output = sumsOf(member);
  GpuColumns sums;
  sums.member = member;
  sums.fills.assign(fills.begin(), fills.end());
  sums.at = members.size();
  if (!output || reads(output->root) || !findLoops(sums, *output))
    return false;
  int64_t parts = member.extents[sums.part], own = member.volume();
  int64_t rows = parts * member.extents[sums.walked];
  own /= rows;
  // A team shares the elements of a row; a sum of one element per row has none to share.
  if (parts < kBusyTeams || parts * own < kBusyElements || own > kLongestRow || own == 1)
    return false;
  // Rows are the outermost classes; the remaining ones become own loops of the members.
  GpuGroup trial = *this;
  int64_t counted = 1;
  unsigned classes = 0;
  while (classes < extents.size() && counted < rows)
    counted *= extents[classes++];
  bool whole = llvm::any_of(member.accesses, [&](const GpuAccess &access) {
    return !access.scalar && !access.output && reads(access.root);
  });
  if (counted != rows || !whole || (!columns.empty() && classes != extents.size()))
    return false;
  trial.extents.truncate(classes);
  for (GpuMember &other : trial.members)
    for (int &c : other.classOf)
      c = c < static_cast<int>(classes) ? c : -1;
  trial.columns.push_back(std::move(sums));
  if (!trial.walked())
    return false;
  trial.rows = true;
  trial.tiles.reset();
  *this = std::move(trial);
  return true;
}

} // namespace tessera::codegen
