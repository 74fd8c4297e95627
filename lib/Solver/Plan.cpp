//===- Plan.cpp - Elimination orders --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <queue>
#include <set>

namespace tessera::solver {

static double product(const std::vector<Index> &sizes) {
  double entries = 1;
  for (Index size : sizes)
    entries *= size;
  return entries;
}

double Bucket::entries() const {
  return product(sizes);
}
double TableDef::entries() const {
  return product(sizes);
}

namespace {

/// Pruning smaller tables gains too little, pruning larger ones takes too long.
constexpr double leastToPrune = 64, mostToPrune = 4e5;

/// Combinations of strategies of nodes that are eliminated together: tracing back tries them all.
constexpr double mostTogether = 4096;

/// A set of numbers that is cleared often.
class Marks {
public:
  /// Empties the set; numbers are below `limit`.
  void clear(size_t limit) {
    seen.resize(limit, 0);
    ++now;
  }
  void add(Index item) { seen[item] = now; }
  bool has(Index item) const { return seen[item] == now; }

private:
  std::vector<int64_t> seen;
  int64_t now = 0;
};

class Planner {
public:
  Planner(const Model &model, const PlanOptions &options) : model(model), options(options) {}
  Plan run();

private:
  /// A table over given nodes.
  struct Factor {
    Index table;
    std::vector<Index> nodes; ///< by dimension
  };
  /// The bucket of a node, with its variables numbered in the order of the parts.
  struct Draft {
    std::vector<Index> factors;        ///< in the order of the parts
    std::vector<Index> nodes;          ///< by variable; the eliminated ones come first
    Index eliminated = 1;              ///< the node, and those eliminated with it
    double entries = 1, remaining = 1; ///< entries of the bucket, of its result
    uint64_t hash = 0;
  };
  /// Nodes with equal buckets in the present state.
  struct Class {
    std::set<Index> members;
    double entries = 1, result = 1;
  };
  struct Candidate {
    double score;
    Index first; ///< lowest member: ties go to it
    uint64_t hash;
    bool operator<(const Candidate &other) const {
      return score != other.score ? score > other.score : first > other.first;
    }
  };

  Index addFactor(Index table, std::vector<Index> nodes);
  void leaves();
  void draft(Index node, Draft &result);
  void classify(Index node);
  Candidate candidate(uint64_t hash) const;
  Index defineBucket(const std::vector<Index> &parts, const std::vector<Index> &nodes,
                     Index eliminated, bool isSplit);
  void replace(const std::vector<Index> &parts, Index bucket, std::vector<Index> nodes,
               bool isUnique);
  std::vector<Draft> split(const Draft &whole) const;
  void eliminate(Index node, bool isUnique);
  Index prune(Index factor);
  /// The factor that now contains this original factor.
  Index holder(Index factor);

