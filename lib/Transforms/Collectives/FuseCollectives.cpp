//===- FuseCollectives.cpp - Join collectives of one kind and group -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionSchedule.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/Liveness.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

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

/// The key that joined collectives must share: kind, mesh, axes, reduction, dimension, dtype.
std::string groupOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName() << " "
     << cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  for (NamedAttribute attribute : op->getAttrs())
    if (!isa_and_nonnull<DistDialect>(attribute.getNameDialect()) &&
        attribute.getName() != "sources" && attribute.getName() != "targets" &&
        attribute.getName() != "global_types" &&
        attribute.getName() != "dim") // each operand keeps its own layouts
      os << " " << attribute.getName().getValue() << "=" << attribute.getValue();
  return text;
}

int64_t bytesOf(Operation *op) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  return type.getNumElements() * bytesPerElement(type.getElementType());
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

/// The exchanges whose results an op reads, in its operands or its body, without duplicates. In one
/// block, in its order.
SmallVector<ExchangeOp> exchangesReadBy(Operation *op) {
  SmallVector<ExchangeOp> result;
  auto add = [&](Value value) {
    auto exchange = value.getDefiningOp<ExchangeOp>();
    if (exchange && exchange->getBlock() == op->getBlock() && exchange->getNumOperands() == 1 &&
        exchange.getSourcesAttr() && !llvm::is_contained(result, exchange))
      result.push_back(exchange);
  };
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), add); });
  llvm::sort(result, [](ExchangeOp a, ExchangeOp b) { return a->isBeforeInBlock(b); });
  return result;
}

/// A halo exchange as an exchange, which can be joined with others.
ExchangeOp exchangeOf(HaloExchangeOp halo) {
  OpBuilder b(halo);
  auto made = ExchangeOp::create(
      b, halo.getLoc(), halo->getResultTypes(), halo->getOperands(),
      cast<ShardingAttr>(halo.getSourcesAttr()[0]), cast<ShardingAttr>(halo.getTargetsAttr()[0]),
      halo.getFillAttr(), halo.getSourcesAttr(), halo.getTargetsAttr(), halo.getGlobalTypesAttr());
  made->setDiscardableAttrs(halo->getDiscardableAttrDictionary());
  return made;
}

/// Whether an op moves one tensor, and says between which layouts.
template <typename Op> bool movesOne(Op op) {
  return op && op->getNumOperands() == 1 && op.getSourcesAttr() && op.getTargetsAttr();
}

/// Whether two exchanges may be one.
bool canJoin(ExchangeOp a, ExchangeOp b) {
  auto elementOf = [](ExchangeOp each) {
    return cast<RankedTensorType>(each->getResult(0).getType()).getElementType();
  };
  return elementOf(a) == elementOf(b) && a.getFillAttr() == b.getFillAttr() &&
         a.getFrom().getMesh() == b.getFrom().getMesh() &&
         a.getTo().getMesh() == b.getTo().getMesh();
}

/// Makes exchanges of halos that an op reads beside one.
void exchangeHalos(Operation *reader) {
  SmallVector<ExchangeOp> exchanges = exchangesReadBy(reader);
  llvm::SmallSetVector<Operation *, 4> halos;
  for (Value operand : reader->getOperands())
    if (auto halo = operand.getDefiningOp<HaloExchangeOp>();
        movesOne(halo) && halo->getBlock() == reader->getBlock())
      halos.insert(halo);
  for (Operation *op : halos) {
    auto halo = cast<HaloExchangeOp>(op);
    ExchangeOp made = exchangeOf(halo);
    if (llvm::none_of(exchanges, [&](ExchangeOp other) { return canJoin(made, other); })) {
      made.erase();
      continue;
    }
    halo->replaceAllUsesWith(made);
    halo.erase();
  }
}

/// One exchange for several, at the place of `at`. The others must be replaced by it.
ExchangeOp exchangeTogether(ArrayRef<ExchangeOp> joined, ExchangeOp at) {
  SmallVector<Type> types;
  SmallVector<Value> operands;
  SmallVector<Attribute> sources, targets, globals;
  SmallVector<Location> locs;
  for (ExchangeOp op : joined) {
    llvm::append_range(types, op->getResultTypes());
    llvm::append_range(operands, op->getOperands());
    llvm::append_range(sources, op.getSourcesAttr());
    llvm::append_range(targets, op.getTargetsAttr());
    llvm::append_range(globals, op.getGlobalTypesAttr());
    if (!llvm::is_contained(locs, op.getLoc()))
      locs.push_back(op.getLoc());
  }
  OpBuilder b(at);
  ExchangeOp first = joined.front();
  auto made = ExchangeOp::create(b, b.getFusedLoc(locs), types, operands, first.getFrom(),
                                 first.getTo(), at.getFillAttr(), b.getArrayAttr(sources),
                                 b.getArrayAttr(targets), b.getArrayAttr(globals));
  if (Attribute reason = first->getAttr(DistDialect::kReason))
    made->setAttr(DistDialect::kReason, reason);
  return made;
}

void replaceWith(ExchangeOp made, ArrayRef<ExchangeOp> joined) {
  unsigned next = 0;
  for (ExchangeOp op : joined)
    for (Value old : op->getResults()) {
      Value result = made->getResult(next++);
      if (ShardingAttr sharding = getSharding(old)) {
        setSharding(result, sharding);
        setGlobalType(result, getGlobalType(old));
      }
      old.replaceAllUsesWith(result);
    }
  for (ExchangeOp op : joined)
    op.erase();
}

