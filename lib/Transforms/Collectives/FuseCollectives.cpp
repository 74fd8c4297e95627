//===- FuseCollectives.cpp - Join collectives of one kind and group -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionSchedule.h"
#include "JoinExchanges.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/Liveness.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTFUSECOLLECTIVES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Mode bucket: the time of the wire bytes is this multiple of the latency, within these bounds. 25
/// MiB is the bucket size of S. Li et al., "PyTorch Distributed", VLDB 2020.
static constexpr double kBucketLatencies = 4;
static constexpr double kLeastBucket = 1 << 20, kMostBucket = 25 << 20;
static constexpr int64_t kMiB = int64_t(1) << 20;

namespace {

/// Attributes in which joined collectives may differ: each operand keeps its own layouts.
constexpr StringRef kOfLayouts[] = {"sources",    "targets", "global_types", "dim",  "split_dim",
                                    "concat_dim", "low",     "high",         "from", "to"};

/// The text that joined collectives must share: kind, mesh, axes, reduction, fill, dtype.
std::string groupOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName() << " " << cast<CollectiveOpInterface>(op).getMeshAttr() << " "
     << cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  for (NamedAttribute attribute : op->getAttrs())
    if (!isa_and_nonnull<DistDialect>(attribute.getNameDialect()) &&
        !llvm::is_contained(kOfLayouts, attribute.getName().getValue()))
      os << " " << attribute.getName().getValue() << "=" << attribute.getValue();
  return text;
}

int64_t bytesOf(Operation *op) {
  int64_t bytes = 0;
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    bytes += type.getNumElements() * bytesPerElement(type.getElementType());
  }
  return bytes;
}

/// The meetings of all operands. None if a value is moved to another mesh: renumbered devices are a
/// ring, whose permutes are apart so that one is under way while others compute.
std::optional<Meetings> meetingsOfAll(CollectiveOpInterface op, const MeshTable &meshes) {
  sharding::AxisList axes;
  const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
  if (AxisListAttr group = op.getGroupAxes()) {
    FailureOr<sharding::AxisList> resolved =
        resolveAxes(group, mesh, [&]() { return op->emitOpError(); });
    if (failed(resolved))
      return std::nullopt;
    axes = *resolved;
  }
  Meetings result;
  for (auto [source, target, global] :
       llvm::zip_equal(op.getSourcesAttr(), op.getTargetsAttr(), op.getGlobalTypesAttr())) {
    auto from = cast<ShardingAttr>(source), to = cast<ShardingAttr>(target);
    if (from.getMesh() != to.getMesh())
      return std::nullopt;
    Type type = cast<TypeAttr>(global).getValue();
    result.merge(meetingsOf(op.getKind(), axes, resolveVerified(from, meshes, type),
                            resolveVerified(to, meshes, type)));
  }
  return result;
}

bool isJoinableMove(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && isMove(collective.getKind());
}

/// How collectives of one kind are joined.
struct Plan {
  StringRef key; ///< the name of the kind in messages
  std::string mode;
  SmallVector<int64_t> config;
  bool ownConfig = false; ///< given for only this kind

  /// Limit on the bytes of a bucket of several members.
  int64_t limit() const {
    int64_t most = std::numeric_limits<int64_t>::max();
    if (mode == "size" || mode == "ready")
      return config.front() > most / kMiB ? most : config.front() * kMiB;
    return mode == "index" && !config.empty() ? most : kJoinedBytes;
  }

  /// The group of member `position` by the list of indices: [20, 35] maps 0..19 to 0, 20..34 to 1,
  /// the rest to 2.
  int64_t groupAt(int64_t position) const {
    return mode == "index" ? llvm::upper_bound(config, position) - config.begin() : 0;
  }
};

/// Moves the all-reduces of a block, and the ops that mark their operands as contributions,
/// directly after the producer of the operands, or to the front.
void hoistAllReduces(Block &block) {
  auto hoist = [&](Operation *op) {
    Operation *producer = op->getOperand(0).getDefiningOp();
    if (producer && producer->getBlock() == &block)
      op->moveAfter(producer);
    else
      op->moveBefore(&block, block.begin());
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (!reduce || reduce->getNumOperands() != 1)
      continue;
    if (auto partial = op.getOperand(0).getDefiningOp<MakePartialOp>();
        partial && partial->hasOneUse() && partial->getBlock() == &block)
      hoist(partial);
    hoist(&op);
  }
}

struct DistFuseCollectives : dist::impl::DistFuseCollectivesBase<DistFuseCollectives> {
  using DistFuseCollectivesBase::DistFuseCollectivesBase;