  const Model &model;
  const PlanOptions &options;
  Plan plan;
  std::vector<Factor> factors;
  std::vector<Index> madeBy;                 ///< by factor, the step whose result it is, or -1
  std::vector<Index> parent;                 ///< by factor, the factor that contains it
  std::vector<std::vector<Index>> factorsOf; ///< by node, present factors
  std::vector<Index> unaryFactor;            ///< by node
  std::vector<std::vector<std::pair<Neighbour, Index>>> edgesOf; ///< by node: edge and its factor
  std::vector<char> isLive;
  std::vector<uint64_t> classOf;
  std::unordered_map<uint64_t, Class> classes;
  std::priority_queue<Candidate> queue;
  Index numLeaves = 0; ///< tables of the model
  Marks nodesOfDraft, factorsOfDraft;
  Interner bucketNumbers, pruningNumbers;
  std::vector<Index> bucketTable, pruningTable;
};

Index Planner::addFactor(Index table, std::vector<Index> nodes) {
  auto number = static_cast<Index>(factors.size());
  for (Index node : nodes)
    factorsOf[node].push_back(number);
  factors.push_back({table, std::move(nodes)});
  madeBy.push_back(static_cast<Index>(plan.steps.size()) - 1);
  parent.push_back(number);
  return number;
}

Index Planner::holder(Index factor) {
  while (parent[factor] != factor)
    factor = parent[factor] = parent[parent[factor]];
  return factor;
}

void Planner::leaves() {
  for (size_t v = 0; v < model.vectors.size(); ++v)
    plan.tables.push_back(
        {TableDef::unary, static_cast<Index>(v), {static_cast<Index>(model.vectors[v].size())}});
  auto firstMatrix = static_cast<Index>(plan.tables.size());
  for (size_t m = 0; m < model.matrices.size(); ++m)
    plan.tables.push_back({TableDef::pair,
                           static_cast<Index>(m),
                           {model.matrices[m].rows, model.matrices[m].columns}});
  numLeaves = static_cast<Index>(plan.tables.size());
  for (Index i = 0; i < model.numNodes(); ++i)
    unaryFactor.push_back(model.isOut(i) ? -1 : addFactor(model.unary[i], {i}));
  for (const Source::Pair &pair : model.pairs) {
    Index factor = addFactor(firstMatrix + pair.table, {pair.u, pair.v});
    edgesOf[pair.u].push_back({{pair.v, pair.table, true}, factor});
    edgesOf[pair.v].push_back({{pair.u, pair.table, false}, factor});
  }
}

static bool contains(const std::vector<Index> &list, Index item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

void Planner::draft(Index node, Draft &result) {
  nodesOfDraft.clear(model.numNodes());
  factorsOfDraft.clear(factors.size());
  result.factors = factorsOf[node];
  std::sort(result.factors.begin(), result.factors.end(), [&](Index a, Index b) {
    return factors[a].table != factors[b].table ? factors[a].table < factors[b].table
                                                : factors[a].nodes < factors[b].nodes;
  });
  result.nodes.assign(1, node);
  nodesOfDraft.add(node);
  result.entries = model.size(node);
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 29;
  };
  for (Index factor : result.factors) {
    factorsOfDraft.add(factor);
    mix(factors[factor].table);
    for (Index other : factors[factor].nodes) {
      mix(std::find(result.nodes.begin(), result.nodes.end(), other) - result.nodes.begin());
      if (!nodesOfDraft.has(other)) {
        nodesOfDraft.add(other);
        result.nodes.push_back(other);
        result.entries *= model.size(other);
      }
    }
  }
  // Nodes whose factors are all over nodes of this bucket are eliminated with it, at no additional
  // cost.
  double together = model.size(node);
  result.eliminated = 1;
  result.remaining = result.entries / model.size(node);
  for (size_t v = 1; v < result.nodes.size(); ++v) {
    Index other = result.nodes[v];
    const std::vector<Index> &otherFactors = factorsOf[other];
    bool isInside = std::all_of(otherFactors.begin(), otherFactors.end(), [&](Index factor) {
      return std::all_of(factors[factor].nodes.begin(), factors[factor].nodes.end(),
                         [&](Index end) { return nodesOfDraft.has(end); });
    });
    if (!isInside || together * model.size(other) > mostTogether)
      continue;
    together *= model.size(other);
    for (Index factor : otherFactors)
      if (!factorsOfDraft.has(factor)) {
        factorsOfDraft.add(factor);
        result.factors.push_back(factor);
        mix(factors[factor].table);
      }
    std::rotate(result.nodes.begin() + result.eliminated, result.nodes.begin() + v,
                result.nodes.begin() + v + 1);
    ++result.eliminated;
    result.remaining /= model.size(other);
  }
  // Edges between remaining nodes are added now, once for all equal places.
  for (size_t v = result.eliminated; v < result.nodes.size(); ++v)
    for (Index factor : factorsOf[result.nodes[v]])
      if (factors[factor].table < numLeaves && factors[factor].nodes.size() == 2 &&
          factors[factor].nodes[0] == result.nodes[v] &&
          nodesOfDraft.has(factors[factor].nodes[1]) && !factorsOfDraft.has(factor)) {
        factorsOfDraft.add(factor);
        result.factors.push_back(factor);
        mix(factors[factor].table);
      }
  result.hash = hash;
}

Planner::Candidate Planner::candidate(uint64_t hash) const {
  const Class &found = classes.at(hash);
  double size = options.order == EliminationOrder::bucket ? found.entries : found.result;
  if (found.result > options.tableLimit)
    size *= 1e6;
  return {size / static_cast<double>(found.members.size()), *found.members.begin(), hash};
}

/// Adds a node to the class of its bucket.
void Planner::classify(Index node) {
  Draft now;
  draft(node, now);
  if (classOf[node] == now.hash)
    return;
  if (auto old = classes.find(classOf[node]);
      old != classes.end() && old->second.members.erase(node) > 0) {
    if (old->second.members.empty())
      classes.erase(old);
    else
      queue.push(candidate(classOf[node]));
  }
  classOf[node] = now.hash;
  Class &joined = classes[now.hash];
  joined.members.insert(node);
  joined.entries = now.entries;
  joined.result = now.remaining;
  queue.push(candidate(now.hash));
}

/// The number of the bucket that eliminates the first `eliminated` of these nodes from these
/// factors.
Index Planner::defineBucket(const std::vector<Index> &parts, const std::vector<Index> &nodes,
                            Index eliminated, bool isSplit) {
  Bucket definition;
  definition.eliminated = eliminated;
  definition.isSplit = isSplit;
  for (Index each : nodes)
    definition.sizes.push_back(model.size(each));
  Key key{eliminated, isSplit};
  for (Index factor : parts) {
    Part part{factors[factor].table, {}};
    key.push_back(part.table);
    for (Index other : factors[factor].nodes) {
      auto at = std::find(nodes.begin(), nodes.end(), other) - nodes.begin();
      part.vars.push_back(static_cast<Index>(at));
      key.push_back(part.vars.back());
    }
    definition.parts.push_back(std::move(part));
  }
  auto [number, isNew] = bucketNumbers.intern(key);
  if (!isNew)
    return number;
  bucketTable.push_back(isSplit ? -1 : static_cast<Index>(plan.tables.size()));
  if (!isSplit) {
    double entries = definition.entries();
    TableDef result{
        TableDef::bucket, number, {definition.sizes.begin() + eliminated, definition.sizes.end()}};
    definition.isLazy = options.prune && entries >= options.lazyFrom && !result.sizes.empty();
    plan.work += entries;
    plan.largest = std::max(plan.largest, result.entries());
    plan.total += result.entries();
    plan.tables.push_back(std::move(result));
  }
  plan.buckets.push_back(std::move(definition));
  return number;
}

/// Replaces factors by the result of their bucket.
void Planner::replace(const std::vector<Index> &parts, Index bucket, std::vector<Index> nodes,
                      bool isUnique) {
  Index result = addFactor(bucketTable[bucket], nodes);
  for (Index factor : parts) {
    parent[factor] = result;
    for (Index other : factors[factor].nodes)
      std::erase(factorsOf[other], factor);
  }
  if (nodes.empty())
    plan.constants.push_back(bucketTable[bucket]);
  else if (isUnique && options.prune)
    factors[result].table = prune(result);
}

/// Groups of the parts of a node's bucket, each with few enough entries.
std::vector<Planner::Draft> Planner::split(const Draft &whole) const {
  Index node = whole.nodes[0];
  std::vector<Index> parts = factorsOf[node];
  std::sort(parts.begin(), parts.end(), [&](Index a, Index b) {
    size_t sizeA = factors[a].nodes.size(), sizeB = factors[b].nodes.size();
    return sizeA != sizeB ? sizeA > sizeB : a < b;
  });
  std::vector<Draft> groups;
  for (Index factor : parts) {
    auto grown = [&](const Draft &group) {
      double entries = group.entries;
      for (Index other : factors[factor].nodes)
        if (!contains(group.nodes, other))
          entries *= model.size(other);
      return entries;
    };
    auto fits = std::find_if(groups.begin(), groups.end(),
                             [&](const Draft &group) { return grown(group) <= options.splitAt; });
    if (fits == groups.end()) {
      groups.push_back({{}, {node}, 1, static_cast<double>(model.size(node)), 1, 0});
      fits = groups.end() - 1;
    }
    fits->entries = grown(*fits);
    fits->factors.push_back(factor);
    for (Index other : factors[factor].nodes)
      if (!contains(fits->nodes, other))
        fits->nodes.push_back(other);
  }
  return groups;
}

void Planner::eliminate(Index node, bool isUnique) {
  Draft bucket;
  draft(node, bucket);
  std::vector<Draft> groups;
  if (bucket.entries > options.splitAt)
    groups = split(bucket);
  if (groups.size() > 1) {
    // One node alone, with the whole bucket for tracing back.
    bucket.eliminated = 1;
    bucket.factors = factorsOf[node];
    plan.split.push_back(node);
  }
  Index eliminated = bucket.eliminated;
  for (Index v = 0; v < eliminated; ++v) {
    Index leaving = bucket.nodes[v];
    isLive[leaving] = 0;
    if (auto found = classes.find(classOf[leaving]); found != classes.end()) {
      found->second.members.erase(leaving);
      if (found->second.members.empty())
        classes.erase(found);
    }
  }
  std::vector<Index> kept(bucket.nodes.begin() + eliminated, bucket.nodes.end());
  Index whole = defineBucket(bucket.factors, bucket.nodes, eliminated, groups.size() > 1);
  Step step{whole, bucket.nodes, {}};
  for (Index factor : bucket.factors)
    step.from.push_back(madeBy[factor]);
  plan.steps.push_back(std::move(step));
  if (groups.size() > 1)
    for (const Draft &group : groups)
      replace(group.factors, defineBucket(group.factors, group.nodes, 1, false),
              {group.nodes.begin() + 1, group.nodes.end()}, isUnique);
  else
    replace(bucket.factors, whole, kept, isUnique);
  // A bucket depends only on the factors of its node, so no other bucket has changed.
  for (Index other : kept)
    classify(other);
}

/// The table of a factor after pruning; the same table if pruning does not pay off.
Index Planner::prune(Index factor) {
  const Factor subject = factors[factor];
  double entries = plan.tables[subject.table].entries();
  if (entries < leastToPrune || entries > mostToPrune)
    return subject.table;
  PruningDef definition{subject.table, {}};
  Key key{subject.table};
  for (Index node : subject.nodes) {
    std::vector<std::pair<Index, Index>> matrices;
    for (auto &[edge, original] : edgesOf[node])
      if (holder(original) != factor)
        matrices.push_back({edge.table, edge.isRow});
    std::sort(matrices.begin(), matrices.end());
    auto &outside = definition.outside.emplace_back();
    if (holder(unaryFactor[node]) != factor)
      outside.push_back({true, model.unary[node], false});
    key.insert(key.end(), {-1, outside.empty() ? -1 : model.unary[node]});
    for (auto [matrix, isRow] : matrices) {
      outside.push_back({false, matrix, isRow != 0});
      key.insert(key.end(), {matrix, isRow});
    }
  }
  auto [number, isNew] = pruningNumbers.intern(key);
  if (isNew) {
    pruningTable.push_back(static_cast<Index>(plan.tables.size()));
    plan.tables.push_back({TableDef::pruned, number, plan.tables[subject.table].sizes});
    plan.total += entries;
    plan.prunings.push_back(std::move(definition));
  }
  return pruningTable[number];
}

Plan Planner::run() {
  Index count = model.numNodes();
  factorsOf.resize(count);
  edgesOf.resize(count);
  isLive.assign(count, 1);
  classOf.assign(count, 0);
  leaves();
  for (Index i = 0; i < count; ++i)
    if (!model.isOut(i))
      classify(i);
  while (!queue.empty() && plan.work <= options.workLimit) {
    Candidate best = queue.top();
    queue.pop();
    auto found = classes.find(best.hash);
    if (found == classes.end())
      continue;
    Candidate now = candidate(best.hash);
    if (now.score != best.score || now.first != best.first) {
      // Either it is in the queue with its present score, or its score has worsened.
      queue.push(now);
      continue;
    }
    std::vector<Index> members(found->second.members.begin(), found->second.members.end());
    bool isUnique = members.size() == 1;
    for (Index node : members)
      if (isLive[node] && classOf[node] == best.hash)
        eliminate(node, isUnique);
  }
  return std::move(plan);
}

} // namespace

Plan makePlan(const Model &model, const PlanOptions &options) {
  return Planner(model, options).run();
}

} // namespace tessera::solver
