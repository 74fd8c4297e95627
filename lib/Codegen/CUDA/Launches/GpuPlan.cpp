//===- GpuPlan.cpp - Plan the launches of a kernel ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuPlan.h"
#include "../GpuLimits.h"
#include "../GpuStages.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

void effectsOf(Operation *op, SmallVectorImpl<Value> &reads, SmallVectorImpl<Value> &writes) {
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      Value root = rootOf(operand.get());
      bool written = false;
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(inner))
        written = linalgOp.isDpsInit(&operand);
      else if (auto store = dyn_cast<memref::StoreOp>(inner))
        written = &operand == &store.getMemrefMutable();
      (written ? writes : reads).push_back(root);
      if (written)
        reads.push_back(root);
    }
  });
}

void GpuPlan::effects(SmallVectorImpl<Value> &reads, SmallVectorImpl<Value> &writes) const {
  for (Operation *op : ops)
    effectsOf(op, reads, writes);
  if (group)
    for (const GpuMember &member : group->members)
      effectsOf(member.op, reads, writes);
}

bool GpuPlan::any(function_ref<bool(Operation *)> is) const {
  return llvm::any_of(ops, is) ||
         (group &&
          llvm::any_of(group->members, [&](const GpuMember &member) { return is(member.op); }));
}

bool GpuPlan::conflicts(const GpuMember &member) const {
  if (group)
    return group->conflicts(member);
  SmallVector<Value> reads, writes;
  for (Operation *op : ops)
    effectsOf(op, reads, writes);
  for (const GpuAccess &access : member.accesses)
    if (!access.scalar && (llvm::is_contained(writes, access.root) ||
                           (access.output && llvm::is_contained(reads, access.root))))
      return true;
  return llvm::any_of(member.gathered,
                      [&](Value root) { return llvm::is_contained(writes, root); });
}

/// Prepends all members of the launch before `group` to it; returns false and leaves it unchanged
/// if one cannot join.
static bool joinBefore(GpuGroup &group, const GpuGroup &earlier) {
  if (!group.columns.empty() || !earlier.columns.empty())
    return false;
  GpuGroup trial = group;
  // Start with the last one: an earlier one may share loops with the group only through a later
  // one.
  for (GpuMember member : llvm::reverse(earlier.members)) {
    member.classOf.assign(member.extents.size(), -1);
    if (!trial.join(member) || !trial.columns.empty())
      return false;
    std::rotate(trial.members.rbegin(), trial.members.rbegin() + 1, trial.members.rend());
  }
  group = std::move(trial);
  return true;
}

namespace {

/// Assigns ops to launches, one after the other.
class Planner {
public:
  void plan(func::FuncOp kernel) {
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
        std::string why;
        FailureOr<GpuMember> member = GpuMember::get(generic, why);
        if (succeeded(member)) {
          member->classOf.assign(member->extents.size(), -1);
          if (member->isFill())
            fills.push_back(*member);
          else
            place(*member);
          continue;
        }
        placeFills([&](Value root) { return touches(&op, root); });
        GpuPlan alone;
        alone.ops.push_back(&op);
        alone.parallel = true;
        alone.reason = why;
        plans.push_back(std::move(alone));
        continue;
      }
      bool writes = op.walk([](Operation *inner) {
                        return isa<linalg::LinalgOp, memref::StoreOp>(inner)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      }).wasInterrupted();
      // Ops that only read are recomputed by their users.
      placeFills([&](Value root) { return touches(&op, root); });
      if (!writes)
        continue;
      bool nest = !independentLoops(&op).empty() || ownedDimension(&op);
      if (plans.empty() || nest || plans.back().group || plans.back().parallel || plans.back().nest)
        plans.emplace_back();
      plans.back().nest = nest;
      plans.back().ops.push_back(&op);
      plans.back().reason =
          op.getNumRegions() ? ("a loop of '" + op.getName().getStringRef() + "'").str() : "";
    }
    placeFills([](Value) { return true; });
    joinNeighbours();
    for (GpuPlan &plan : plans)
      if (plan.group)
        plan.group->spread();
  }

  std::vector<GpuPlan> plans;

private:
  static bool touches(Operation *op, Value root) {
    SmallVector<Value> reads, writes;
    effectsOf(op, reads, writes);
    return llvm::is_contained(reads, root) || llvm::is_contained(writes, root);
  }

  /// Adds a member to the last launch that accepts it, not before its dependences. Fills are
  /// delayed until a member needs them.
  void place(const GpuMember &member) {
    std::vector<GpuMember> needed, others;
    for (GpuMember &fill : fills) {
      Value root = fill.accesses.back().root;
      bool used = llvm::is_contained(member.gathered, root);
      for (const GpuAccess &access : member.accesses)
        used |= access.root == root;
      (used ? needed : others).push_back(std::move(fill));
    }
    fills = std::move(others);
    for (GpuPlan &earlier : llvm::reverse(plans)) {
      if (earlier.group && earlier.group->join(member, needed))
        return;
      if (earlier.conflicts(member) ||
          llvm::any_of(needed, [&](const GpuMember &fill) { return earlier.conflicts(fill); }))
        break;
    }
    std::vector<GpuMember> all = std::move(needed);
    all.push_back(member);
    for (const GpuMember &next : all) {
      if (!plans.empty() && &next != &all.front() && plans.back().group &&
          plans.back().group->join(next))
        continue;
      GpuPlan fresh;
      fresh.group.emplace(next);
      plans.push_back(std::move(fresh));
    }
  }

  /// Joins adjacent launches that have common loops only since a later op joined the second one.
  void joinNeighbours() {
    for (size_t i = plans.size(); i-- > 1;)
      if (plans[i].group && plans[i - 1].group && joinBefore(*plans[i].group, *plans[i - 1].group))
        plans.erase(plans.begin() + static_cast<ptrdiff_t>(i - 1));
  }

  /// Places the fills that an op without a group needs.
  void placeFills(llvm::function_ref<bool(Value)> needed) {
    std::vector<GpuMember> others;
    for (GpuMember &fill : fills) {
      if (!needed(fill.accesses.back().root)) {
        others.push_back(std::move(fill));
        continue;
      }
      GpuPlan fresh;
      fresh.group.emplace(std::move(fill));
      plans.push_back(std::move(fresh));
    }
    fills = std::move(others);
  }

  std::vector<GpuMember> fills; ///< not in a plan yet
};

} // namespace

std::vector<GpuPlan> planLaunches(func::FuncOp kernel) {
  Planner planner;
  planner.plan(kernel);
  return std::move(planner.plans);
}

} // namespace tessera::codegen