  void runOnOperation() override {
    FailureOr<SmallVector<Plan>> plans = readOptions();
    if (failed(plans))
      return signalPassFailure();
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    FailureOr<double> budget =
        readMemoryBudget(getOperation(), "dist-fuse-collectives", memoryBudget);
    if (failed(budget))
      return signalPassFailure();
    meshes.emplace(getOperation());
    machine = cost->topology;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function)) {
        function.walk([](Operation *op) { joinExchangesReadBy(op); });
        function.walk([&](Block *block) { joinExchangesOfValues(*block, *meshes); });
        fuse(function, *plans, *budget);
      }
  }

  /// Whether a move sends nothing, as a window of a larger one: it need not wait for others.
  bool isLocal(Operation *op) {
    auto collective = cast<CollectiveOpInterface>(op);
    if (!isMove(collective.getKind()))
      return false;
    FailureOr<sharding::Traffic> traffic =
        collective.getTraffic(meshes->get(collective.getMeshAttr()));
    return succeeded(traffic) && traffic->count == 0;
  }

  /// Limit on the operand bytes of a bucket with `op`: larger buckets are ready later, smaller ones
  /// are mostly latency.
  int64_t bucketBytes(Operation *op) {
    auto collective = cast<CollectiveOpInterface>(op);
    const sharding::Mesh &mesh = meshes->get(collective.getMeshAttr());
    FailureOr<sharding::Traffic> traffic = collective.getTraffic(mesh);
    sharding::AxisList axes; // of an exchange: all
    if (AxisListAttr group = collective.getGroupAxes()) {
      FailureOr<sharding::AxisList> resolved =
          resolveAxes(group, mesh, [&]() { return op->emitOpError(); });
      if (failed(resolved))
        return kJoinedBytes;
      axes = *resolved;
    } else {
      for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
        axes.push_back(sharding::AxisRef::full(mesh, axis));
    }
    if (failed(traffic) || traffic->wireBytes <= 0)
      return kJoinedBytes;
    sharding::Link link = machine.linksOf(mesh).linkOf(mesh, axes);
    auto rounds = static_cast<double>(
        sharding::roundsOf(collective.getKind(), collective.getGroupSize(mesh), *traffic));
    double wireBytes = kBucketLatencies * (1 + rounds) * link.alpha * link.rate;
    double ofOperand = static_cast<double>(bytesOf(op)) / static_cast<double>(traffic->wireBytes);
    return static_cast<int64_t>(std::clamp(wireBytes * ofOperand, kLeastBucket, kMostBucket));
  }

  /// Adds the live ranges that an unjoined collective ends and starts.
  static void addLife(Operation *op, const Liveness &lives, JoinCandidate &candidate) {
    auto alignedOf = [](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      return alignedBytes(
          static_cast<double>(type.getNumElements() * bytesPerElement(type.getElementType())));
    };
    candidate.time = lives.timeOf(op);
    double made = 0, freed = 0;
    for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
      made += alignedOf(result);
      if (lives.of(rootOf(operand)).to <= candidate.time)
        freed += alignedOf(operand);
    }
    candidate.freed = std::max(0.0, freed - made);
    candidate.taken = std::max(0.0, made - freed);
  }

  /// Joins collectives by the plans of all-reduce, all-gather, reduce-scatter and moves, block by
  /// block, while the longer live ranges fit the budget; 0: no budget.
  void fuse(func::FuncOp function, ArrayRef<Plan> plans, double mostBytes) {
    std::optional<Liveness> lives;
    std::optional<JoinBudget> budget;
    if (mostBytes > 0) {
      lives.emplace(function);
      budget = JoinBudget{MemoryProfile(lives->end()), mostBytes};
      forEachOwn(function, *lives, [&](Value, Liveness::LiveRange life, double bytes) {
        budget->profile.add(life.from, life.to, bytes);
      });
    }
    auto kindOf = [](Operation *op) {
      return isa<AllReduceOp>(op)       ? 0
             : isa<AllGatherOp>(op)     ? 1
             : isa<ReduceScatterOp>(op) ? 2
             : isJoinableMove(op)       ? 3
                                        : -1;
    };
    SmallVector<int64_t> counts(plans.size());
    llvm::DenseMap<Operation *, int64_t> positions; // looked up, never iterated
    llvm::DenseMap<Operation *, int64_t> segments;  // of a pipeline, which would deadlock
    int64_t segment = 0;
    SmallVector<Block *> blocks;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      segment += isa<SegmentOp>(op);
      if (int kind = kindOf(op); kind >= 0) {
        positions[op] = counts[kind]++;
        segments[op] = segment;
      }
      if (!isa<linalg::LinalgOp>(op))
        for (Region &region : op->getRegions())
          for (Block &block : region)
            blocks.push_back(&block);
    });
    for (Block *block : blocks) {
      if (plans[0].mode == "ready")
        hoistAllReduces(*block);
      std::map<std::tuple<int64_t, int64_t, std::string, Meetings>, int64_t> groups;
      std::vector<int64_t> limits; // by group
      fuseInBlock(
          *block,
          [&](Operation *op) -> std::optional<JoinCandidate> {
            int kind = kindOf(op);
            bool isOne = op->getNumOperands() == 1 || isa<ExchangeOp>(op); // joined for a reader
            if (kind < 0 || plans[kind].mode == "off" || !isOne || !op->getAttr("sources"))
              return std::nullopt;
            std::optional<Meetings> meetings =
                meetingsOfAll(cast<CollectiveOpInterface>(op), *meshes);
            if (!meetings || meetings->empty() || isLocal(op))
              return std::nullopt;
            auto key = std::make_tuple(plans[kind].groupAt(positions.lookup(op)),
                                       segments.lookup(op), groupOf(op), *meetings);
            auto [group, isNew] = groups.try_emplace(key, groups.size());
            if (isNew)
              limits.push_back(plans[kind].mode == "bucket" ? bucketBytes(op)
                                                            : plans[kind].limit());
            JoinCandidate candidate{group->second, bytesOf(op), limits[group->second]};
            if (lives)
              addLife(op, *lives, candidate);
            return candidate;
          },
          budget ? &*budget : nullptr);
    }
    for (auto [plan, count] : llvm::zip(plans, counts))
      for (int64_t index : plan.mode == "index" ? ArrayRef(plan.config) : ArrayRef<int64_t>())
        if (index >= count)
          function.emitRemark() << "comm_fusion '" << plan.key << "': index " << index
                                << " is beyond the " << count << " collectives; it has no effect";
  }

  std::optional<MeshTable> meshes;
  sharding::Topology machine;

  InFlightDiagnostic error(StringRef key) {
    return getOperation().emitError() << "comm_fusion '" << key << "': ";
  }

  FailureOr<SmallVector<Plan>> readOptions() {
    SmallVector<Plan> plans(4);
    auto list = [](ArrayRef<int64_t> values) { return llvm::to_vector(values); };
    plans[0] = {"allreduce", allReduce, list(allReduceConfig), false};
    plans[1] = {"allgather", allGather, list(allGatherConfig), false};
    plans[2] = {"reducescatter", reduceScatter, list(reduceScatterConfig), false};
    plans[3] = {"moves", moves, list(movesConfig), false};
    // `config` applies to the only kind that needs a list and has none.
    Plan *taker = nullptr;
    for (Plan &plan : plans) {
      plan.ownConfig = !plan.config.empty();
      if (config.empty() || plan.ownConfig ||
          (plan.mode != "size" && plan.mode != "ready" && plan.mode != "index"))
        continue;
      if (taker)
        return error(plan.key) << "config applies to '" << taker->key
                               << "' too; give each kind its own, as in all-reduce-config";
      taker = &plan;
      plan.config.assign(config.begin(), config.end());
    }
    for (Plan &plan : plans)
      if (failed(check(plan)))
        return failure();
    if (!config.empty() && !taker)
      return error("config") << "no kind has mode size, ready or index, so it has no effect";
    return plans;
  }

  LogicalResult check(const Plan &plan) {
    bool mayIndex = plan.key == "allreduce";
    if (plan.mode == "off" || plan.mode == "auto" || plan.mode == "bucket") {
      if (plan.ownConfig)
        return error(plan.key) << "mode " << plan.mode << " takes no config";
      return success();
    }
    if (plan.mode == "size") {
      if (plan.config.size() != 1 || plan.config[0] <= 0)
        return error(plan.key) << "mode size needs config = one positive number of MiB";
      return success();
    }
    if (plan.mode == "ready" && mayIndex) {
      if (plan.config.size() != 1 || plan.config[0] < 0)
        return error(plan.key) << "mode ready needs config = one number of MiB, at least 0";
      return success();
    }
    if (plan.mode == "index" && mayIndex) {
      for (auto [i, value] : llvm::enumerate(plan.config))
        if (value < 0 || (i && value <= plan.config[i - 1]))
          return error(plan.key) << "mode index needs ascending, unique indices >= 0, found "
                                 << value;
      return success();
    }
    if (plan.mode == "index" || plan.mode == "ready")
      return error(plan.key) << "mode " << plan.mode << " is for all-reduce only";
    return error(plan.key) << "unknown mode '" << plan.mode
                           << "'; expected one of off, auto, bucket, size"
                           << (mayIndex ? ", ready, index" : "");
  }
};

} // namespace
