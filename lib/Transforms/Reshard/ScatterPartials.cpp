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
// of which only the sum is sent). It also divides their work: an optimizer's
// update that every device would compute whole. State that only such ops read
// and write, as moments, is then kept in parts (Y. Xu et al., "Automatic
// Cross-Replica Sharding of Weight Update in Data-Parallel Training", 2020).
//
// A minimum cut per mesh axis, or per axes that reductions have in common, chooses the ops to cut;
// the rest of the plan does not change. Times count as the bytes that are sent meanwhile, and less
// than these: an update is divided if that sends no more. Ops in a branch (an update that is only
// made if all gradients are finite) are cut like others, and the branch's results with them.
//
//   source --bytes of a reduce-scatter--> scattered copy of a sum
//   source --bytes of a gather--> whole copy of a sum
//   source --a part of the time saved--> op that may be cut: on the sink's side it is whole
//   whole copy --oo--> ops that read it in parts
//   op --bytes of a gather--> whole copy of its result
//   op --bytes of an all-reduce--> sink, if it reduces over the cut dimension
//   (a branch's result is as an op that reads what the branch yields)
//   copy --oo--> sink, for a use that needs the copy
//   whole copy of the next state --oo--> whole copy of the state
//
// Among equal cuts the one nearest to the source is taken, which keeps an all-reduce.
//
//===----------------------------------------------------------------------===//

#include "ScatterPartials.h"
#include "TimeInBytes.h"

#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Solver/MinimumCut.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;
using solver::Capacity;
using solver::MinimumCut;

/// The latency of a gather in addition to an all-reduce, in bytes. Little, since gathers are
/// joined.
static constexpr int64_t kBytesOfAGather = 4096;
/// Where ops are divided for their work, both count this many times less than bytes.
static constexpr int64_t kLess = 64;

namespace {

/// A sum over devices, state that the program's caller keeps, or the result of an op, or of a
/// branch, on such values.
struct Part {
  Value value;
  int64_t dim;                  ///< that the axis may cut; -1 for an op that reduces over it
  int64_t factor = -1;          ///< of the op that runs over it, else -1
  bool ofBranch = false;        ///< a result of a branch, which yields parts
  int64_t next = -1;            ///< of state: the function's result that feeds it
  SmallVector<int64_t> of = {}; ///< operands of the op that are parts, cut alike
  int64_t scattered = -1;       ///< nodes of the cut; of a sum
  int64_t whole = -1;           ///< of all that have a dimension
  int64_t cut = -1;             ///< of an op or branch: on the source's side it is cut
  Capacity saved = 0;           ///< of an op: its time that a cut saves, in bytes

  /// Whether it is computed from other parts.
  bool isComputed() const { return factor >= 0 || ofBranch; }
};

class Scattering {
public:
  Scattering(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
             FlatSymbolRefAttr mesh, const std::vector<PartialAxis> &partial, const OpCosts &costs,
             const CostOptions &options)
      : function(function), meshes(meshes), shardings(shardings), mesh(mesh), partial(partial),
        group(axesOf(partial)), devices(sizeOf(group)), costs(costs),
        prices(meshes.get(mesh), group, options) {}

