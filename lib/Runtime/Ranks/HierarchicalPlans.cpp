//===- HierarchicalPlans.cpp - Within hosts, then between them ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <algorithm>

namespace tessera::runtime {

using sharding::CollectiveKind;

namespace {
class Hosts {
public:
  explicit Hosts(PlanBuilder &b) : b(b) {
    std::vector<int64_t> names;
    for (int64_t rank = 0; rank < b.ranks; ++rank) {
      int64_t name = b.request.hosts.empty() ? 0 : b.request.hosts[rank];
      size_t host =
          static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      if (host == names.size()) {
        names.push_back(name);
        members.emplace_back();
      }
      hostOf.push_back(host);
      placeOf.push_back(static_cast<int64_t>(members[host].size()));
      members[host].push_back(rank);
    }
  }
  bool areSeveral() const { return members.size() > 1; }
  const std::vector<int64_t> &here() const { return members[hostOf[b.rank]]; }

  void allReduce(Block all);
  void allGather(const std::vector<Block> &blocks);
  void reduceScatter(const std::vector<Block> &blocks);
  void broadcast(Block all);
  void reduce(Block all);

private:
  /// The rank that represents a host in a collective with a root: its first rank, or the root.
  int64_t leader(size_t host) const {
    return hostOf[b.request.root] == host ? b.request.root : members[host].front();
  }

