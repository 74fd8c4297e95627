//===- ScatterPartials.cpp - Reduce-scatter instead of all-reduce ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An all-reduce is a reduce-scatter and a gather. Nonlinear ops after it may run
// between the two, on the part of each device. That sends less if the gathered
// value is narrower (a gradient rounded to bf16), or if there is no gather (a
// result without a placement, or one that is summed up over the cut dimension,
// of which only the sum is sent). A minimum cut per mesh axis chooses the ops to
// cut; the rest of the plan does not change.
//
//   source --bytes of a reduce-scatter--> scattered copy of a sum
//   source --bytes of a gather--> whole copy of a sum
//   whole copy --oo--> ops that may be cut: on the sink's side they are whole
// op --bytes of a gather--> whole copy of its result
// op --bytes of an all-reduce--> sink, if it reduces over the cut dimension
//   copy --oo--> sink, for a use that needs the copy
//
// Among equal cuts the one nearest to the source is taken, which keeps an all-reduce.
//
//===----------------------------------------------------------------------===//

#include "ScatterPartials.h"

#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Solver/MinimumCut.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;
using solver::MinimumCut;

/// The latency of a gather in addition to an all-reduce, in bytes. Little, since gathers are
/// joined.
static constexpr int64_t kBytesOfAGather = 4096;

namespace {

/// A sum over devices, or the result of an op on such sums.
struct Part {
  Value value;
  int64_t dim;                  ///< that the axis may cut; -1 for an op that reduces over it
  int64_t factor = -1;          ///< of the op that runs over it; -1 for a sum
  SmallVector<int64_t> of = {}; ///< operands of the op that are parts, cut alike
  int64_t scattered = -1;       ///< nodes of the cut; of a sum
  int64_t whole = -1;           ///< of both
  int64_t cut = -1;             ///< of an op: on the source's side it is cut
};

class Scattering {
public:
  Scattering(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
             FlatSymbolRefAttr mesh, PartialAxis partial)
      : function(function), meshes(meshes), shardings(shardings), mesh(mesh), partial(partial) {}

  void run() {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()) && op->getNumResults() == 1)
        collect(op);
    });
    if (llvm::none_of(parts, [](const Part &part) { return part.factor >= 0; }))
      return;
    for (Part &part : parts)
      addNodes(part);
    for (const Part &part : parts)
      addUses(part);
    cut.solve();
    for (const Part &part : parts)
      if (part.factor >= 0 && cut.onSourceSide(part.cut))
        apply(part);
  }

