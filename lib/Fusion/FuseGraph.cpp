//===- FuseGraph.cpp - Which ops go into one kernel -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Fusion/FuseGraph.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

#include <queue>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the ops that a quick search for a path between two groups visits.
static constexpr size_t kMostLooks = 96;
/// From this many iterations per element of an operand on, the operand is small: fusion with its
/// producer is not worth a delay.
static constexpr int64_t kLittle = 8;

/// The carry of a loop that an op updates in its bytes, if nothing reads it later; null for others.
static Value updatedCarry(Operation *op) {
  Value dest;
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    dest = insert.getDest();
  else if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && generic->getNumResults() == 1)
    dest = generic.getDpsInits()[0];
  auto carry = dyn_cast_or_null<BlockArgument>(dest);
  return carry && isa<LoopLikeOpInterface>(carry.getOwner()->getParentOp()) ? dest : Value();
}

FuseGraph::FuseGraph(Block &block, unsigned maxOps, KindOf kindOf, IsSent isSent)
    : block(block), maxOps(maxOps) {
  for (Operation &op : block.without_terminator()) {
    number[&op] = ops.size();
    ops.push_back(&op);
  }
  sources.resize(ops.size());
  sent.resize(ops.size());
  groupOf.resize(ops.size());
  groups.resize(ops.size());
  visited.resize(ops.size());
  visitedAhead.resize(ops.size());
  std::optional<unsigned> lastCollective, segment;
  for (unsigned i = 0; i < ops.size(); ++i) {
    kinds.push_back(kindOf(ops[i]));
    groupOf[i] = i;
    groups[i].ops = {i};
    latest.push_back(i);
    std::vector<unsigned> &from = sources[i];
    auto add = [&](Value value) {
      if (Operation *producer = value.getDefiningOp())
        if (auto it = number.find(producer); it != number.end())
          from.push_back(it->second);
    };
    llvm::for_each(ops[i]->getOperands(), add);
    if (isSent)
      for (OpOperand &operand : ops[i]->getOpOperands())
        if (auto it = number.find(operand.get().getDefiningOp());
            it != number.end() && isSent(operand))
          sent[i].push_back(it->second);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(ops[i]->getRegions(), captured);
    llvm::for_each(captured, add);
    // An update waits for what reads the carry before it, itself or slices of it, and is not in
    // their kernels: else it would update a copy.
    if (Value carry = updatedCarry(ops[i]))
      for (Operation *user : carry.getUsers())
        waitFor(user, i);
    // Ops that may communicate keep their order, which is the same on all devices.
    if (kinds[i] == FuseKind::ordered) {
      if (lastCollective)
        from.push_back(*lastCollective);
      lastCollective = i;
    }
    // No group crosses the head of a segment, which depends on all ops before it; all later ops
    // depend on it.
    if (segment)
      from.push_back(*segment);
    if (isa<SegmentOp>(ops[i])) {
      for (unsigned before = segment.value_or(0); before < i; ++before)
        from.push_back(before);
      segment = i;
    }
    llvm::sort(from);
    from.erase(std::unique(from.begin(), from.end()), from.end());
  }
  growTree();
}

void FuseGraph::waitFor(Operation *reader, unsigned op) {
  auto it = number.find(block.findAncestorOpInBlock(*reader));
  if (it == number.end() || it->second >= op)
    return;
  sources[op].push_back(it->second);
  sent[op].push_back(it->second);
  if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(reader))
    for (Operation *user : reader->getUsers())
      waitFor(user, op);
}

void FuseGraph::growTree() {
  users.resize(ops.size());
  treeFirst.assign(ops.size(), 0);
  treeEnd.assign(ops.size(), 1);
  // Producers precede their users: subtree sizes are summed from the end, intervals assigned from
  // the beginning.
  for (auto op = static_cast<unsigned>(ops.size()); op-- > 0;)
    if (!sources[op].empty())
      treeEnd[sources[op].back()] += treeEnd[op];
  unsigned roots = 0;
  std::vector<unsigned> next(ops.size());
  for (unsigned op = 0; op < ops.size(); ++op) {
    unsigned &free = sources[op].empty() ? roots : next[sources[op].back()];
    treeFirst[op] = free;
    free += treeEnd[op];
    treeEnd[op] = free;
    next[op] = treeFirst[op] + 1;
    for (unsigned source : sources[op])
      users[source].push_back(op);
  }
}

unsigned FuseGraph::dependencyBound(unsigned op) {
  while (latest[op] != op)
    op = latest[op] = latest[latest[op]];
  return op;
}

bool FuseGraph::quicklyReaches(unsigned from, unsigned to) {
  unsigned end = groups[to].ops.back();
  ++search;
  looked = groups[from].ops;
  for (size_t next = 0; next < looked.size() && next < kMostLooks; ++next)
    for (unsigned user : users[looked[next]]) {
      if (user > end)
        break;
      if (groupOf[user] == from || groupOf[user] == to || visited[user] == search)
        continue;
      visited[user] = search;
      for (unsigned op : groups[to].ops)
        if (treeFirst[user] <= treeFirst[op] && treeFirst[op] < treeEnd[user])
          return true;
      looked.push_back(user);
    }
  return false;
}

