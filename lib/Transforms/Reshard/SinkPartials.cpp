//===- SinkPartials.cpp - Defer reductions of partial sums ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reduction of an op's contributions may be deferred past every op that
// forwards them (Rules.h, passesPartial). A minimum cut per mesh axis places the
// reductions: a value on the source's side stays partial, one on the sink's side is
// whole.
//
//   source --oo--> partial results of the op itself
//   value --bytes of a reduce-scatter--> its scattered copy
//   value --bytes of the gather behind it--> its whole copy
//   scattered copy --oo--> whole copy: what is whole was scattered before
//   whole copy --oo--> users that contributions may pass
//   copy --oo--> sink, for a use that needs the copy
//
// So an all-reduce costs both edges, and a reduce-scatter for users that cut the value over the
// axis one.
//
// A loop carry is one value with two reduced copies: one in the body, with its cost per iteration,
// and one after the loop. So gradients that a loop accumulates are reduced once, also where the
// carry is cut over the axis: it and the additions to it become whole contributions. That takes the
// memory of a whole gradient, so a memory budget keeps such cuts.
//
//===----------------------------------------------------------------------===//

#include "ScatterPartials.h"
#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Solver/MinimumCut.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <set>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTSINKPARTIALS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::AxisRef;
using sharding::PartialAxis;
using sharding::TensorSharding;
using solver::Capacity;
using solver::MinimumCut;

namespace {

/// The reduced value: scattered as its users need it, and whole.
struct Copies {
  int64_t scattered = -1, whole = -1; ///< nodes of the cut
};

/// A value that may be partial: the only result of an op, or the carry of a loop.
struct Candidate {
  Value value;                           ///< an op's result, or a loop's for a carry
  BlockArgument carried = {};            ///< the carry in the body, else null
  bool native = false;                   ///< the op itself produces contributions
  bool isCut = false;                    ///< over the axis, unless it becomes partial
  SmallVector<OpOperand *> through = {}; ///< operands that must be partial
  int64_t node = -1;                     ///< of the cut
  Copies behind = {};                    ///< for users of `value`
  Copies inside = {};                    ///< for users of `carried`
};

/// Moves the reductions over one axis of one mesh.
class Sinking {
public:
  Sinking(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
          FlatSymbolRefAttr mesh, PartialAxis partial, bool keepsCuts)
      : function(function), meshes(meshes), shardings(shardings), mesh(mesh), partial(partial),
        keepsCuts(keepsCuts) {}

  void run() {
    collect();
    if (llvm::none_of(candidates, [](const Candidate &c) { return !c.native; }))
      return; // no op past which to defer a reduction
    solve();
    if (findReducingLoops())
      solve();
    apply();
  }

private:
  TensorSharding shardingOf(Value value) const {
    ShardingAttr attr = getSharding(value);
    return attr ? resolveVerified(attr, meshes, value.getType())
                : TensorSharding::replicated(cast<RankedTensorType>(value.getType()).getRank());
  }

  bool isPartialOver(const TensorSharding &sharding) const {
    return llvm::any_of(sharding.partial, [&](const PartialAxis &other) {
      return other.kind == partial.kind && other.axis.contains(partial.axis);
    });
  }

  bool isHere(Value value) const {
    ShardingAttr attr =
        isa<RankedTensorType>(value.getType()) ? getSharding(value) : ShardingAttr();
    return attr && attr.getMesh() == mesh;
  }

  const Candidate *candidateOf(Value value) const {
    auto it = index.find(value);
    return it == index.end() ? nullptr : &candidates[it->second];
  }

  void add(Candidate candidate) {
    index[candidate.value] = candidates.size();
    if (candidate.carried)
      index[candidate.carried] = candidates.size();
    candidates.push_back(std::move(candidate));
  }