  PlanBuilder &b;
  std::vector<std::vector<int64_t>> members; ///< ranks by host, in order of their first ranks
  std::vector<size_t> hostOf;                ///< by rank
  std::vector<int64_t> placeOf;              ///< by rank: within its host
};
} // namespace

/// The buffer is cut into as many pieces as the smallest host has ranks. Rank i of each host owns
/// piece i: it adds the contributions of its host, the owners of a piece add theirs across hosts,
/// and distribute it within their hosts.
void Hosts::allReduce(Block all) {
  size_t lanes = members[0].size();
  for (const std::vector<int64_t> &host : members)
    lanes = std::min(lanes, host.size());
  std::vector<Block> pieces = cutEvenly(all.begin, all.count, static_cast<int64_t>(lanes));
  auto lane = static_cast<size_t>(placeOf[b.rank]);
  bool owns = lane < lanes;
  std::vector<Block> ofMember = pieces; // of ranks that own none, empty
  ofMember.resize(here().size(), {all.begin, 0});
  b.reduceBlocks(here(), ofMember, Slice::Buffer::input, output(ofMember[lane]), false);
  if (owns) {
    std::vector<int64_t> owners;
    for (const std::vector<int64_t> &host : members)
      owners.push_back(host[lane]);
    std::vector<Block> parts =
        cutEvenly(pieces[lane].begin, pieces[lane].count, static_cast<int64_t>(owners.size()));
    b.reduceBlocks(owners, parts, Slice::Buffer::output, output(parts[hostOf[b.rank]]), true);
    b.exchangeBlocks(owners, parts);
  } else {
    b.round();
    b.round();
  }
  b.exchangeBlocks(here(), ofMember);
}

/// The first rank of each host collects its blocks; the first ranks exchange them, and distribute
/// all blocks within their hosts.
void Hosts::allGather(const std::vector<Block> &blocks) {
  size_t host = hostOf[b.rank];
  int64_t first = here().front();
  b.round();
  b.copy(input({0, blocks[b.rank].count}), output(blocks[b.rank]));
  b.round();
  for (int64_t peer : here())
    if (b.rank != first && peer == b.rank)
      b.send(first, output(blocks[b.rank]));
    else if (b.rank == first && peer != first)
      b.receive(peer, output(blocks[peer]));
  b.round();
  if (b.rank == first)
    for (size_t other = 0; other < members.size(); ++other)
      if (other != host) {
        for (int64_t rank : here())
          b.send(members[other].front(), output(blocks[rank]));
        for (int64_t rank : members[other])
          b.receive(members[other].front(), output(blocks[rank]));
      }
  b.round();
  for (int64_t peer : here())
    for (int64_t rank = 0; rank < b.ranks; ++rank)
      if (b.rank == first && peer != first && rank != peer)
        b.send(peer, output(blocks[rank]));
      else if (b.rank != first && peer == first && rank != b.rank)
        b.receive(first, output(blocks[rank]));
}

/// A member of each host, chosen by the block's rank, adds its host's contributions to the block,
/// and sends the sum to that rank, which adds those of all hosts.
void Hosts::reduceScatter(const std::vector<Block> &blocks) {
  auto adderOf = [&](size_t host, int64_t target) {
    if (hostOf[target] == host)
      return target;
    return members[host][static_cast<size_t>(placeOf[target]) % members[host].size()];
  };
  size_t host = hostOf[b.rank];
  std::vector<Slice> sums(static_cast<size_t>(b.ranks)); // of the blocks that this rank adds
  b.round();
  for (int64_t target = 0; target < b.ranks; ++target) {
    int64_t adder = adderOf(host, target);
    if (adder != b.rank) {
      b.send(adder, input(blocks[target]));
      continue;
    }
    std::vector<Slice> sources;
    for (int64_t rank : here()) {
      sources.push_back(rank == b.rank ? input(blocks[target]) : b.scratch(blocks[target].count));
      if (rank != b.rank)
        b.receive(rank, sources.back());
    }
    sums[target] = b.scratch(blocks[target].count);
    b.combine(std::move(sources), sums[target], false);
  }
  b.round();
  for (int64_t target = 0; target < b.ranks; ++target)
    if (hostOf[target] != host && adderOf(host, target) == b.rank)
      b.send(target, sums[target]);
  std::vector<Slice> contributions;
  for (size_t other = 0; other < members.size(); ++other) {
    contributions.push_back(other == host ? sums[b.rank] : b.scratch(blocks[b.rank].count));
    if (other != host)
      b.receive(adderOf(other, b.rank), contributions.back());
  }
  b.combine(std::move(contributions), output({0, blocks[b.rank].count}), true);
}

void Hosts::broadcast(Block all) {
  int64_t hostLeader = leader(hostOf[b.rank]), root = b.request.root;
  b.round();
  if (b.rank == root)
    b.copy(input(all), output(all));
  for (size_t host = 0; host < members.size(); ++host)
    if (b.rank == root && host != hostOf[root])
      b.send(leader(host), output(all));
    else if (b.rank != root && b.rank == leader(host))
      b.receive(root, output(all));
  b.round();
  for (int64_t peer : here())
    if (b.rank == hostLeader && peer != hostLeader)
      b.send(peer, output(all));
    else if (b.rank != hostLeader && peer == hostLeader)
      b.receive(hostLeader, output(all));
}

void Hosts::reduce(Block all) {
  int64_t hostLeader = leader(hostOf[b.rank]), root = b.request.root;
  Slice sum;
  b.round();
  if (b.rank != hostLeader) {
    b.send(hostLeader, input(all));
  } else {
    std::vector<Slice> sources;
    for (int64_t peer : here()) {
      sources.push_back(peer == b.rank ? input(all) : b.scratch(all.count));
      if (peer != b.rank)
        b.receive(peer, sources.back());
    }
    sum = b.scratch(all.count);
    b.combine(std::move(sources), sum, false);
  }
  b.round();
  if (b.rank == root) {
    std::vector<Slice> sources;
    for (size_t host = 0; host < members.size(); ++host) {
      sources.push_back(host == hostOf[root] ? sum : b.scratch(all.count));
      if (host != hostOf[root])
        b.receive(leader(host), sources.back());
    }
    b.combine(std::move(sources), output(all), true);
  } else if (b.rank == hostLeader) {
    b.send(root, sum);
  }
}

bool planHierarchical(PlanBuilder &b) {
  Hosts hosts(b);
  if (!hosts.areSeveral())
    return false;
  switch (b.request.kind) {
  case CollectiveKind::all_reduce:
    hosts.allReduce({0, b.request.counts[0]});
    return true;
  case CollectiveKind::all_gather:
    hosts.allGather(blocksOf(b.request.counts));
    return true;
  case CollectiveKind::reduce_scatter:
    hosts.reduceScatter(blocksOf(b.request.counts));
    return true;
  case CollectiveKind::broadcast:
    hosts.broadcast({0, b.request.counts[0]});
    return true;
  case CollectiveKind::reduce:
    hosts.reduce({0, b.request.counts[0]});
    return true;
  default:
    return false;
  }
}

} // namespace tessera::runtime