  void run(UpdateDivision division) {
    collectState();
    collectFrom(function.getBody());
    collectFactors();
    if (llvm::none_of(parts, [](const Part &part) { return part.factor >= 0; }))
      return;
    for (Part &part : parts)
      if (endsStep(part))
        part.saved = prices.bytesOf(savedBy(part));
    if (division == UpdateDivision::none || !dividingPays() ||
        (division == UpdateDivision::savesMemory && !cutsState()))
      solve(/*divides=*/false);
    SignatureAttrs signature(function);
    for (const Part &part : parts)
      if (part.isComputed() ? cut.onSourceSide(part.cut)
                            : part.next >= 0 && cut.onSourceSide(part.whole))
        apply(part, signature);
    signature.write();
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

  /// The block around the branches that a block is in: that of a loop, or the function's.
  static Block *aroundBranches(Block *block) {
    while (isa<scf::IfOp>(block->getParentOp()))
      block = block->getParentOp()->getBlock();
    return block;
  }

  /// Whether ops of a block run as often as a value is computed, or not if a branch is not taken.
  static bool isSeenFrom(Value value, Block *block) {
    while (block != blockOf(value) && isa<scf::IfOp>(block->getParentOp()))
      block = block->getParentOp()->getBlock();
    return block == blockOf(value);
  }

  /// Collects the parts of a region, those of nested ones before the results of their op.
  void collectFrom(Region &region) {
    for (Operation &op : region.getOps()) {
      if (!isa<linalg::LinalgOp>(op))
        for (Region &nested : op.getRegions())
          collectFrom(nested);
      if (isa<RegionBranchOpInterface>(op)) { // sums that it accumulates or yields
        for (OpResult result : op.getResults())
          if (!collectSum(result) && isa<scf::IfOp>(op))
            collectBranch(result);
      } else if (op.getNumResults() == 1 && !collectSum(op.getResult(0)) &&
                 isa<linalg::LinalgOp, tensor::ConcatOp, tensor::ExpandShapeOp,
                     tensor::CollapseShapeOp>(op)) {
        collectOp(&op);
      }
    }
  }

  /// A result of a branch of which one side yields a part, and the others parts or whole values.
  void collectBranch(OpResult result) {
    std::optional<TensorSharding> own = shardingOf(result);
    if (!own || !own->windows.empty() || own->isPartial() || !isFree(*own))
      return;
    Part part{.value = result, .dim = -1, .ofBranch = true};
    auto branch = cast<scf::IfOp>(result.getOwner());
    SmallVector<Value, 2> yielded = {branch.thenYield().getOperand(result.getResultNumber()),
                                     branch.elseYield().getOperand(result.getResultNumber())};
    for (Value value : yielded)
      if (const Part *from = partOf(value); from && part.dim < 0)
        part.dim = from->dim;
    bool mayCut = part.dim >= 0 && llvm::all_of(yielded, [&](Value value) {
                    if (const Part *from = partOf(value); from && from->dim >= 0)
                      return from->dim == part.dim;
                    std::optional<TensorSharding> made = shardingOf(value);
                    return made && made->windows.empty() && isFree(*made);
                  });
    if (mayCut)
      add(std::move(part));
  }

  /// The minimum cut for the bytes that are sent, and if the ops are to be divided, for the time of
  /// their work.
  void solve(bool divides) {
    cut = MinimumCut();
    perGather = divides ? kBytesOfAGather / kLess : kBytesOfAGather;
    for (Part &part : parts) {
      addNodes(part);
      if (divides && part.cut >= 0)
        cut.addEdge(MinimumCut::kSource, part.cut, part.saved / kLess);
    }
    for (const Part &part : parts)
      addUses(part);
    cut.solve();
  }

  /// Cuts ops for their work, in addition to bytes, and returns whether that saves more time than
  /// the latencies of a reduce-scatter and a gather take.
  bool dividingPays() {
    auto undivided = [&]() { // the time of the work that every device does
      Capacity bytes = 0;
      for (const Part &part : parts)
        bytes += part.cut >= 0 && !cut.onSourceSide(part.cut) ? part.saved : 0;
      return bytes;
    };
    solve(/*divides=*/false);
    Capacity before = undivided();
    solve(/*divides=*/true);
    return undivided() + prices.bytesOf(prices.latency()) < before;
  }

  bool cutsState() const {
    return llvm::any_of(
        parts, [&](const Part &part) { return part.next >= 0 && cut.onSourceSide(part.whole); });
  }

  const Part *partOf(Value value) const {
    auto it = index.find(value);
    return it == index.end() ? nullptr : &parts[it->second];
  }

  void add(Part part) {
    index[part.value] = parts.size();
    parts.push_back(std::move(part));
  }

  /// Returns whether the value is a sum over the devices, which is reduced.
  bool collectSum(Value value) {
    std::optional<TensorSharding> own = shardingOf(value);
    if (!own || !own->windows.empty() || own->partial != partial)
      return false;
    if (std::optional<int64_t> dim =
            dimToScatter(own->withoutPartial(), shapeOfValue(value), devices))
      add({value, *dim});
    return true;
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
    std::optional<TensorSharding> own = shardingOf(op->getResult(0));
    if (!own || !own->windows.empty() || !isFree(*own) ||
        !shardings.of(op).sharding.forwards.empty())
      return;
    const ShardingRule &rule = shardings.of(op).rule;
    int64_t factor = -1;
    for (size_t i = 0; i < rule.operands.size() && factor < 0; ++i)
      if (const Part *from = partOf(op->getOperand(i));
          from && from->dim >= 0 && isSeenFrom(from->value, op->getBlock()))
        factor = factorOf(rule.operands[i], from->dim);
    std::optional<Part> part = partAlong(op, factor);
    if (part && (part->dim < 0 || !own->isPartial())) // a sum may also be one over other axes
      add(std::move(*part));
  }

  /// An op whose loop over a factor may be cut.
  std::optional<Part> partAlong(Operation *op, int64_t factor) const {
    const ShardedOp &sharded = shardings.of(op);
    const ShardingRule &rule = sharded.rule;
    if (factor < 0 || sharded.mesh != mesh || rule.results.size() != 1 ||
        llvm::any_of(
            sharded.sharding.factors, [&](const AxisList &axes) { return cutsOver(axes); }))
      return std::nullopt;
    bool reduces = rule.factors[factor].kind == FactorKind::reduction;
    if (!reduces && rule.factors[factor].kind != FactorKind::parallel)
      return std::nullopt;
    Part part{op->getResult(0), -1, factor};
    for (size_t d = 0; d < rule.results[0].size(); ++d)
      if (factorOf(rule.results[0], d) == factor)
        part.dim = d;
    int64_t parallel = sizeOf(sharded.sharding.factors[factor]) * devices;
    if ((part.dim < 0) != reduces || rule.factors[factor].size % parallel != 0)
      return std::nullopt;
    for (size_t i = 0; i < rule.operands.size(); ++i)
      if (hasFactor(rule.operands[i], factor) && !mayCut(op, rule, i, part))
        return std::nullopt;
    return part;
  }

  /// The ops that only compute what parts read, as the decay of a weight: they may be cut like it.
  void collectFactors() {
    for (size_t p = 0; p < parts.size(); ++p) {
      Operation *op = parts[p].factor >= 0 ? parts[p].value.getDefiningOp() : nullptr;
      for (int64_t i = 0; op && i < op->getNumOperands(); ++i) {
        Operation *maker = op->getOperand(i).getDefiningOp();
        if (!maker || maker->getNumResults() != 1 || maker->getBlock() != op->getBlock() ||
            !isa<linalg::LinalgOp>(maker) || partOf(op->getOperand(i)))
          continue;
        ArrayRef<DimRule> read = shardings.of(op).rule.operands[i];
        std::optional<TensorSharding> own = shardingOf(op->getOperand(i));
        if (!own || own->isPartial() || !own->windows.empty())
          continue;
        for (size_t d = 0; d < read.size(); ++d)
          if (factorOf(read, d) == parts[p].factor)
            if (std::optional<Part> part =
                    partAlong(maker, factorOf(shardings.of(maker).rule.results[0], d))) {
              parts[p].of.push_back(i);
              add(std::move(*part));
              break;
            }
      }
    }
  }

  /// Arguments whose sharding is open, and which a result of the same function feeds.
  void collectState() {
    for (unsigned r = 0; r < function.getNumResults(); ++r) {
      auto feeds = function.getResultAttrOfType<IntegerAttr>(r, DistDialect::kFeeds);
      if (!feeds)
        continue;
      BlockArgument argument = function.getArgument(feeds.getInt());
      std::optional<TensorSharding> own = shardingOf(argument);
      if (!own || !isOpen(*own))
        continue;
      if (std::optional<int64_t> dim = dimToScatter(own->closed(), shapeOfValue(argument), devices))
        add({.value = argument, .dim = *dim, .next = r});
    }
  }

  bool isOpen(const TensorSharding &sharding) const {
    return llvm::all_of(group, [&](const AxisRef &axis) {
      return llvm::any_of(sharding.open, [&](const AxisRef &open) { return open.contains(axis); });
    });
  }

  bool isFree(const TensorSharding &sharding) const {
    return llvm::all_of(group, [&](const AxisRef &axis) { return sharding.isFree(axis); });
  }

  /// Whether any of the group's axes is among these.
  bool cutsOver(const AxisList &axes) const {
    return llvm::any_of(group, [&](const AxisRef &axis) { return overlapsAny(axes, axis); });
  }

  void addGroup(AxisList &axes) const {
    axes.insert(axes.end(), group.begin(), group.end());
    axes = mergeAxes(std::move(axes));
  }

  static AxisList axesOf(const std::vector<PartialAxis> &partial) {
    AxisList axes;
    for (const PartialAxis &each : partial)
      axes.push_back(each.axis);
    return axes;
  }

  /// Whether an operand with the part's factor is available, or computed, in such parts.
  bool mayCut(Operation *op, const ShardingRule &rule, int64_t i, Part &part) const {
    Value operand = op->getOperand(i);
    if (const Part *from = partOf(operand); from && from->dim >= 0) {
      part.of.push_back(i);
      return factorOf(rule.operands[i], from->dim) == part.factor &&
             isSeenFrom(from->value, op->getBlock());
    }
    std::optional<TensorSharding> own = shardingOf(operand);
    return own && isFree(*own) && own->windows.empty();
  }

  static Capacity tripsOfPart(const Part &part) { return boundedTrips(blockOf(part.value)); }

  /// Bytes of half an all-reduce.
  Capacity halfOf(const Part &part) const {
    return bytesOfHalf(cast<RankedTensorType>(part.value.getType()),
                       shardingOf(part.value)->withoutPartial(), devices) *
           tripsOfPart(part);
  }

  /// Seconds of an op's work that a cut saves.
  double savedBy(const Part &part) {
    Operation *op = part.value.getDefiningOp();
    if (part.factor < 0 || !isa<linalg::LinalgOp>(op))
      return 0;
    const ShardedOp &sharded = shardings.of(op);
    OpSharding cutSharding = sharded.sharding;
    addGroup(cutSharding.factors[part.factor]);
    double saved =
        secondsOf(op, sharded.rule, sharded.sharding) - secondsOf(op, sharded.rule, cutSharding);
    return static_cast<double>(tripsOfPart(part)) * std::max(0.0, saved);
  }

  double secondsOf(Operation *op, const ShardingRule &rule, const OpSharding &sharding) const {
    double iterations = 1;
    for (auto [factor, axes] : llvm::zip_equal(rule.factors, sharding.factors))
      iterations *= static_cast<double>(ceilDiv(factor.size, sizeOf(axes)));
    SmallVector<double> elements;
    auto add = [&](Value value, const TensorSharding &own) {
      elements.push_back(1);
      for (int64_t extent : localShape(own, shapeOfValue(value).vec()))
        elements.back() *= static_cast<double>(extent);
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (isa<RankedTensorType>(operand.getType()))
        add(operand, operandSharding(rule, i, sharding));
      else
        elements.push_back(1);
    add(op->getResult(0), resultSharding(rule, 0, sharding));
    return costs.seconds(op, iterations, elements, meshes.get(mesh).numDevices());
  }

  void addNodes(Part &part) {
    Capacity half = halfOf(part);
    if (part.dim < 0) {
      part.cut = cut.addNode();
      return cut.addEdge(part.cut, MinimumCut::kSink, 2 * half + perGather * tripsOfPart(part));
    }
    part.whole = cut.addNode();
    if (part.next >= 0)
      return;
    if (part.isComputed()) {
      part.cut = cut.addNode();
      return cut.addEdge(part.cut, part.whole, half + perGather * tripsOfPart(part));
    }
    part.scattered = cut.addNode();
    cut.addEdge(MinimumCut::kSource, part.scattered, half);
    cut.addEdge(MinimumCut::kSource, part.whole, half);
  }

  /// Whether the work of an op is the last before results: other ops need it only in parts, or as
  /// a sum of all of it. So the gathers after it are joined; those of a layer would each wait.
  bool endsStep(const Part &part) {
    if (!part.isComputed() || aroundBranches(blockOf(part.value)) != &function.getBody().front())
      return false;
    auto [it, isNew] = ends.try_emplace(part.value, true);
    if (!isNew || part.dim < 0)
      return it->second;
    bool result = llvm::all_of(part.value.getUses(), [&](OpOperand &use) {
      const Part *reader = readerOf(part, use);
      return isa<func::ReturnOp>(use.getOwner()) || (reader && endsStep(*reader));
    });
    return ends[part.value] = result;
  }

  /// The op or branch that reads a part in parts, or null.
  const Part *readerOf(const Part &part, OpOperand &use) const {
    Operation *user = use.getOwner();
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp())) {
      const Part *result = partOf(user->getParentOp()->getResult(use.getOperandNumber()));
      return result && result->ofBranch && result->dim == part.dim ? result : nullptr;
    }
    const Part *made = user->getNumResults() == 1 ? partOf(user->getResult(0)) : nullptr;
    return made && llvm::is_contained(made->of, use.getOperandNumber()) ? made : nullptr;
  }

