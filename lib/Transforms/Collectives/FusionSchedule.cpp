//===- FusionSchedule.cpp - Join the collectives of a block ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//===----------------------------------------------------------------------===//

#include "FusionSchedule.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class BlockFuser {
public:
  BlockFuser(Block &block,
             llvm::function_ref<std::optional<JoinCandidate>(Operation *)> candidateOf,
             JoinBudget *budget)
      : block(block), budget(budget) {
    for (Operation &op : block.without_terminator()) {
      index[&op] = ops.size();
      ops.push_back(&op);
      items.push_back({{}, candidateOf(&op)});
    }
  }

  void run() {
    if (llvm::none_of(items, [](const JoinItem &item) { return item.candidate.has_value(); }))
      return;
    findProducers();
    apply(joinCollectives(std::move(items), budget));
  }

private:
  void findProducers() {
    std::optional<size_t> lastEffect;
    for (size_t i = 0; i < ops.size(); ++i) {
      auto dependOn = [&](size_t producer) {
        if (producer != i && !llvm::is_contained(items[i].producers, producer))
          items[i].producers.push_back(producer);
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

  void apply(const std::vector<SmallVector<size_t>> &order) {
    Operation *end = block.getTerminator();
    for (const SmallVector<size_t> &unit : order)
      for (size_t i : unit)
        ops[i]->moveBefore(end);
    for (const SmallVector<size_t> &unit : order)
      if (unit.size() > 1)
        join(unit);
  }

  /// Replaces a bucket of adjacent members by one op.
  void join(ArrayRef<size_t> unit) {
    Operation *last = ops[unit.back()];
    OpBuilder builder(last);
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Location> locations;
    llvm::SetVector<Attribute> reasons;
    // One attribute with the layouts of all members.
    const StringRef perMember[] = {"sources", "targets", "global_types"};
    SmallVector<Attribute> layouts[std::size(perMember)], shardings;
    for (size_t i : unit) {
      Operation *member = ops[i];
      llvm::append_range(operands, member->getOperands());
      llvm::append_range(types, member->getResultTypes());
      locations.push_back(member->getLoc());
      for (auto [list, name] : llvm::zip(layouts, perMember))
        llvm::append_range(list, member->getAttrOfType<ArrayAttr>(name));
      for (Value result : member->getResults())
        shardings.push_back(getSharding(result));
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
    Operation *joined = builder.create(state);
    setReasons(joined, reasons.getArrayRef());
    unsigned next = 0;
    for (size_t i : unit) {
      for (Value result : ops[i]->getResults())
        result.replaceAllUsesWith(joined->getResult(next++));
      ops[i]->erase();
    }
  }

  Block &block;
  JoinBudget *budget;
  std::vector<Operation *> ops;              ///< without the terminator
  llvm::DenseMap<Operation *, size_t> index; // looked up, never iterated
  std::vector<JoinItem> items;
};

} // namespace

void dist::fuseInBlock(Block &block,
                       llvm::function_ref<std::optional<JoinCandidate>(Operation *)> candidateOf,
                       JoinBudget *budget) {
  BlockFuser(block, candidateOf, budget).run();
}

void dist::setReasons(Operation *joined, ArrayRef<Attribute> reasons) {
  std::string why;
  for (Attribute reason : reasons)
    why += (why.empty() ? "" : "; ") + cast<StringAttr>(reason).str();
  if (!why.empty())
    joined->setAttr(DistDialect::kReason, StringAttr::get(joined->getContext(), why));
}