/// Joins the exchanges of the value that an exchange moves where that sends less: different devices
/// may be the busiest. Returns the exchange in its place.
ExchangeOp joinExchangesLike(ExchangeOp first, const MeshTable &meshes) {
  SmallVector<Operation *> moves; // halos among them
  for (Operation *user : first->getOperand(0).getUsers())
    if (user->getBlock() == first->getBlock() &&
        (movesOne(dyn_cast<ExchangeOp>(user)) || movesOne(dyn_cast<HaloExchangeOp>(user))))
      moves.push_back(user);
  llvm::sort(moves, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  auto bytesOf = [&](Operation *op) {
    auto collective = cast<CollectiveOpInterface>(op);
    FailureOr<sharding::Traffic> traffic =
        collective.getTraffic(meshes.get(collective.getMeshAttr()));
    return succeeded(traffic) ? traffic->wireBytes : 0;
  };
  SmallVector<ExchangeOp> all;
  SmallVector<std::pair<HaloExchangeOp, ExchangeOp>> halos;
  int64_t apart = 0;
  for (Operation *op : moves) {
    auto halo = dyn_cast<HaloExchangeOp>(op);
    ExchangeOp exchange = halo ? exchangeOf(halo) : cast<ExchangeOp>(op);
    if (!canJoin(exchange, first)) {
      if (halo)
        exchange.erase();
      continue;
    }
    if (halo)
      halos.push_back({halo, exchange});
    all.push_back(exchange);
    apart += bytesOf(op);
  }
  ExchangeOp made = all.size() > 1 ? exchangeTogether(all, all.front()) : nullptr;
  if (made && bytesOf(made) < apart) {
    for (auto [halo, exchange] : halos) {
      halo->replaceAllUsesWith(exchange);
      halo.erase();
    }
    replaceWith(made, all);
    return made;
  }
  if (made)
    made.erase();
  for (auto [halo, exchange] : halos)
    exchange.erase();
  return first;
}

/// Joins the exchanges of each value of a block.
void joinExchangesOfValues(Block &block, const MeshTable &meshes) {
  for (Operation *op = block.empty() ? nullptr : &block.front(); op; op = op->getNextNode())
    if (auto exchange = dyn_cast<ExchangeOp>(op); movesOne(exchange))
      op = joinExchangesLike(exchange, meshes);
}

/// Joins the exchanges that one op reads: together they cost the busiest device less than one by
/// one.
void joinExchanges(Operation *reader) {
  if (!isa<linalg::LinalgOp, tensor::ConcatOp, tensor::InsertSliceOp>(reader))
    return;
  exchangeHalos(reader);
  SmallVector<ExchangeOp> all = exchangesReadBy(reader);
  if (all.size() < 2)
    return;
  ExchangeOp last = all.back();
  auto isOne = [&](ExchangeOp op) {
    // Other readers of its result wait for the last of them.
    bool isFree = llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
      return here && last->isBeforeInBlock(here);
    });
    return op == last || (isFree && canJoin(op, last));
  };
  SmallVector<ExchangeOp> joined = llvm::filter_to_vector(all, isOne);
  if (joined.size() < 2)
    return;
  ExchangeOp made = exchangeTogether(joined, last);
  replaceWith(made, joined);
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
        function.walk([](Operation *op) { joinExchanges(op); });
        function.walk([&](Block *block) { joinExchangesOfValues(*block, *meshes); });
        fuse(function, *plans, *budget);
      }
  }

  /// Limit on the operand bytes of a bucket with `op`: larger buckets are ready later, smaller ones
  /// are mostly latency.
  int64_t bucketBytes(Operation *op) {
    auto collective = cast<CollectiveOpInterface>(op);
    const sharding::Mesh &mesh = meshes->get(collective.getMeshAttr());
    FailureOr<sharding::Traffic> traffic = collective.getTraffic(mesh);
    AxisListAttr group = collective.getGroupAxes();
    FailureOr<sharding::AxisList> axes =
        resolveAxes(group, mesh, [&]() { return op->emitOpError(); });
    if (failed(traffic) || failed(axes) || traffic->wireBytes <= 0)
      return kJoinedBytes;
    sharding::Link link = machine.linksOf(mesh).linkOf(mesh, *axes);
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
    Liveness::LiveRange operand = lives.of(rootOf(op->getOperand(0)));
    double made = alignedOf(op->getResult(0));
    double freed = operand.to <= candidate.time ? alignedOf(op->getOperand(0)) : 0;
    candidate.freed = std::max(0.0, freed - made);
    candidate.taken = std::max(0.0, made - freed);
  }

  /// Joins collectives by the plans of all-reduce, all-gather and reduce-scatter, block by block,
  /// while the longer live ranges fit the budget; 0: no budget.
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
      std::map<std::tuple<int64_t, int64_t, std::string>, int64_t> groups;
      std::vector<int64_t> limits; // by group
      fuseInBlock(
          *block,
          [&](Operation *op) -> std::optional<JoinCandidate> {
            int kind = kindOf(op);
            if (kind < 0 || plans[kind].mode == "off" || op->getNumOperands() != 1 ||
                !op->getAttr("sources"))
              return std::nullopt;
            auto key = std::make_tuple(plans[kind].groupAt(positions.lookup(op)),
                                       segments.lookup(op), groupOf(op));
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
    SmallVector<Plan> plans(3);
    auto list = [](ArrayRef<int64_t> values) { return llvm::to_vector(values); };
    plans[0] = {"allreduce", allReduce, list(allReduceConfig), false};
    plans[1] = {"allgather", allGather, list(allGatherConfig), false};
    plans[2] = {"reducescatter", reduceScatter, list(reduceScatterConfig), false};
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