  void addUses(const Part &part) {
    if (part.dim < 0)
      return; // its result is reduced for all
    for (OpOperand &use : part.value.getUses()) {
      if (const Part *user = readerOf(part, use)) {
        if (part.scattered >= 0)
          cut.addEdge(part.scattered, MinimumCut::kSink, MinimumCut::kInfinite);
        // A part that is computed whole needs no gather: it is on the sink's side with the op.
        cut.addEdge(part.whole, user->cut, MinimumCut::kInfinite);
        continue;
      }
      if (const Part *state = stateFedBy(use)) {
        if (part.scattered >= 0)
          cut.addEdge(part.scattered, MinimumCut::kSink, MinimumCut::kInfinite);
        cut.addEdge(part.whole, state->dim == part.dim ? state->whole : MinimumCut::kSink,
                    MinimumCut::kInfinite);
        continue;
      }
      Need need = needOf(part, use);
      if (need == Need::contributions || (need == Need::part && part.isComputed()))
        continue;
      if (part.scattered >= 0)
        cut.addEdge(part.scattered, MinimumCut::kSink, MinimumCut::kInfinite);
      if (need == Need::whole)
        cut.addEdge(part.whole, MinimumCut::kSink, MinimumCut::kInfinite);
    }
  }

  /// The state that a use feeds, or null.
  const Part *stateFedBy(OpOperand &use) const {
    if (!isa<func::ReturnOp>(use.getOwner()))
      return nullptr;
    auto it =
        llvm::find_if(parts, [&](const Part &part) { return part.next == use.getOperandNumber(); });
    return it == parts.end() ? nullptr : &*it;
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
    if (llvm::any_of(target.partial, [&](const PartialAxis &other) {
          return llvm::any_of(group,
                              [&](const AxisRef &axis) { return other.axis.overlaps(axis); });
        }))
      return Need::contributions;
    bool isCut = isa<func::ReturnOp>(user) && isOpen(target);
    // A cut of another dimension needs an exchange, which sends about as little as a part.
    isCut = isCut || cutsOver(target.dims[part.dim]);
    return isCut ? Need::part : Need::whole;
  }

