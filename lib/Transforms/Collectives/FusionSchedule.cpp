//===- FusionSchedule.cpp - Which collectives of a block become one --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buckets are filled in program order. The level of an op in a group is the number
// of the first bucket that it may join: one beyond the newest bucket that it
// depends on. Buckets of several groups can still wait for each other in a circle,
//
//   a1 -> b1, b2 -> a2     with buckets {a1, a2} and {b1, b2}
//
// so the new order is found by a list schedule over buckets and ops. When nothing
// is ready, the first op that is left is ready but for the rest of its bucket,
// which then goes without the members that are not.
//
//===----------------------------------------------------------------------===//

#include "FusionSchedule.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#include <queue>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class BlockFuser {
public:
  BlockFuser(Block &block,
             llvm::function_ref<std::optional<FusionCandidate>(Operation *)> candidateOf)
      : block(block) {
    for (Operation &op : block.without_terminator()) {
      index[&op] = ops.size();
      ops.push_back(&op);
      candidates.push_back(candidateOf(&op));
      if (candidates.back())
        groups = std::max(groups, candidates.back()->group + 1);
    }
  }

  void run() {
    if (groups == 0)
      return;
    findProducers();
    fillBuckets();
    if (llvm::all_of(buckets, [](const Bucket &bucket) { return bucket.members.size() < 2; }))
      return;
    schedule();
    apply();
  }

