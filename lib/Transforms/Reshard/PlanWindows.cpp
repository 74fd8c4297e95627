//===- PlanWindows.cpp - Where windows are made ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window of a padded value is computed from a window of the pad's source; a window of
// a rearrangement from windows of its operands. Thus fill between or around elements is
// not sent: for a transposed convolution, only the rows are.
//
//   reshard(pad(x)) to W         pad(reshard(x) to W', filled), which has the windows W
//   reshard(rearrange(x)) to W   rearrange(reshard(x) to W'), which has the windows W
//
// A pad along a dimension that is cut reads a window, too, which the pad's element fills.
//
//===----------------------------------------------------------------------===//

#include "PlanWindows.h"
#include "ComputeWindows.h"
#include "WindowReshards.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Dialect/Dist/Rules/Windows.h"
#include "tessera/Sharding/Collective.h"
#include "tessera/Sharding/Selections.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

namespace {

class WindowPlanner : WindowReshards {
public:
  WindowPlanner(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings)
      : WindowReshards(meshes, shardings), function(function) {}

  void run() {
    function.walk([&](ShardingRuleOpInterface op) {
      if (getOpSharding(op))
        fillWindows(op);
    });
    SmallVector<ReshardOp> reshards;
    function.walk([&](ReshardOp op) { reshards.push_back(op); });
    // Readers first: once an op with windows is recomputed, the reshards of its operands are
    // unused.
    for (ReshardOp op : llvm::reverse(reshards))
      if (op->use_empty())
        op.erase();
      else
        makeOfWindows(op);
  }

private:
  /// Gives an op that needs filled windows its own reshards to them. Contributions that the op
  /// forwards are kept: reduced here, they would be counted twice.
  void fillWindows(ShardingRuleOpInterface op) {
    const ShardedOp &own = shardings.of(op);
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      if (!own.operands[index] || own.operands[index].getWindows().empty())
        continue;
      Attribute fill = op.getWindowFill(index);
      if (!fill || fillOf(operand.get()) == fill)
        continue;
      Value source = sourceOf(operand.get(), own.mesh);
      if (!source)
        source = operand.get();
      std::string reason = ("required by " + op->getName().getStringRef()).str();
      Builder builder(op->getContext());
      ReshardOp filled =
          reshard(op, op->getLoc(), source, own.mesh,
                  resolveVerified(own.operands[index], meshes, source.getType()), fill,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr(DistDialect::kReason, builder.getStringAttr(reason))}));
      copyPipelineMarks(op, filled);
      operand.set(filled);
    }
  }

  /// Whether `reader` alone uses a value, except for ops that are unused.
  static bool isReadOnlyBy(Operation *reader, Value value) {
    return llvm::all_of(value.getUsers(),
                        [&](Operation *user) { return user == reader || isOpTriviallyDead(user); });
  }

  /// An operand of an op that is computed anew, and its sharding there.
  struct Need {
    unsigned index;
    Value source;
    TensorSharding sharding;
    std::optional<TensorSharding> base; ///< what is moved, of which this is a local selection
  };

  /// Lets operands that select elements of one value along dimensions that are not cut move what
  /// they select from once, if that sends no more.
  void shareBases(MutableArrayRef<Need> needs, const sharding::Mesh &mesh) {
    for (Need &need : needs) {
      TensorSharding whole = sharding::withoutSelections(need.sharding);
      if (need.base || whole.windows.empty())
        continue;
      SmallVector<Need *> group;
      int64_t apart = 0;
      for (Need &other : needs)
        if (other.source == need.source && sharding::withoutSelections(other.sharding) == whole) {
          group.push_back(&other);
          apart += exchangedBytes(other.source, other.sharding, mesh);
        }
      if (group.size() > 1 && exchangedBytes(need.source, whole, mesh) <= apart)
        for (Need *member : group)
          member->base = whole;
    }
  }

  /// Whether windows of the operands of a rearrangement, moved from where the operands are, send
  /// less than its result, and operands that are moved for it alone.
  bool sendsLess(RearrangeOp op, ReshardOp reader, const TensorSharding &target,
                 ArrayRef<Need> needs, const sharding::Mesh &mesh) {
    int64_t through = 0, direct = exchangedBytes(op.getResult(), target, mesh);
    bool isForReader = isReadOnlyBy(reader, op.getResult());
    for (auto [index, need] : llvm::enumerate(needs)) {
      TensorSharding has = shardingOf(need.source);
      if (has.isPartial() || !has.windows.empty())
        return false;
      if (!need.base)
        through += exchangedBytes(need.source, need.sharding, mesh);
      else if (llvm::none_of(needs.take_front(index), [&](const Need &other) {
                 return other.source == need.source && other.base == need.base;
               }))
        through += exchangedBytes(need.source, *need.base, mesh);
      Value operand = op->getOperand(need.index);
      if (isForReader && need.source != operand)
        direct += exchangedBytes(need.source, shardingOf(operand), mesh);
    }
    return through < direct;
  }

  /// Replaces a reshard to windows by an op that computes them from windows of its operands, and
  /// continues with the reshards to those.
  void makeOfWindows(ReshardOp op) {
    Operation *made = op.getOperand().getDefiningOp();
    if (!getSharding(op.getOperand()) || !getSharding(op.getResult()))
      return; // not propagated, which dist-partition rejects
    TensorSharding target = shardingOf(op.getResult());
    if (target.windows.empty() || target.isPartial() || op->hasAttr(DistDialect::kMove) || !made ||
        !movesWindows(made))
      return;
    if (Attribute fill = op.getFillAttr(); fill && fillOf(op.getOperand()) != fill)
      return;
    auto isSlice = [&](const sharding::Window &window) { return target.dims[window.dim].empty(); };
    if (isa<tensor::PadOp>(made) && llvm::any_of(target.windows, isSlice))
      return; // a slice of the padded value is local
    FlatSymbolRefAttr meshName = op.getSharding().getMesh();
    if (made->getNumOperands() > 0 && getSharding(op.getOperand()).getMesh() != meshName)
      return;
    const sharding::Mesh &mesh = meshes.get(meshName);
    const sharding::ShardingRule &rule = shardings.of(made).rule;
    std::optional<sharding::OpSharding> own = opShardingFor(made, mesh, rule, target);
    if (!own)
      return;
    SmallVector<Need> needs;
    for (auto [index, operand] : llvm::enumerate(made->getOperands())) {
      Value source = sourceOf(operand, meshName);
      if (!source)
        return;
      needs.push_back(
          {static_cast<unsigned>(index), source, sharding::operandSharding(rule, index, *own), {}});
    }
    shareBases(needs, mesh);
    if (auto rearrange = dyn_cast<RearrangeOp>(made);
        rearrange && !sendsLess(rearrange, op, target, needs, mesh))
      return;

    Operation *copy = OpBuilder(op).clone(*made);
    for (StringRef mark : {kMicroBatch, kBackward})
      copy->removeAttr(mark);
    copyPipelineMarks(op, copy);
    setOpSharding(copy, meshName, mesh, *own);
    setSharding(copy->getResult(0), op.getSharding());
    SmallVector<ReshardOp> inner;
    SmallVector<std::pair<Value, Value>> bases; // by source
    for (const Need &need : needs) {
      Attribute fill = cast<ShardingRuleOpInterface>(made).getWindowFill(need.index);
      // Along dimensions that it does not rearrange, a rearrangement is filled where its operand
      // is.
      if (!fill && !need.sharding.windows.empty())
        fill = op.getFillAttr();
      Value operand = need.source;
      if (need.base && need.base != shardingOf(operand)) {
        auto *known = llvm::find_if(bases, [&](auto &base) {
          return base.first == need.source && shardingOf(base.second) == *need.base;
        });
        if (known == bases.end()) {
          inner.push_back(reshard(copy, op.getLoc(), operand, meshName, *need.base, fill,
                                  op->getDiscardableAttrDictionary()));
          bases.push_back({need.source, inner.back()});
          known = &bases.back();
        }
        operand = known->second;
      }
      if (need.sharding != shardingOf(operand) || (fill && fillOf(operand) != fill)) {
        inner.push_back(reshard(copy, op.getLoc(), operand, meshName, need.sharding,
                                need.sharding.windows.empty() ? Attribute() : fill,
                                op->getDiscardableAttrDictionary()));
        operand = inner.back();
      }
      copy->setOperand(need.index, operand);
    }
    op.getResult().replaceAllUsesWith(copy->getResult(0));
    op.erase();
    if (isOpTriviallyDead(made))
      made->erase();
    for (ReshardOp next : inner)
      makeOfWindows(next);
  }

  func::FuncOp function;
};

} // namespace

void dist::planWindows(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings) {
  WindowPlanner(function, meshes, shardings).run();
  computeWindows(function, meshes, shardings);
}