  /// The sharding of a value with the part's dimension cut.
  ShardingAttr cutOf(const Part &part, TensorSharding own) {
    addGroup(own.dims[part.dim]);
    llvm::erase_if(own.open, [&](const AxisRef &axis) { return overlapsAny(group, axis); });
    return ShardingAttr::get(mesh, meshes.get(mesh), canonical(own), function.getContext());
  }

  void apply(const Part &part, SignatureAttrs &signature) {
    if (part.next >= 0) {
      auto argument = cast<BlockArgument>(part.value);
      ShardingAttr kept = cutOf(part, *shardingOf(part.value));
      signature.ofArgument(argument.getArgNumber()).set(DistDialect::kSharding, kept);
      signature.ofResult(part.next).set(DistDialect::kSharding, kept);
      return;
    }
    if (part.ofBranch)
      return setSharding(part.value, cutOf(part, *shardingOf(part.value)));
    Operation *op = part.value.getDefiningOp();
    const ShardedOp &sharded = shardings.of(op);
    OpSharding own = sharded.sharding;
    addGroup(own.factors[part.factor]);
    TensorSharding result = resultSharding(sharded.rule, 0, own);
    setOpSharding(op, mesh, meshes.get(mesh), own);
    setSharding(part.value, ShardingAttr::get(mesh, meshes.get(mesh), canonical(result),
                                              function.getContext()));
  }

  func::FuncOp function;
  const MeshTable &meshes;
  OpShardings &shardings;
  FlatSymbolRefAttr mesh;
  std::vector<PartialAxis> partial;
  AxisList group; ///< its axes
  int64_t devices;
  const OpCosts &costs;
  TimeInBytes prices;
  int64_t perGather = kBytesOfAGather;
  std::vector<Part> parts;             // those that parts need after them, else in program order
  llvm::DenseMap<Value, bool> ends;    // whether an op ends the step; looked up, never iterated
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
  return scatter.wireBytes;
}

Capacity dist::boundedTrips(Block *block) {
  constexpr double kMostTrips = 0x1p48; // centuries; with 64 bits of bytes below 2^126
  return static_cast<Capacity>(std::min(tripsOf(block->getTerminator()), kMostTrips));
}

void dist::scatterPartials(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                           FlatSymbolRefAttr mesh, const std::vector<PartialAxis> &partial,
                           const OpCosts &costs, const CostOptions &options,
                           UpdateDivision division) {
  Scattering(function, meshes, shardings, mesh, partial, costs, options).run(division);
}