  /// Values that are partial over the axis, or would be if others were. Optimistic for carries:
  /// they are removed if the value that an iteration yields cannot be partial.
  void collect() {
    llvm::DenseSet<Value> whole;
    for (bool stable = false; !stable;) {
      candidates.clear();
      index.clear();
      function.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (op == function || isa<linalg::LinalgOp>(op->getParentOp()))
          return;
        if (auto loop = dyn_cast<scf::ForOp>(op))
          collectCarries(loop, whole);
        else if (op->getNumResults() == 1 && isHere(op->getResult(0)))
          collectResult(op);
      });
      stable = true;
      for (const Candidate &candidate : candidates)
        if (candidate.carried && !candidate.native && !candidateOf(candidate.through[1]->get())) {
          whole.insert(candidate.value);
          stable = false;
        }
    }
  }

  /// Whether a value that is not partial over the axis can become so.
  bool mayBecomePartial(const TensorSharding &own) const {
    return own.isFree(partial.axis) && own.windows.empty() &&
           llvm::all_of(own.partial,
                        [&](const PartialAxis &other) { return other.kind == partial.kind; });
  }

  /// Removes the axis, or parts of it, from axes that cut a dimension or a loop.
  void eraseFrom(sharding::AxisList &axes) const {
    llvm::erase_if(axes, [&](const sharding::AxisRef &cut) { return partial.axis.contains(cut); });
  }

  /// Whether a sharding cuts dimensions over the axis, or parts of it, and could be partial instead.
  bool mayLoseCut(const TensorSharding &own) const {
    TensorSharding without = withoutCut(own);
    return without != own && mayBecomePartial(without);
  }

  TensorSharding withoutCut(TensorSharding own) const {
    for (sharding::AxisList &axes : own.dims)
      eraseFrom(axes);
    return own;
  }

  /// Whether an addition in a loop, or a move of what is added, may be computed whole: what it
  /// reads are contributions already.
  bool mayAddWhole(Operation *op, const Candidate &candidate) const {
    auto linalg = dyn_cast<linalg::LinalgOp>(op);
    if ((linalg && linalg.getNumReductionLoops() > 0) || !op->getParentOfType<scf::ForOp>() ||
        !passesAllOperands(op))
      return false;
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return !isa<RankedTensorType>(operand.get().getType()) ||
             (destination && destination.isDpsInit(&operand)) ||
             (llvm::is_contained(candidate.through, &operand) && candidateOf(operand.get()));
    });
  }

  static bool isZeros(Value value) {
    return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()) ||
           (value.getDefiningOp<linalg::FillOp>() &&
            matchPattern(value.getDefiningOp<linalg::FillOp>().getInputs()[0], m_AnyZeroFloat()));
  }

  void collectCarries(scf::ForOp loop, const llvm::DenseSet<Value> &whole) {
    for (auto [i, result] : llvm::enumerate(loop.getResults())) {
      if (!isHere(result) || whole.contains(result))
        continue;
      TensorSharding own = shardingOf(result);
      Candidate candidate{result, loop.getRegionIterArg(i)};
      candidate.native = isPartialOver(own);
      candidate.through = {&loop.getInitArgsMutable()[i],
                           &loop.getYieldedValuesMutable()->front() + i};
      candidate.isCut = !keepsCuts && mayLoseCut(own) && isZeros(candidate.through[0]->get());
      if (candidate.native || candidate.isCut || mayBecomePartial(own))
        add(std::move(candidate));
    }
  }

  void collectResult(Operation *op) {
    Candidate candidate{op->getResult(0)};
    TensorSharding own = shardingOf(candidate.value);
    candidate.native = isPartialOver(own);
    if (!candidate.native) {
      candidate.isCut = !keepsCuts && mayLoseCut(own);
      if (isa<ShardTensorOp, ReshardOp>(op) || op->getNumRegions() > 1 ||
          !(candidate.isCut || mayBecomePartial(own)))
        return;
      SmallVector<int64_t> bringing;
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (candidateOf(operand))
          bringing.push_back(i);
      if (bringing.empty())
        return;
      for (sharding::AxisList axes : shardings.of(op).sharding.factors) {
        if (candidate.isCut)
          eraseFrom(axes);
        if (sharding::overlapsAny(axes, partial.axis))
          return;
      }
      for (int64_t i : operandsToPass(op, partial.kind, preferred(op, bringing)))
        candidate.through.push_back(&op->getOpOperand(i));
      if (candidate.through.empty() || (candidate.isCut && !mayAddWhole(op, candidate)))
        return;
    }
    add(std::move(candidate));
  }

  /// Among several operands that may be partial, those without other users that need them whole:
  /// only one factor of a product can be partial, and a value that is reduced anyway saves nothing.
  SmallVector<int64_t> preferred(Operation *op, ArrayRef<int64_t> bringing) {
    SmallVector<int64_t> unreduced;
    for (int64_t i : bringing)
      if (llvm::all_of(op->getOperand(i).getUses(),
                       [&](OpOperand &use) { return use.getOwner() == op || mayPass(use); }))
        unreduced.push_back(i);
    bool decides = !unreduced.empty() && !operandsToPass(op, partial.kind, unreduced).empty();
    return decides ? unreduced : llvm::to_vector(bringing);
  }

  /// Whether an op may forward contributions of this operand.
  bool mayPass(OpOperand &use) {
    Operation *user = use.getOwner();
    if (user->getNumResults() != 1 || user->getNumRegions() > 1 || !isHere(user->getResult(0)) ||
        isa<ShardTensorOp, ReshardOp>(user))
      return false;
    TensorSharding own = shardingOf(user->getResult(0));
    for (const sharding::AxisList &axes : shardings.of(user).sharding.factors)
      if (sharding::overlapsAny(axes, partial.axis))
        return false;
    auto index = static_cast<int64_t>(use.getOperandNumber());
    return (isPartialOver(own) || mayBecomePartial(own)) &&
           !operandsToPass(user, partial.kind, {index}).empty();
  }

  /// The sharding that a use needs, or null if it accepts any.
  ShardingAttr wantedBy(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto constraint = dyn_cast<ShardTensorOp>(user))
      return constraint.getSharding();
    if (auto reshard = dyn_cast<ReshardOp>(user))
      return reshard.getSharding();
    if (auto ret = dyn_cast<func::ReturnOp>(user))
      return function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(),
                                                        DistDialect::kSharding);
    // Operands of control flow have the sharding of the values that they become; that is whole here
    // (partial carries were decided before).
    if (isControlFlow(user) || isControlFlowEnd(user)) {
      SmallVector<Value, 2> receivers = receiversOf(use);
      bool isOurs = !receivers.empty() && getSharding(use.get()).getMesh() == mesh;
      return isOurs ? getSharding(receivers.front()) : ShardingAttr();
    }
    return shardings.of(user).operands[use.getOperandNumber()];
  }

  void solve() {
    cut = MinimumCut();
    for (Candidate &candidate : candidates) {
      candidate.node = cut.addNode();
      candidate.behind = {cut.addNode(), cut.addNode()};
      if (candidate.carried)
        candidate.inside = {cut.addNode(), cut.addNode()};
    }
    for (const Candidate &candidate : candidates)
      addEdges(candidate);
    cut.solve();
  }

  /// Finds loops that reduce a value over the axis in every iteration anyway: further reductions
  /// there join it. Returns whether there are any.
  bool findReducingLoops() {
    auto note = [&](Block *block, const Candidate &candidate, const Copies &copies) {
      if (cut.onSourceSide(candidate.node) && !cut.onSourceSide(copies.scattered) &&
          isa<LoopLikeOpInterface>(block->getParentOp()))
        reducing.insert(block);
    };
    for (const Candidate &candidate : candidates) {
      note(candidate.value.getDefiningOp()->getBlock(), candidate, candidate.behind);
      if (candidate.carried)
        note(candidate.carried.getOwner(), candidate, candidate.inside);
    }
    return !reducing.empty();
  }

  void addEdges(const Candidate &candidate) {
    if (candidate.native)
      cut.addEdge(MinimumCut::kSource, candidate.node, MinimumCut::kInfinite);
    if (candidate.isCut) // what is added is whole only if it is partial
      for (OpOperand *operand : candidate.through)
        if (const Candidate *added = candidateOf(operand->get()))
          cut.addEdge(candidate.node, added->node, MinimumCut::kInfinite);
    addCopies(candidate, candidate.value, candidate.behind,
              candidate.value.getDefiningOp()->getBlock());
    if (candidate.carried)
      addCopies(candidate, candidate.carried, candidate.inside, candidate.carried.getOwner());
  }

  /// Adds the reductions, in a block, for the users of one name of a candidate.
  void addCopies(const Candidate &candidate, Value name, const Copies &copies, Block *block) {
    // The gather after a reduce-scatter sends the same number of bytes. Plus one, so that plans
    // with equal bytes prefer fewer reductions.
    Capacity half =
        bytesOfHalf(cast<RankedTensorType>(name.getType()), shardingOf(name), partial.axis.size);
    Capacity trips = boundedTrips(block);
    half = half * trips + (reducing.contains(block) ? 0 : trips);
    cut.addEdge(candidate.node, copies.scattered, half);
    cut.addEdge(candidate.node, copies.whole, half);
    cut.addEdge(copies.scattered, copies.whole, MinimumCut::kInfinite);
    for (OpOperand &use : name.getUses())
      addUse(copies, use);
  }

  /// The candidate that would be partial if this use were, or null.
  const Candidate *passedTo(OpOperand &use) const {
    Operation *user = use.getOwner();
    const Candidate *target = nullptr;
    if (SmallVector<Value, 2> receivers = receiversOf(use); !receivers.empty())
      target = candidateOf(receivers.front());
    else if (user->getNumResults() == 1)
      target = candidateOf(user->getResult(0));
    return target && llvm::is_contained(target->through, &use) ? target : nullptr;
  }

  /// Whether a use is an open result that may be cut over the axis.
  bool mayScatter(OpOperand &use, const TensorSharding &target) {
    auto type = cast<RankedTensorType>(use.get().getType());
    return isa<func::ReturnOp>(use.getOwner()) &&
           !function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(),
                                                      DistDialect::kFeeds) &&
           llvm::any_of(target.open,
                        [&](const AxisRef &open) { return open.contains(partial.axis); }) &&
           dimToScatter(shardingOf(use.get()).withoutPartial(), type.getShape(), partial.axis.size);
  }

  void addUse(const Copies &copies, OpOperand &use) {
    if (const Candidate *target = passedTo(use))
      return cut.addEdge(target->isCut ? copies.scattered : copies.whole, target->node,
                         MinimumCut::kInfinite);
    ShardingAttr wanted = wantedBy(use);
    if (!wanted)
      return;
    TensorSharding target = resolveVerified(wanted, meshes, use.get().getType());
    if (wanted.getMesh() == mesh && isPartialOver(target))
      return;
    bool scattered =
        wanted.getMesh() == mesh &&
        (mayScatter(use, target) || llvm::any_of(target.dims, [&](const sharding::AxisList &axes) {
           return sharding::overlapsAny(axes, partial.axis);
         }));
    cut.addEdge(scattered ? copies.scattered : copies.whole, MinimumCut::kSink,
                MinimumCut::kInfinite);
  }

  /// Makes values on the source's side partial if their operands are.
  void apply() {
    std::vector<bool> becomes(candidates.size());
    for (bool changed = true; std::exchange(changed, false);)
      for (auto [i, candidate] : llvm::enumerate(candidates)) {
        if (becomes[i] || !(candidate.native || cut.onSourceSide(candidate.node)))
          continue;
        bool made = candidate.native || llvm::any_of(candidate.through, [&](OpOperand *operand) {
                      auto it = index.find(operand->get());
                      return it != index.end() && becomes[it->second];
                    });
        becomes[i] = made;
        changed |= made;
      }
    for (auto [i, candidate] : llvm::enumerate(candidates)) {
      if (candidate.native || !becomes[i])
        continue;
      TensorSharding own = shardingOf(candidate.value);
      if (candidate.isCut)
        own = withoutCut(std::move(own));
      own.partial.push_back(partial);
      setSharding(candidate.value,
                  ShardingAttr::get(mesh, meshes.get(mesh), sharding::canonical(own),
                                    function.getContext()));
      if (!candidate.carried)
        forward(candidate);
    }
  }

  /// Lets the op forward contributions over the axis.
  void forward(const Candidate &candidate) {
    Operation *op = candidate.value.getDefiningOp();
    sharding::OpSharding sharding = shardings.of(op).sharding;
    if (candidate.isCut)
      for (sharding::AxisList &axes : sharding.factors)
        eraseFrom(axes);
    sharding::Forward forward{partial, {}};
    for (OpOperand *operand : candidate.through)
      forward.operands.push_back(operand->getOperandNumber());
    sharding.forwards.push_back(std::move(forward));
    setOpSharding(op, mesh, meshes.get(mesh), sharding);
  }

  func::FuncOp function;
  const MeshTable &meshes;
  OpShardings &shardings;
  FlatSymbolRefAttr mesh;
  PartialAxis partial;
  bool keepsCuts;                      ///< of values that are cut over the axis
  std::vector<Candidate> candidates;   // in program order
  llvm::DenseMap<Value, size_t> index; // looked up, never iterated
  llvm::DenseSet<Block *> reducing;    // looked up, never iterated
  MinimumCut cut;
};

