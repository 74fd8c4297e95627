//===- SinkPartials.cpp - Reduce later, and less ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an op leaves contributions, their reduction may wait behind every op
// that they pass through (Rules.h, passesPartial). Where to reduce is a minimum
// cut, one for each mesh axis: a value on the source's side is left partial,
// one on the sink's side is whole.
//
//   source --oo--> what the op itself leaves partial
//   value --bytes of its reduction--> its reduced copy --oo--> users that stay whole
//   reduced copy --oo--> sink, for a use that contributions cannot pass
//
// Between a scattered copy (a reduce-scatter, for users that cut the value by the
// axis) and a whole one lies an edge of its own, with the bytes of the gather.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/MinimumCut.h"
#include "tessera/Transforms/OpShardings.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTSINKPARTIALS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::AxisRef;
using sharding::MinimumCut;
using sharding::PartialAxis;
using sharding::TensorSharding;

/// How often the block of an op runs, as far as that is known.
static int64_t tripsOf(Operation *op) {
  int64_t trips = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (std::optional<llvm::APInt> count = loop.getStaticTripCount())
      if (count->getActiveBits() < 24 && trips < (int64_t(1) << 24))
        trips *= std::max<int64_t>(1, count->getSExtValue());
  return trips;
}

namespace {

/// One op with one tensor result, as far as partial values concern it.
struct Candidate {
  Operation *op = nullptr;
  bool native = false;                           ///< leaves the result partial itself
  SmallVector<int64_t> through;                  ///< operands that would be contributions
  int64_t node = -1, scattered = -1, whole = -1; ///< nodes of the cut
};

/// Moves the reductions over one axis of one mesh.
class Sinking {
public:
  Sinking(func::FuncOp function, const MeshTable &meshes, FlatSymbolRefAttr mesh,
          PartialAxis partial)
      : function(function), meshes(meshes), mesh(mesh), partial(partial) {}

  void run() {
    collect();
    if (llvm::none_of(candidates, [](const Candidate &c) { return !c.native; }))
      return; // nothing that a reduction could wait for
    for (Candidate &candidate : candidates) {
      candidate.node = cut.addNode();
      candidate.scattered = cut.addNode();
      candidate.whole = cut.addNode();
    }
    for (const Candidate &candidate : candidates)
      addEdges(candidate);
    cut.solve();
    apply();
  }

private:
  TensorSharding lies(Value value) const {
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
    auto it = candidateOfOp.find(value.getDefiningOp());
    return value.getDefiningOp() && it != candidateOfOp.end() ? &candidates[it->second] : nullptr;
  }