bool FuseGraph::reaches(unsigned from, unsigned to) {
  // Between distant layers, a full search would visit all layers in between.
  if (quicklyReaches(from, to))
    return true;
  // Searches backwards from `to` and forwards from `from` alternately, group by group, excluding
  // direct edges between the two: the side with fewer groups to visit proves first that there is no
  // path.
  unsigned first = groups[from].ops.front(), end = std::max(lastMerged, groups[to].ops.back());
  SmallVector<unsigned> behind, ahead;
  ++search;
  auto goBack = [&](unsigned op, bool direct) {
    unsigned group = groupOf[op];
    if (group == to || (direct && group == from))
      return false;
    if (group == from)
      return true;
    if (visited[groups[group].ops.front()] == search ||
        dependencyBound(groups[group].ops.back()) < first)
      return false;
    visited[groups[group].ops.front()] = search;
    behind.push_back(group);
    return false;
  };
  // Behind the last op that is in a group, all paths lead to later ops.
  auto goOn = [&](unsigned op, bool direct) {
    unsigned group = groupOf[op];
    if (op > end || group == from || (direct && group == to))
      return false;
    if (group == to)
      return true;
    if (visitedAhead[groups[group].ops.front()] == search)
      return false;
    visitedAhead[groups[group].ops.front()] = search;
    ahead.push_back(group);
    return false;
  };
  for (unsigned op : groups[to].ops)
    for (unsigned source : sources[op])
      if (goBack(source, !llvm::is_contained(sent[op], source)))
        return true;
  for (unsigned op : groups[from].ops)
    for (unsigned user : users[op])
      if (goOn(user, !llvm::is_contained(sent[user], op)))
        return true;
  while (!behind.empty() && !ahead.empty()) {
    for (unsigned op : groups[behind.pop_back_val()].ops)
      for (unsigned source : sources[op])
        if (goBack(source, false))
          return true;
    for (unsigned op : groups[ahead.pop_back_val()].ops)
      for (unsigned user : users[op])
        if (goOn(user, false))
          return true;
  }
  return false;
}

bool FuseGraph::separated(unsigned a, unsigned b) {
  return reaches(a, b) || reaches(b, a);
}

bool FuseGraph::isPrivate(const Group &producer, unsigned consumerGroup) const {
  for (unsigned op : producer.ops)
    for (Operation *user : ops[op]->getUsers()) {
      auto it = number.find(block.findAncestorOpInBlock(*user));
      if (it == number.end() || (groupOf[it->second] != consumerGroup &&
                                 groupOf[it->second] != groupOf[producer.ops.front()]))
        return false;
    }
  return true;
}

bool FuseGraph::continuesInserts(unsigned op, unsigned producerGroup) const {
  auto insert = dyn_cast<tensor::InsertSliceOp>(ops[op]);
  if (!insert)
    return false;
  auto before = insert.getDest().getDefiningOp<tensor::InsertSliceOp>();
  return before && before->getBlock() == &block && before->hasOneUse() &&
         groupOf[number.lookup(before)] == producerGroup;
}

bool FuseGraph::passesOnlyThroughOperands(unsigned op, unsigned producerGroup) const {
  // Inside its body, an op may also read any element of other ops' results.
  for (unsigned source : sources[op])
    if (groupOf[source] == producerGroup)
      for (Operation *user : ops[source]->getUsers())
        if (user != ops[op] && block.findAncestorOpInBlock(*user) == ops[op])
          return false;
  auto uses = [&](const Group &users, unsigned made, unsigned except) {
    for (unsigned user : users.ops)
      for (unsigned source : sources[user])
        if (user != except && groupOf[source] == made)
          return true;
    return false;
  };
  return !uses(groups[groupOf[op]], producerGroup, op) &&
         !uses(groups[producerGroup], groupOf[op], ops.size());
}

bool FuseGraph::wouldDelayForFewElements(unsigned op, unsigned producerGroup) const {
  const Group &producer = groups[producerGroup], &consumer = groups[groupOf[op]];
  auto isStep = [&](unsigned source) { // a product or a communicating op
    return kinds[source] == FuseKind::ordered ||
           (kinds[source] == FuseKind::alone && !isa<linalg::FillOp>(ops[source]) &&
            isa<DestinationStyleOpInterface>(ops[source]));
  };
  bool waits = llvm::any_of(consumer.ops, [&](unsigned member) {
    return llvm::any_of(sources[member], [&](unsigned source) {
      return source > producer.ops.back() && isStep(source);
    });
  });
  auto linalgOp = dyn_cast<linalg::LinalgOp>(ops[op]);
  if (!waits || !linalgOp || linalgOp.hasDynamicShape())
    return false;
  auto isHandedOver = [&](Value value) {
    auto made = number.find(value.getDefiningOp());
    return (made != number.end() && groupOf[made->second] == producerGroup) ||
           llvm::any_of(producer.ops, [&](unsigned member) {
             return llvm::is_contained(ops[member]->getOperands(), value);
           });
  };
  int64_t iterations = ShapedType::getNumElements(linalgOp.getStaticLoopRanges());
  return llvm::none_of(linalgOp.getDpsInputs(), [&](Value input) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    return type && type.getNumElements() * kLittle > iterations && isHandedOver(input);
  });
}