struct DistSinkPartials : dist::impl::DistSinkPartialsBase<DistSinkPartials> {
  using Base::Base;

  void runOnOperation() override {
    MeshTable meshes(getOperation());
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), objective, topology);
    if (failed(cost))
      return signalPassFailure();
    OpShardings shardings(meshes);
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        sink(function, meshes, shardings, *cost);
  }

  void sink(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
            const CostOptions &cost) {
    std::set<MeshPartial> each; // axis, in a fixed order
    for (const MeshPartial &all : partialIn(function, meshes))
      for (const PartialAxis &partial : all.second)
        each.insert({all.first, {partial}});
    if (each.empty())
      return;
    auto meshOf = [&](const std::string &name) {
      return FlatSymbolRefAttr::get(function.getContext(), name);
    };
    for (const auto &[mesh, partial] : each)
      Sinking(function, meshes, shardings, meshOf(mesh), partial.front(), keepCuts).run();
    OpCosts costs(function, cost.topology);
    UpdateDivision division = !divideUpdates ? UpdateDivision::none
                              : keepCuts     ? UpdateDivision::savesMemory
                                             : UpdateDivision::savesTime;
    for (const auto &[mesh, partial] : partialIn(function, meshes))
      scatterPartials(function, meshes, shardings, meshOf(mesh), partial, costs, cost, division);
  }

  /// The name of a mesh and axes over which an op has contributions.
  using MeshPartial = std::pair<std::string, std::vector<PartialAxis>>;

  static std::set<MeshPartial> partialIn(func::FuncOp function, const MeshTable &meshes) {
    std::set<MeshPartial> found;
    function.walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (isa<RankedTensorType>(value.getType()))
          if (ShardingAttr attr = getSharding(value))
            if (auto own = resolveVerified(attr, meshes, value.getType()); own.isPartial())
              found.insert({attr.getMesh().getValue().str(), own.partial});
    });
    return found;
  }
};

} // namespace