  /// Values that are partial over the axis, or would be if their operands were.
  void collect() {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function || isa<linalg::LinalgOp>(op->getParentOp()) || op->getNumResults() != 1 ||
          !isHere(op->getResult(0)))
        return;
      Candidate candidate;
      candidate.op = op;
      TensorSharding own = lies(op->getResult(0));
      if (isPartialOver(own)) {
        candidate.native = true;
      } else {
        if (isa<ShardTensorOp, ReshardOp>(op) || op->getNumRegions() > 1 || isa<scf::ForOp>(op) ||
            !own.isFree(partial.axis) || !own.windows.empty() ||
            llvm::any_of(own.partial,
                         [&](const PartialAxis &other) { return other.kind != partial.kind; }))
          return;
        SmallVector<int64_t> bringing;
        for (auto [i, operand] : llvm::enumerate(op->getOperands()))
          if (candidateOf(operand))
            bringing.push_back(i);
        if (bringing.empty())
          return;
        for (const sharding::AxisList &axes : shardingsOf(op).axes)
          if (sharding::overlapsAny(axes, partial.axis))
            return;
        candidate.through = operandsToPass(op, partial.kind, bringing);
        if (candidate.through.empty())
          return;
      }
      candidateOfOp[op] = candidates.size();
      candidates.push_back(std::move(candidate));
    });
  }

  const OpShardings &shardingsOf(Operation *op) {
    auto it = known.find(op);
    if (it == known.end())
      it = known.try_emplace(op, deriveOpShardings(op, meshes)).first;
    return it->second;
  }

  /// How a use needs the value, or null where it takes it as it lies.
  ShardingAttr wantedBy(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto constraint = dyn_cast<ShardTensorOp>(user))
      return constraint.getSharding();
    if (auto reshard = dyn_cast<ReshardOp>(user))
      return reshard.getSharding();
    if (auto ret = dyn_cast<func::ReturnOp>(user))
      return function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(),
                                                        DistDialect::kSharding);
    if (isa<scf::ForOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp>(user))
      return getSharding(use.get()).getMesh() == mesh ? reducedForControlFlow(use) : ShardingAttr();
    return shardingsOf(user).operands[use.getOperandNumber()];
  }

  /// What control flow hands on lies as what receives it; that is whole here (a carry that stays
  /// partial was decided before).
  ShardingAttr reducedForControlFlow(OpOperand &use) {
    Operation *user = use.getOwner();
    Value receiver;
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      receiver = loop.getTiedLoopResult(&use);
    } else if (isa<scf::YieldOp>(user) && isa<scf::ForOp, scf::IfOp>(user->getParentOp())) {
      receiver = user->getParentOp()->getResult(use.getOperandNumber());
    } else {
      TensorSharding own = lies(use.get()).withoutPartial();
      return ShardingAttr::get(mesh, meshes.get(mesh), own, function.getContext());
    }
    return getSharding(receiver);
  }

  void addEdges(const Candidate &candidate) {
    Value value = candidate.op->getResult(0);
    if (candidate.native)
      cut.addEdge(MinimumCut::kSource, candidate.node, MinimumCut::kInfinite);
    // Ring algorithms: a reduce-scatter sends B(n-1)/n, the gather behind it as much. One more, so
    // that of plans with equal bytes the one with fewer reductions is taken.
    TensorSharding own = lies(value);
    int64_t parts = 1;
    for (const sharding::AxisList &axes : own.dims)
      parts *= sharding::sizeOf(axes);
    auto type = cast<RankedTensorType>(value.getType());
    int64_t n = partial.axis.size;
    int64_t bytes = type.getNumElements() * bytesPerElement(type.getElementType()) / parts;
    int64_t half = std::min<int64_t>(bytes * (n - 1) / n, MinimumCut::kInfinite >> 30);
    half = half * tripsOf(candidate.op) + 1;
    cut.addEdge(candidate.node, candidate.scattered, half);
    cut.addEdge(candidate.scattered, candidate.whole, half);
    for (OpOperand &use : value.getUses())
      addUse(candidate, use);
  }

  void addUse(const Candidate &candidate, OpOperand &use) {
    auto user = candidateOfOp.find(use.getOwner());
    if (user != candidateOfOp.end() &&
        llvm::is_contained(candidates[user->second].through,
                           static_cast<int64_t>(use.getOperandNumber()))) {
      cut.addEdge(candidate.whole, candidates[user->second].node, MinimumCut::kInfinite);
      return;
    }
    ShardingAttr wanted = wantedBy(use);
    if (!wanted)
      return;
    TensorSharding target = resolveVerified(wanted, meshes, use.get().getType());
    if (wanted.getMesh() == mesh && isPartialOver(target))
      return;
    bool scattered =
        wanted.getMesh() == mesh && llvm::any_of(target.dims, [&](const sharding::AxisList &axes) {
          return sharding::overlapsAny(axes, partial.axis);
        });
    cut.addEdge(scattered ? candidate.scattered : candidate.whole, MinimumCut::kSink,
                MinimumCut::kInfinite);
  }

  /// Values on the source's side become partial, as far as an operand of them is.
  void apply() {
    for (const Candidate &candidate : candidates) {
      if (candidate.native || !cut.onSourceSide(candidate.node))
        continue;
      if (llvm::none_of(candidate.through, [&](int64_t i) {
            Value operand = candidate.op->getOperand(i);
            return isHere(operand) && isPartialOver(lies(operand));
          }))
        continue;
      Value result = candidate.op->getResult(0);
      TensorSharding own = lies(result);
      own.partial.push_back(partial);
      setSharding(result, ShardingAttr::get(mesh, meshes.get(mesh), sharding::canonical(own),
                                            function.getContext()));
    }
  }

  func::FuncOp function;
  const MeshTable &meshes;
  FlatSymbolRefAttr mesh;
  PartialAxis partial;
  std::vector<Candidate> candidates; // in program order
  llvm::DenseMap<Operation *, size_t> candidateOfOp;
  llvm::DenseMap<Operation *, OpShardings> known;
  MinimumCut cut;
};

struct DistSinkPartials : dist::impl::DistSinkPartialsBase<DistSinkPartials> {
  void runOnOperation() override {
    MeshTable meshes(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        for (auto &[mesh, partial] : partialAxesIn(function, meshes))
          Sinking(function, meshes, mesh, partial).run();
  }

  /// Every axis over which some op leaves contributions, in a fixed order.
  static std::vector<std::pair<FlatSymbolRefAttr, PartialAxis>>
  partialAxesIn(func::FuncOp function, const MeshTable &meshes) {
    std::set<std::pair<std::string, PartialAxis>> found;
    function.walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (isa<RankedTensorType>(value.getType()))
          if (ShardingAttr attr = getSharding(value))
            for (const PartialAxis &partial :
                 resolveVerified(attr, meshes, value.getType()).partial)
              found.insert({attr.getMesh().getValue().str(), partial});
    });
    std::vector<std::pair<FlatSymbolRefAttr, PartialAxis>> result;
    for (auto &[mesh, partial] : found)
      result.push_back({FlatSymbolRefAttr::get(function.getContext(), mesh), partial});
    return result;
  }
};

} // namespace
