//===- RankCalls.cpp - Choose the calls that move the boxes of a group ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankPlanner.h"

#include <algorithm>
#include <map>

namespace tessera::runtime {

using sharding::CollectiveKind;

int64_t RankPlanner::rankOf(int64_t group, int64_t device) const {
  const auto &members = plan.groups[group];
  return std::lower_bound(members.begin(), members.end(), device) - members.begin();
}

RankCall RankPlanner::callOf(size_t operand, CollectiveKind kind, int64_t count) const {
  const Move &move = moves[operand];
  return {kind, step.operands[operand].dtype, move.reduction(), move.resultScale(), count, 0};
}

void RankPlanner::addCall(const char *what, int64_t place, const RankCall &call, int64_t send,
                          int64_t receive) {
  RankAction action;
  action.kind = RankAction::Kind::call;
  action.what = what;
  action.call = call;
  action.send = send;
  action.receive = receive;
  devices[place].calls.push_back(std::move(action));
}

void RankPlanner::pack(size_t operand, const MovePiece &piece, const End &from, int64_t to) {
  Strides strides = piece.strides;
  strides.target = denseStrides(strides);
  devices[placeOf(from)].prepare.push_back(
      moveAction("pack", operand, std::move(strides), {sourceAt(operand, from)}, to));
}

void RankPlanner::unpack(size_t operand, const MovePiece &piece, int64_t from, const End &to) {
  Strides strides = piece.strides;
  strides.source = denseStrides(strides);
  devices[placeOf(to)].finish.push_back(
      moveAction("unpack", operand, std::move(strides), {from}, targetAt(operand, to)));
}

static const End *endOn(const std::vector<End> &ends, int64_t device) {
  for (const End &end : ends)
    if (end.device == device)
      return &end;
  return nullptr;
}

void RankPlanner::planGroup(size_t operand, int64_t group, const Pieces &pieces) {
  bool reduces = moves[operand].resultScale() != 1;
  for (const MovePiece *piece : pieces)
    reduces |= piece->sources.size() > 1;
  if (reduces ? planReduction(operand, group, pieces) : planGather(operand, group, pieces))
    return;
  planMessages(operand, group, pieces);
}

/// Every piece goes to all members: an all-gather, padded if the shards are slightly uneven.
bool RankPlanner::planGather(size_t operand, int64_t group, const Pieces &pieces) {
  int64_t n = sizeOfGroup(group), elementBytes = moves[operand].elementBytes();
  std::vector<Pieces> bySource(n);
  std::vector<int64_t> counts(n);
  for (const MovePiece *piece : pieces) {
    if (static_cast<int64_t>(piece->targets.size()) != n)
      return false;
    int64_t rank = rankOf(group, piece->sources.front().device);
    bySource[rank].push_back(piece);
    counts[rank] += piece->strides.elements;
  }
  int64_t most = *std::max_element(counts.begin(), counts.end()), sum = 0;
  for (int64_t count : counts)
    sum += count;
  if (4 * most * n > 5 * sum)
    return false; // padding would cost more than a quarter
  RankCall call = callOf(operand, CollectiveKind::all_gather, most);
  bool direct = true;
  for (int64_t rank = 0; rank < n && direct; ++rank) {
    direct = bySource[rank].size() == 1 && counts[rank] == most &&
             bySource[rank].front()->strides.extents.empty();
    for (int64_t device : plan.groups[group]) {
      if (!direct)
        break;
      const End *first = endOn(bySource[0].front()->targets, device);
      const End *here = endOn(bySource[rank].front()->targets, device);
      direct &= here->offset == first->offset + rank * most;
    }
  }
  for (int64_t rank = 0; rank < n; ++rank) {
    int64_t device = plan.groups[group][rank], place = partMesh.positionOf(device);
    if (direct) {
      // Each rank decides independently: the call is the same either way.
      int64_t to = targetAt(operand, *endOn(bySource[0].front()->targets, device));
      int64_t from = sourceAt(operand, bySource[rank].front()->sources.front());
      if (!addresses[operand].shared || from == to + rank * most * elementBytes) {
        addCall("all_gather", place, call, from, to);
        continue;
      }
    }
    int64_t staging = stage(place, n * most * elementBytes);
    int64_t mine = staging + rank * most * elementBytes;
    for (int64_t at = mine; const MovePiece *piece : bySource[rank]) {
      pack(operand, *piece, piece->sources.front(), at);
      at += piece->strides.elements * elementBytes;
    }
    addCall("all_gather", place, call, mine, staging);
    for (int64_t source = 0; source < n; ++source)
      for (int64_t at = staging + source * most * elementBytes;
           const MovePiece *piece : bySource[source]) {
        unpack(operand, *piece, at, *endOn(piece->targets, device));
        at += piece->strides.elements * elementBytes;
      }
  }
  return true;
}

bool RankPlanner::planReduction(size_t operand, int64_t group, const Pieces &pieces) {
  auto n = static_cast<size_t>(sizeOfGroup(group));
  if (!reducesExactly(step.operands[operand].dtype, moves[operand].reduction()))
    return false;
  bool toAll = true, toOne = true;
  for (const MovePiece *piece : pieces) {
    if (piece->sources.size() != n)
      return false;
    toAll &= piece->targets.size() == n;
    toOne &= piece->targets.size() == 1;
  }
  if (toAll)
    planAllReduce(operand, group, pieces);
  else if (toOne)
    planReduceScatter(operand, group, pieces);
  return toAll || toOne;
}

void RankPlanner::planAllReduce(size_t operand, int64_t group, const Pieces &pieces) {
  int64_t elementBytes = moves[operand].elementBytes(), count = 0;
  for (const MovePiece *piece : pieces)
    count += piece->strides.elements;
  RankCall call = callOf(operand, CollectiveKind::all_reduce, count);
  for (int64_t device : plan.groups[group]) {
    int64_t place = partMesh.positionOf(device);
    const MovePiece &first = *pieces.front();
    int64_t from = sourceAt(operand, *endOn(first.sources, device));
    int64_t to = targetAt(operand, *endOn(first.targets, device));
    if (pieces.size() == 1 && first.strides.extents.empty() &&
        (!addresses[operand].shared || from == to)) {
      addCall("all_reduce", place, call, from, to);
      continue;
    }
    int64_t staging = stage(place, count * elementBytes);
    addCall("all_reduce", place, call, staging, staging);
    for (int64_t at = staging; const MovePiece *piece : pieces) {
      pack(operand, *piece, *endOn(piece->sources, device), at);
      unpack(operand, *piece, at, *endOn(piece->targets, device));
      at += piece->strides.elements * elementBytes;
    }
  }
}

void RankPlanner::planReduceScatter(size_t operand, int64_t group, const Pieces &pieces) {
  int64_t n = sizeOfGroup(group), elementBytes = moves[operand].elementBytes(), most = 0;
  std::vector<Pieces> byTarget(n);
  std::vector<int64_t> counts(n);
  for (const MovePiece *piece : pieces) {
    int64_t rank = rankOf(group, piece->targets.front().device);
    byTarget[rank].push_back(piece);
    most = std::max(most, counts[rank] += piece->strides.elements);
  }
  auto holders = n - std::count(counts.begin(), counts.end(), 0);
  bool toRoot = holders == 1;
  RankCall call =
      callOf(operand, toRoot ? CollectiveKind::reduce : CollectiveKind::reduce_scatter, most);
  call.root = toRoot ? std::max_element(counts.begin(), counts.end()) - counts.begin() : 0;
  for (int64_t rank = 0; rank < n; ++rank) {
    int64_t device = plan.groups[group][rank], place = partMesh.positionOf(device);
    auto from = [&](int64_t target) {
      return sourceAt(operand, *endOn(byTarget[target].front()->sources, device));
    };
    bool direct = !toRoot && !addresses[operand].shared;
    for (int64_t target = 0; target < n && direct; ++target)
      direct = byTarget[target].size() == 1 && counts[target] == most &&
               byTarget[target].front()->strides.extents.empty() &&
               from(target) == from(0) + target * most * elementBytes;
    if (direct) {
      addCall("reduce_scatter", place, call, from(0),
              targetAt(operand, byTarget[rank].front()->targets.front()));
      continue;
    }
    int64_t slices = toRoot ? 1 : n;
    int64_t staging = stage(place, slices * most * elementBytes);
    int64_t mine = staging + (toRoot ? 0 : rank * most * elementBytes);
    for (int64_t target = 0; target < n; ++target)
      for (int64_t at = staging + (toRoot ? 0 : target * most * elementBytes);
           const MovePiece *piece : byTarget[target]) {
        pack(operand, *piece, *endOn(piece->sources, device), at);
        at += piece->strides.elements * elementBytes;
      }
    addCall(toRoot ? "reduce" : "reduce_scatter", place, call, staging, mine);
    for (int64_t at = mine; const MovePiece *piece : byTarget[rank]) {
      unpack(operand, *piece, at, piece->targets.front());
      at += piece->strides.elements * elementBytes;
    }
  }
}

void RankPlanner::addMessage(int64_t group, const End &from, int64_t fromAddress, const End &to,
                             int64_t toAddress, int64_t bytes) {
  devices[placeOf(from)].exchange.messages.push_back(
      {rankOf(group, to.device), true, fromAddress, bytes});
  devices[placeOf(to)].exchange.messages.push_back(
      {rankOf(group, from.device), false, toAddress, bytes});
}

/// One message per pair of devices, packed unless it is one contiguous box.
void RankPlanner::planMessages(size_t operand, int64_t group, const Pieces &pieces) {
  std::map<std::pair<int64_t, int64_t>, Pieces> pairs; ///< by ranks of source and target
  for (const MovePiece *piece : pieces) {
    if (piece->sources.size() > 1 || moves[operand].resultScale() != 1) {
      planContributions(operand, group, *piece);
      continue;
    }
    int64_t source = rankOf(group, piece->sources.front().device);
    addLocal(operand, *piece, placeOf(piece->sources.front()));
    for (const End &to : piece->targets)
      if (to.device != piece->sources.front().device)
        pairs[{source, rankOf(group, to.device)}].push_back(piece);
  }
  int64_t elementBytes = moves[operand].elementBytes();
  std::map<std::pair<int64_t, Pieces>, int64_t> packed; ///< packed data for several receivers
  for (auto &[ranks, list] : pairs) {
    const End &from = list.front()->sources.front();
    const End &to = *endOn(list.front()->targets, plan.groups[group][ranks.second]);
    int64_t bytes = 0;
    for (const MovePiece *piece : list)
      bytes += piece->strides.elements * elementBytes;
    if (list.size() == 1 && list.front()->strides.extents.empty()) {
      addMessage(group, from, sourceAt(operand, from), to, targetAt(operand, to), bytes);
      continue;
    }
    auto [at, isNew] = packed.try_emplace({ranks.first, list}, 0);
    if (isNew)
      at->second = stage(placeOf(from), bytes);
    int64_t received = stage(placeOf(to), bytes), done = 0;
    addMessage(group, from, at->second, to, received, bytes);
    for (const MovePiece *piece : list) {
      if (isNew)
        pack(operand, *piece, piece->sources.front(), at->second + done);
      unpack(operand, *piece, received + done, *endOn(piece->targets, to.device));
      done += piece->strides.elements * elementBytes;
    }
  }
}

/// Each target receives all contributions and reduces them in rank order.
void RankPlanner::planContributions(size_t operand, int64_t group, const MovePiece &piece) {
  int64_t bytes = piece.strides.elements * moves[operand].elementBytes();
  std::vector<int64_t> packed;
  for (const End &from : piece.sources) {
    packed.push_back(stage(placeOf(from), bytes));
    pack(operand, piece, from, packed.back());
  }
  for (const End &to : piece.targets) {
    std::vector<int64_t> sources;
    for (size_t i = 0; i < piece.sources.size(); ++i) {
      const End &from = piece.sources[i];
      sources.push_back(from.device == to.device ? packed[i] : stage(placeOf(to), bytes));
      if (from.device != to.device)
        addMessage(group, from, packed[i], to, sources.back(), bytes);
    }
    Strides strides = piece.strides;
    strides.source = denseStrides(strides);
    RankAction reduce = moveAction("reduce", operand, std::move(strides), std::move(sources),
                                   targetAt(operand, to));
    reduce.reduction = moves[operand].reduction();
    reduce.scale = moves[operand].resultScale();
    devices[placeOf(to)].finish.push_back(std::move(reduce));
  }
}

} // namespace tessera::runtime