private:
  /// Collectives that become one, by their places in the block, ascending.
  struct Bucket {
    SmallVector<size_t> members;
    int64_t bytes = 0;
    SmallVector<size_t> ready; ///< members whose operands are scheduled
  };

  void findProducers() {
    producers.resize(ops.size());
    consumers.resize(ops.size());
    std::optional<size_t> lastEffect;
    for (size_t i = 0; i < ops.size(); ++i) {
      auto dependOn = [&](size_t producer) {
        if (producer != i && !llvm::is_contained(producers[i], producer)) {
          producers[i].push_back(producer);
          consumers[producer].push_back(i);
        }
      };
      ops[i]->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *producer = operand.getDefiningOp())
            if (auto it = index.find(producer); it != index.end())
              dependOn(it->second);
      });
      if (!isMemoryEffectFree(ops[i])) { // these keep their order
        if (lastEffect)
          dependOn(*lastEffect);
        lastEffect = i;
      }
    }
  }

  void fillBuckets() {
    bucketOf.assign(ops.size(), kNone);
    std::vector<size_t> newest(groups, kNone); ///< bucket
    std::vector<int64_t> count(groups, 0);
    std::vector<int64_t> levels(ops.size() * groups, 0);
    for (size_t i = 0; i < ops.size(); ++i) {
      int64_t *own = &levels[i * groups];
      for (size_t producer : producers[i])
        for (int64_t g = 0; g < groups; ++g)
          own[g] = std::max(own[g], levels[producer * groups + g]);
      if (!candidates[i])
        continue;
      auto [group, bytes, limit] = *candidates[i];
      size_t into = newest[group];
      bool fits = into != kNone && own[group] < count[group] && bytes <= limit &&
                  buckets[into].bytes <= limit - bytes;
      if (!fits) {
        into = newest[group] = buckets.size();
        buckets.emplace_back();
        ++count[group];
      }
      buckets[into].members.push_back(i);
      buckets[into].bytes += bytes;
      bucketOf[i] = into;
      own[group] = count[group];
    }
  }

  /// Emits a bucket or an op at the place of its last member.
  void push(SmallVector<size_t> unit) {
    size_t place = unit.back();
    units[place] = std::move(unit);
    queue.push(place);
  }

  void becomesReady(size_t i) {
    if (bucketOf[i] == kNone)
      return push({i});
    Bucket &bucket = buckets[bucketOf[i]];
    bucket.ready.push_back(i);
    if (bucket.ready.size() == bucket.members.size())
      flush(bucket);
  }

  /// Schedules the members that are ready; the others stay.
  void flush(Bucket &bucket) {
    llvm::sort(bucket.ready);
    llvm::erase_if(bucket.members, [&](size_t i) {
      return std::binary_search(bucket.ready.begin(), bucket.ready.end(), i);
    });
    push(std::exchange(bucket.ready, {}));
  }

  void schedule() {
    units.resize(ops.size());
    std::vector<size_t> waiting(ops.size());
    std::vector<bool> done(ops.size());
    for (size_t i = 0; i < ops.size(); ++i)
      waiting[i] = producers[i].size();
    for (size_t i = 0; i < ops.size(); ++i)
      if (waiting[i] == 0)
        becomesReady(i);
    for (size_t first = 0;;) {
      while (!queue.empty()) {
        SmallVector<size_t> unit = std::move(units[queue.top()]);
        queue.pop();
        for (size_t i : unit)
          done[i] = true;
        for (size_t i : unit)
          for (size_t consumer : consumers[i])
            if (--waiting[consumer] == 0)
              becomesReady(consumer);
        order.push_back(std::move(unit));
      }
      while (first < ops.size() && done[first])
        ++first;
      if (first == ops.size())
        return;
      flush(buckets[bucketOf[first]]);
    }
  }

  void apply() {
    Operation *end = block.getTerminator();
    for (const SmallVector<size_t> &unit : order)
      for (size_t i : unit)
        ops[i]->moveBefore(end);
    for (const SmallVector<size_t> &unit : order)
      if (unit.size() > 1)
        join(unit);
  }

  /// One op for a bucket whose members stand next to each other.
  void join(ArrayRef<size_t> unit) {
    Operation *last = ops[unit.back()];
    OpBuilder builder(last);
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Location> locations;
    llvm::SetVector<Attribute> reasons;
    // Of each member's layouts, one attribute with those of all.
    const StringRef perMember[] = {"sources", "targets", "global_types"};
    SmallVector<Attribute> layouts[std::size(perMember)], shardings;
    for (size_t i : unit) {
      Operation *member = ops[i];
      operands.push_back(member->getOperand(0));
      types.push_back(member->getResult(0).getType());
      locations.push_back(member->getLoc());
      for (auto [list, name] : llvm::zip(layouts, perMember))
        list.push_back(member->getAttrOfType<ArrayAttr>(name)[0]);
      shardings.push_back(getSharding(member->getResult(0)));
      if (Attribute reason = member->getAttr(DistDialect::kReason))
        reasons.insert(reason);
    }
    OperationState state(builder.getFusedLoc(locations), last->getName().getStringRef(), operands,
                         types, {});
    for (NamedAttribute attribute : last->getAttrs())
      if (!isa_and_nonnull<DistDialect>(attribute.getNameDialect()))
        state.addAttribute(attribute.getName(), attribute.getValue());
    for (auto [list, name] : llvm::zip(layouts, perMember))
      state.attributes.set(name, builder.getArrayAttr(list));
    state.attributes.set(DistDialect::kShardings, builder.getArrayAttr(shardings));
    state.attributes.set(DistDialect::kGlobalType, builder.getArrayAttr(layouts[2]));
    std::string why;
    for (Attribute reason : reasons)
      why += (why.empty() ? "" : "; ") + cast<StringAttr>(reason).str();
    if (!why.empty())
      state.attributes.set(DistDialect::kReason, builder.getStringAttr(why));
    Operation *joined = builder.create(state);
    for (auto [i, result] : llvm::zip(unit, joined->getResults())) {
      ops[i]->getResult(0).replaceAllUsesWith(result);
      ops[i]->erase();
    }
  }

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  Block &block;
  std::vector<Operation *> ops;              ///< without the terminator
  llvm::DenseMap<Operation *, size_t> index; // looked up, never iterated
  std::vector<std::optional<FusionCandidate>> candidates;
  int64_t groups = 0;
  std::vector<SmallVector<size_t, 4>> producers, consumers; ///< by place
  std::vector<Bucket> buckets;
  std::vector<size_t> bucketOf;
  std::vector<SmallVector<size_t>> units; ///< ready ones, by the place of their last member
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> queue;
  std::vector<SmallVector<size_t>> order;
};

} // namespace

void dist::fuseInBlock(
    Block &block, llvm::function_ref<std::optional<FusionCandidate>(Operation *)> candidateOf) {
  BlockFuser(block, candidateOf).run();
}