private:
  std::optional<TensorSharding> shardingOf(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    ShardingAttr attr = type ? getSharding(value) : ShardingAttr();
    if (!attr || attr.getMesh() != mesh)
      return std::nullopt;
    return resolveVerified(attr, meshes, type);
  }

  static ArrayRef<int64_t> shapeOfValue(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  static Block *blockOf(Value value) { return value.getParentBlock(); }

  const Part *partOf(Value value) const {
    auto it = index.find(value);
    return it == index.end() ? nullptr : &parts[it->second];
  }

  void add(Part part) {
    index[part.value] = parts.size();
    parts.push_back(std::move(part));
  }

  void collect(Operation *op) {
    std::optional<TensorSharding> own = shardingOf(op->getResult(0));
    if (!own || !own->windows.empty())
      return;
    if (own->partial == std::vector<PartialAxis>{partial}) {
      std::optional<int64_t> dim =
          dimToScatter(own->withoutPartial(), shapeOfValue(op->getResult(0)), partial.axis);
      if (dim)
        add({op->getResult(0), *dim});
      return;
    }
    if (isa<linalg::LinalgOp>(op) && !own->isPartial() && own->isFree(partial.axis))
      collectOp(op);
  }

  /// The only factor of a dimension that runs over all of it, or -1.
  static int64_t factorOf(const TensorRule &rule, int64_t dim) {
    const DimRule &own = rule[dim];
    return own.factors.size() == 1 && !own.isWindow && !own.segment ? own.factors.front() : -1;
  }

  static bool hasFactor(const TensorRule &rule, int64_t factor) {
    return llvm::any_of(
        rule, [&](const DimRule &dim) { return llvm::is_contained(dim.factors, factor); });
  }

  /// An op that may have the cut of a part that it reads.
  void collectOp(Operation *op) {
    const ShardedOp &sharded = shardings.of(op);
    const ShardingRule &rule = sharded.rule;
    if (sharded.mesh != mesh || rule.results.size() != 1 ||
        llvm::any_of(sharded.sharding.factors,
                     [&](const AxisList &axes) { return overlapsAny(axes, partial.axis); }))
      return;
    Part part{op->getResult(0), -1};
    for (size_t i = 0; i < rule.operands.size() && part.factor < 0; ++i)
      if (const Part *from = partOf(op->getOperand(i));
          from && from->dim >= 0 && blockOf(from->value) == op->getBlock())
        part.factor = factorOf(rule.operands[i], from->dim);
    if (part.factor < 0)
      return;
    bool reduces = rule.factors[part.factor].kind == FactorKind::reduction;
    if (!reduces && rule.factors[part.factor].kind != FactorKind::parallel)
      return;
    int64_t parallel = sizeOf(sharded.sharding.factors[part.factor]) * partial.axis.size;
    for (size_t d = 0; d < rule.results[0].size(); ++d)
      if (factorOf(rule.results[0], d) == part.factor)
        part.dim = d;
    if ((part.dim < 0) != reduces || rule.factors[part.factor].size % parallel != 0)
      return;
    for (size_t i = 0; i < rule.operands.size(); ++i)
      if (hasFactor(rule.operands[i], part.factor) && !mayCut(op, rule, i, part))
        return;
    add(std::move(part));
  }

  /// Whether an operand with the part's factor is available, or computed, in such parts.
  bool mayCut(Operation *op, const ShardingRule &rule, int64_t i, Part &part) const {
    Value operand = op->getOperand(i);
    if (const Part *from = partOf(operand); from && from->dim >= 0) {
      part.of.push_back(i);
      return factorOf(rule.operands[i], from->dim) == part.factor &&
             blockOf(from->value) == op->getBlock();
    }
    std::optional<TensorSharding> own = shardingOf(operand);
    return own && own->isFree(partial.axis) && own->windows.empty();
  }

  static int64_t tripsOfPart(const Part &part) { return boundedTrips(blockOf(part.value)); }

  /// Bytes of half an all-reduce.
  int64_t halfOf(const Part &part) const {
    return bytesOfHalf(cast<RankedTensorType>(part.value.getType()),
                       shardingOf(part.value)->withoutPartial(), partial.axis.size) *
           tripsOfPart(part);
  }

  void addNodes(Part &part) {
    int64_t half = halfOf(part);
    if (part.dim < 0) {
      part.cut = cut.addNode();
      return cut.addEdge(part.cut, MinimumCut::kSink,
                         2 * half + kBytesOfAGather * tripsOfPart(part));
    }
    part.whole = cut.addNode();
    if (part.factor >= 0) {
      part.cut = cut.addNode();
      return cut.addEdge(part.cut, part.whole, half + kBytesOfAGather * tripsOfPart(part));
    }
    part.scattered = cut.addNode();
    cut.addEdge(MinimumCut::kSource, part.scattered, half);
    cut.addEdge(MinimumCut::kSource, part.whole, half);
  }

  void addUses(const Part &part) {
    if (part.dim < 0)
      return; // its result is reduced for all
    for (OpOperand &use : part.value.getUses()) {
      const Part *user = nullptr;
      if (use.getOwner()->getNumResults() == 1)
        user = partOf(use.getOwner()->getResult(0));
      if (user && user->factor >= 0 && llvm::is_contained(user->of, use.getOperandNumber())) {
        if (part.factor < 0)
          cut.addEdge(part.scattered, MinimumCut::kSink, MinimumCut::kInfinite);
        // A part that is computed whole needs no gather: it is on the sink's side with the op.
        cut.addEdge(part.whole, user->cut, MinimumCut::kInfinite);
        continue;
      }
      Need need = needOf(part, use);
      if (need == Need::contributions || (need == Need::part && part.factor >= 0))
        continue;
      if (part.factor < 0)
        cut.addEdge(part.scattered, MinimumCut::kSink, MinimumCut::kInfinite);
      if (need == Need::whole)
        cut.addEdge(part.whole, MinimumCut::kSink, MinimumCut::kInfinite);
    }
  }

  enum class Need { contributions, part, whole };

  Need needOf(const Part &part, OpOperand &use) {
    ShardingAttr wanted;
    Operation *user = use.getOwner();
    if (auto ret = dyn_cast<func::ReturnOp>(user))
      wanted = function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(),
                                                          DistDialect::kSharding);
    else if (auto reshard = dyn_cast<ReshardOp>(user))
      wanted = reshard.getSharding();
    else if (auto constraint = dyn_cast<ShardTensorOp>(user))
      wanted = constraint.getSharding();
    else if (!isControlFlow(user) && !isControlFlowEnd(user))
      wanted = shardings.of(user).operands[use.getOperandNumber()];
    else if (SmallVector<Value, 2> receivers = receiversOf(use); !receivers.empty())
      wanted = getSharding(receivers.front());
    if (!wanted || wanted.getMesh() != mesh)
      return Need::whole;
    TensorSharding target = resolveVerified(wanted, meshes, use.get().getType());
    if (llvm::any_of(target.partial,
                     [&](const PartialAxis &other) { return other.axis.contains(partial.axis); }))
      return Need::contributions;
    bool isOpen =
        llvm::any_of(target.open, [&](const AxisRef &open) { return open.contains(partial.axis); });
    bool isCut = isa<func::ReturnOp>(user) && isOpen;
    // A cut of another dimension needs an exchange, which sends about as little as a part.
    isCut = isCut || overlapsAny(target.dims[part.dim], partial.axis);
    return isCut ? Need::part : Need::whole;
  }

  void apply(const Part &part) {
    Operation *op = part.value.getDefiningOp();
    const ShardedOp &sharded = shardings.of(op);
    OpSharding own = sharded.sharding;
    AxisList &axes = own.factors[part.factor];
    axes.push_back(partial.axis);
    axes = mergeAxes(std::move(axes));
    TensorSharding result = resultSharding(sharded.rule, 0, own);
    setOpSharding(op, mesh, meshes.get(mesh), own);
    setSharding(part.value, ShardingAttr::get(mesh, meshes.get(mesh), canonical(result),
                                              function.getContext()));
  }

  func::FuncOp function;
  const MeshTable &meshes;
  OpShardings &shardings;
  FlatSymbolRefAttr mesh;
  PartialAxis partial;
  std::vector<Part> parts;             // in program order
  llvm::DenseMap<Value, size_t> index; // looked up, never iterated
  MinimumCut cut;
};

} // namespace

int64_t dist::bytesOfHalf(RankedTensorType type, const TensorSharding &own, int64_t devices) {
  Buffers buffers;
  buffers.bytesPerElement = bytesPerElement(type.getElementType());
  buffers.operand = 1;
  for (int64_t extent : localShape(own, type.getShape().vec()))
    buffers.operand *= extent;
  Traffic scatter = trafficOf(CollectiveKind::reduce_scatter, devices, buffers);
  return std::min(scatter.wireBytes, MinimumCut::kInfinite >> 30);
}

int64_t dist::boundedTrips(Block *block) {
  constexpr int64_t kMostTrips = int64_t(1) << 24;
  return static_cast<int64_t>(std::min<double>(tripsOf(block->getTerminator()), kMostTrips));
}

void dist::scatterPartials(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                           FlatSymbolRefAttr mesh, PartialAxis partial) {
  Scattering(function, meshes, shardings, mesh, partial).run();
}