void FuseGraph::tryJoin(unsigned op, unsigned producerGroup) {
  unsigned mine = groupOf[op];
  Group &producer = groups[producerGroup], &consumer = groups[mine];
  if (mine == producerGroup || producer.ops.size() + consumer.ops.size() > maxOps)
    return;
  bool inserts = continuesInserts(op, producerGroup);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(ops[op]);
  if (!inserts && (!linalgOp || !isa<linalg::LinalgOp>(ops[producer.ops.back()])))
    return;
  RowSpace joined;
  if (!inserts) {
    if (!passesOnlyThroughOperands(op, producerGroup) ||
        wouldDelayForFewElements(op, producerGroup))
      return;
    if (!consumer.rows)
      consumer.rows = RowSpace::of(ops[op]);
    if (!producer.rows)
      producer.rows = RowSpace::of(ops[producer.ops.front()]);
    // The labels of the producer's values map its rows to those of the consumer.
    if (!consumer.rows->join(linalgOp, *producer.rows, isPrivate(producer, mine), joined))
      return;
  }
  if (separated(producerGroup, mine))
    return;
  merge(producerGroup, mine);
  if (!inserts)
    consumer.rows = std::move(joined);
}

void FuseGraph::merge(unsigned from, unsigned into) {
  Group &gone = groups[from], &kept = groups[into];
  for (unsigned member : gone.ops)
    groupOf[member] = into;
  std::vector<unsigned> all;
  std::merge(gone.ops.begin(), gone.ops.end(), kept.ops.begin(), kept.ops.end(),
             std::back_inserter(all));
  kept.ops = std::move(all);
  lastMerged = std::max(lastMerged, kept.ops.back());
  for (unsigned at = dependencyBound(kept.ops.front()); at < kept.ops.back();
       at = dependencyBound(at))
    latest[at] = at + 1;
  gone.ops.clear();
}

void FuseGraph::fuse() {
  for (unsigned op = 0; op < ops.size(); ++op) {
    if (kinds[op] != FuseKind::kernel)
      continue;
    // The nearest producer first: its result is most likely still in the cache.
    for (unsigned source : llvm::reverse(sources[op]))
      if (kinds[source] == FuseKind::kernel)
        tryJoin(op, groupOf[source]);
  }
}

std::vector<unsigned> FuseGraph::sorted(const std::vector<std::vector<unsigned>> &groupUsers,
                                        const std::vector<unsigned> &places) const {
  std::vector<unsigned> waits(ops.size(), 0), result;
  for (const std::vector<unsigned> &readers : groupUsers)
    for (unsigned user : readers)
      ++waits[user];
  using Place = std::pair<unsigned, unsigned>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].ops.empty() && waits[group] == 0)
      ready.push({places[group], group});
  while (!ready.empty()) {
    unsigned group = ready.top().second;
    ready.pop();
    result.push_back(group);
    for (unsigned user : groupUsers[group])
      if (--waits[user] == 0)
        ready.push({places[user], user});
  }
  assert(llvm::none_of(waits, [](unsigned left) { return left; }) && "groups wait for each other");
  return result;
}

std::vector<std::vector<Operation *>> FuseGraph::order() const {
  std::vector<std::vector<unsigned>> groupUsers(ops.size());
  for (unsigned op = 0; op < ops.size(); ++op)
    for (unsigned source : sources[op])
      if (groupOf[source] != groupOf[op])
        groupUsers[groupOf[source]].push_back(groupOf[op]);
  // A group runs at the position of its last op, or later if it must wait.
  std::vector<unsigned> places(ops.size(), 0);
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].ops.empty())
      places[group] = groups[group].ops.back();
  // Producers of a group with an earlier position move to that position: otherwise all ops in front
  // of their last op would run earlier, and their results would be live meanwhile.
  std::vector<unsigned> byLast = sorted(groupUsers, places);
  for (unsigned group : llvm::reverse(byLast))
    for (unsigned user : groupUsers[group])
      places[group] = std::min(places[group], places[user]);
  std::vector<std::vector<Operation *>> result;
  for (unsigned group : sorted(groupUsers, places)) {
    std::vector<Operation *> members;
    for (unsigned op : groups[group].ops)
      members.push_back(ops[op]);
    result.push_back(std::move(members));
  }
  return result;
}
