//===- StageGraph.cpp - Stages and micro-batches of a program -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageGraph.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "mlir/Transforms/RegionUtils.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::pipeline;

LogicalResult StageGraph::read(ArrayRef<func::FuncOp> functions) {
  parts.assign(functions.begin(), functions.end());
  shape.hasBackward = false;
  if (failed(sortOps()))
    return failure();
  findLeading();
  followSources();
  joinReaders();
  if (failed(findLevels()) || failed(checkChain()))
    return failure();
  sortIntoSegments();
  return success();
}

StringRef StageGraph::meshOf(size_t part) {
  auto mesh = parts[part]->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh);
  return mesh ? mesh.getValue() : parts[part].getName();
}

void StageGraph::visit(Operation *op, size_t part) {
  Node &node = nodes[op];
  node.part = part;
  SetVector<Value> read(op->getOperands().begin(), op->getOperands().end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  for (Value value : read)
    if (Operation *source = value.getDefiningOp())
      node.sources.push_back(source);
  if (auto mark = op->getAttrOfType<IntegerAttr>(kMicroBatch)) {
    node.microBatch = mark.getInt();
    node.isMarked = true;
    shape.microBatches = std::max(shape.microBatches, mark.getInt() + 1);
  }
  node.isBackward = op->hasAttr(kBackward);
  if (auto send = dyn_cast<SendOp>(op))
    sends[send.getId()] = op;
  if (auto recv = dyn_cast<RecvOp>(op))
    node.sources.push_back(sends.at(recv.getId()));
  ops.push_back(op);
}

/// Lists the ops of all parts, receives after their sends.
LogicalResult StageGraph::sortOps() {
  shape.microBatches = 1;
  std::vector<Block::iterator> next;
  for (func::FuncOp function : parts)
    next.push_back(function.getBody().front().begin());
  for (bool progressed = true; std::exchange(progressed, false);)
    for (auto [part, function] : llvm::enumerate(parts))
      for (Operation *end = function.getBody().front().getTerminator(); &*next[part] != end;) {
        auto recv = dyn_cast<RecvOp>(*next[part]);
        if (recv && !sends.count(recv.getId()))
          break;
        visit(&*next[part]++, part);
        progressed = true;
      }
  for (auto [part, function] : llvm::enumerate(parts))
    if (auto recv = dyn_cast<RecvOp>(*next[part]))
      return recv.emitError() << "mesh '" << meshOf(part) << "' waits for transfer " << recv.getId()
                              << ", which depends on a later send of mesh '" << meshOf(part)
                              << "': a cycle between stages; let each stage send a value before it "
                                 "receives values computed from it";
  return success();
}

/// Ops that lead to a marked op are not part of the update.
void StageGraph::findLeading() {
  for (Operation *op : llvm::reverse(ops)) {
    const Node node = at(op);
    if (node.isMarked || node.leadsToMarked)
      for (Operation *source : node.sources)
        at(source).leadsToMarked = true;
  }
}

void StageGraph::followSources() {
  int64_t update = shape.microBatches;
  for (Operation *op : ops) {
    Node &node = at(op);
    if (!node.isMarked) {
      for (Operation *source : node.sources)
        node.microBatch = std::max(node.microBatch, at(source).microBatch);
      if (node.microBatch == update - 1 && !node.leadsToMarked)
        node.microBatch = update;
    }
    for (Operation *source : node.sources)
      if (const Node &from = at(source); from.microBatch == node.microBatch) {
        node.isBackward |= from.isBackward;
        node.level = std::max(node.level, from.level + (isa<RecvOp>(op) ? 1 : 0));
      }
    if (node.microBatch >= 0 && node.microBatch < update && !node.isBackward)
      lastForward = std::max(lastForward, node.level);
  }
}

/// Takes the level of the first reader in the same part and micro-batch, if any.
void StageGraph::followReaders(Node &node, ArrayRef<Operation *> readers) {
  std::optional<int64_t> level;
  bool isBackward = true;
  for (Operation *reader : readers)
    if (const Node &other = at(reader);
        other.part == node.part && other.microBatch == node.microBatch) {
      level = std::min(level.value_or(other.level), other.level);
      isBackward &= other.isBackward;
    }
  if (!level)
    return;
  node.level = *level;
  node.isBackward = isBackward;
}

/// An unmarked op with readers in a single micro-batch belongs to it. Ops that read nothing of
/// their micro-batch, and ops whose only readers are derivatives that read nothing else of the
/// forward pass, have the levels of their readers.
void StageGraph::joinReaders() {
  llvm::DenseMap<Operation *, SmallVector<Operation *>> readers; // looked up, never iterated
  for (Operation *op : ops)
    for (Operation *source : at(op).sources)
      readers[source].push_back(op);
  for (Operation *op : llvm::reverse(ops)) {
    Node &node = at(op);
    auto all = readers.find(op);
    if (all == readers.end() || isa<SendOp, RecvOp>(op))
      continue;
    if (node.microBatch < 0) {
      int64_t first = at(all->second.front()).microBatch;
      if (llvm::all_of(all->second, [&](Operation *each) { return at(each).microBatch == first; }))
        node.microBatch = first;
    }
    bool readsOwn = llvm::any_of(
        node.sources, [&](Operation *each) { return at(each).microBatch == node.microBatch; });
    if (node.microBatch >= 0 && (!readsOwn || (node.isBackward && node.level <= lastForward)))
      followReaders(node, all->second);
  }
}

/// Levels at which a part works: those of its sends, and its last. Ops between belong to the next
/// of these levels: a value received early waits for its reader.
LogicalResult StageGraph::findLevels() {
  std::vector<std::set<int64_t>> found(parts.size());
  std::vector<int64_t> last(parts.size(), -1);
  for (Operation *op : ops) {
    const Node &node = at(op);
    if (node.microBatch < 0 || node.microBatch == shape.microBatches)
      continue;
    last[node.part] = std::max(last[node.part], node.level);
    if (isa<SendOp>(op))
      found[node.part].insert(node.level);
    shape.hasBackward |= node.isBackward;
  }
  for (size_t part = 0; part < parts.size(); ++part) {
    if (last[part] >= 0)
      found[part].insert(last[part]);
    levels.emplace_back(found[part].begin(), found[part].end());
  }
  for (Operation *op : ops) {
    Node &node = at(op);
    if (node.microBatch >= 0 && node.microBatch < shape.microBatches)
      node.level = *llvm::lower_bound(levels[node.part], node.level);
  }
  return success();
}

Operation *StageGraph::firstAt(size_t part, int64_t level) const {
  for (Operation *op : ops)
    if (const Node &node = nodes.find(op)->second;
        node.part == part && node.level == level && node.microBatch == 0)
      return op;
  return parts[part];
}

/// Forward passes visit the meshes in order, backward passes in reverse.
LogicalResult StageGraph::checkChain() {
  std::map<int64_t, size_t> owner;
  for (size_t part = 0; part < parts.size(); ++part)
    for (int64_t level : levels[part]) {
      auto [it, isNew] = owner.try_emplace(level, part);
      if (!isNew)
        return firstAt(part, level)->emitError()
               << "meshes '" << meshOf(it->second) << "' and '" << meshOf(part)
               << "' are both stage " << std::min(level, 2 * lastForward - level)
               << " of the pipeline; stages must form a chain, reshard from each mesh to the next";
    }
  for (int64_t level = 0; level <= lastForward; ++level)
    if (auto it = owner.find(level); it != owner.end() && !llvm::is_contained(chain, it->second))
      chain.push_back(it->second);
  int64_t count = std::ssize(chain), all = lastForward + 1;
  shape.meshes = std::max<int64_t>(1, count);
  shape.chunks = all / shape.meshes;
  for (auto [level, part] : owner) {
    int64_t stage = level <= lastForward ? level : 2 * lastForward - level;
    bool isCut = level == lastForward && all % count != 0;
    if (stage >= 0 && part == chain[stage % count] && !isCut)
      continue;
    return firstAt(part, level)->emitError()
           << "a micro-batch comes to mesh '" << meshOf(part) << "' as its stage " << stage
           << " of " << all << ", a cycle between stages; it visits its " << count
           << (count == 1 ? " mesh" : " meshes")
           << " in turn, each equally often, and back in reverse order; move the layers "
              "accordingly";
  }
  return success();
}

void StageGraph::sortIntoSegments() {
  std::map<size_t, int64_t> placeOf;
  for (auto [place, part] : llvm::enumerate(chain)) {
    placeOf[part] = static_cast<int64_t>(place);
    stages.push_back({parts[part], {}, {}, {}});
  }
  // The ops of a backward pass that lead to its sends; all if it sends nothing.
  llvm::DenseMap<Operation *, bool> leads; // looked up, never iterated
  std::set<std::tuple<size_t, int64_t, int64_t>> sending;
  auto segmentOf = [&](const Node &node) {
    bool isForward = node.level <= lastForward && !node.isBackward;
    int64_t stage = node.level <= lastForward ? node.level : 2 * lastForward - node.level;
    return std::pair(isForward ? Pass::forward : Pass::backward, stage);
  };
  for (Operation *op : llvm::reverse(ops)) {
    const Node &node = at(op);
    auto [pass, stage] = segmentOf(node);
    if (isa<SendOp>(op) && pass == Pass::backward) {
      leads[op] = true;
      sending.insert({node.part, node.microBatch, stage});
    }
    if (!leads.lookup(op))
      continue;
    for (Operation *source : node.sources)
      if (const Node &from = at(source); from.part == node.part &&
                                         from.microBatch == node.microBatch &&
                                         segmentOf(from) == std::pair(pass, stage))
        leads[source] = true;
  }
  for (Operation *op : ops) {
    const Node &node = at(op);
    auto place = placeOf.find(node.part);
    if (place == placeOf.end())
      continue;
    StageOps &stageOps = stages[place->second];
    if (node.microBatch < 0) {
      stageOps.head.push_back(op);
    } else if (node.microBatch == shape.microBatches) {
      stageOps.update.push_back(op);
    } else {
      auto [pass, stage] = segmentOf(node);
      if (pass == Pass::backward && !leads.lookup(op) &&
          sending.count({node.part, node.microBatch, stage}))
        pass = Pass::weight;
      stageOps.segments[{pass, node.microBatch, stage / shape.meshes}].push_back(op);
    }
  }
}
