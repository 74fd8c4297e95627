//===- FuseCollectives.cpp - Join collectives of one kind and group --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTFUSECOLLECTIVES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static constexpr int64_t kAutoBytes = int64_t(64) << 20;
static constexpr int64_t kMiB = int64_t(1) << 20;

namespace {

/// Collectives that may become one, in program order.
struct Bucket {
  SmallVector<Operation *> members;
  int64_t bytes = 0;
};

/// What must agree for two collectives to be one: kind, mesh, axes, reduction, dimension, dtype.
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
  StringRef key; ///< the kind, as messages call it
  std::string mode;
  SmallVector<int64_t> config;
  bool ownConfig = false; ///< given for this kind alone

  /// Bytes that a bucket of several members may have.
  int64_t limit() const {
    int64_t most = std::numeric_limits<int64_t>::max();
    if (mode == "size")
      return config.front() > most / kMiB ? most : config.front() * kMiB;
    return mode == "index" && !config.empty() ? most : kAutoBytes;
  }

  /// Which of the groups that the indices make has member `position`: [20, 35] sends 0..19 to 0,
  /// 20..34 to 1, the rest to 2.
  int64_t groupAt(int64_t position) const {
    return mode == "index" ? llvm::upper_bound(config, position) - config.begin() : 0;
  }
};

class Fuser {
public:
  /// `positions`: the place of each op of the kind among those of its function.
  Fuser(Block &block, const Plan &plan, const llvm::DenseMap<Operation *, int64_t> &positions)
      : block(block), plan(plan), positions(positions) {}

  /// Fuses all ops of one kind. A member may join an earlier one's bucket when everything that uses
  /// the earlier results can wait for it, and nothing it needs depends on them.
  template <typename Op> void run() {
    number();
    std::map<std::pair<int64_t, std::string>, SmallVector<Bucket>> open;
    SmallVector<Op> ops(block.getOps<Op>());
    for (Op op : ops) {
      if (op->getNumOperands() != 1 || !op.getSourcesAttr())
        continue;
      int64_t bytes = bytesOf(op);
      SmallVector<Bucket> &buckets = open[{plan.groupAt(positions.lookup(op)), groupOf(op)}];
      if (!buckets.empty() && bytes <= plan.limit() - buckets.back().bytes &&
          llvm::none_of(buckets.back().members,
                        [&](Operation *other) { return reaches(other, op); })) {
        buckets.back().members.push_back(op);
        buckets.back().bytes += bytes;
      } else {
        buckets.push_back({{op}, bytes});
      }
    }
    for (auto &[group, buckets] : open)
      for (Bucket &bucket : buckets)
        fuseWhatIsIndependent<Op>(bucket);
  }

private:
  void number() {
    order.clear();
    int64_t n = 0;
    for (Operation &op : block)
      order[&op] = n++;
  }

  /// Whether `to` depends on `from`, both in the block.
  bool reaches(Operation *from, Operation *to) {
    int64_t first = order[from];
    SmallVector<Operation *> work{to};
    llvm::SmallPtrSet<Operation *, 32> seen;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (op == from)
        return true;
      auto visit = [&](Value value) {
        Operation *producer = value.getDefiningOp();
        producer = producer ? block.findAncestorOpInBlock(*producer) : nullptr;
        if (producer && order[producer] >= first && seen.insert(producer).second)
          work.push_back(producer);
      };
      llvm::for_each(op->getOperands(), visit);
      llvm::SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      llvm::for_each(captured, visit);
    }
    return false;
  }

  /// Fusing one bucket ties its members together: members of another that were independent of each other
  /// may now depend through it. Those begin a bucket of their own.
  template <typename Op> void fuseWhatIsIndependent(Bucket &bucket) {
    // An earlier fusion may have moved members past each other, too.
    llvm::sort(bucket.members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    SmallVector<Operation *> rest = bucket.members;
    while (!rest.empty()) {
      Bucket independent;
      SmallVector<Operation *> later;
      for (Operation *op : rest)
        if (later.empty() && llvm::none_of(independent.members, [&](Operation *other) {
              return reaches(other, op);
            }))
          independent.members.push_back(op);
        else
          later.push_back(op);
      if (independent.members.size() > 1)
        fuse<Op>(independent);
      rest = std::move(later);
    }
  }

  template <typename Op> void fuse(Bucket &bucket) {
    // The fused op stands where the last member stood; users of earlier members that come before it
    // move behind it, with all that depends on them.
    Operation *last = bucket.members.back();
    moveUsersBehind(bucket, last);
    OpBuilder builder(last);
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Location> locations;
    SmallVector<Attribute> sources, targets, globals, shardings, reasons;
    for (Operation *member : bucket.members) {
      operands.push_back(member->getOperand(0));
      types.push_back(member->getResult(0).getType());
      locations.push_back(member->getLoc());
      sources.push_back(cast<Op>(member).getSourcesAttr()[0]);
      targets.push_back(cast<Op>(member).getTargetsAttr()[0]);
      globals.push_back(cast<Op>(member).getGlobalTypesAttr()[0]);
      shardings.push_back(getSharding(member->getResult(0)));
      if (Attribute reason = member->getAttr(DistDialect::kReason))
        if (!llvm::is_contained(reasons, reason))
          reasons.push_back(reason);
    }
    OperationState state(builder.getFusedLoc(locations), Op::getOperationName(), operands, types,
                         {});
    for (NamedAttribute attribute : last->getAttrs())
      if (!isa_and_nonnull<DistDialect>(attribute.getNameDialect()))
        state.addAttribute(attribute.getName(), attribute.getValue());
    state.attributes.set("sources", builder.getArrayAttr(sources));
    state.attributes.set("targets", builder.getArrayAttr(targets));
    state.attributes.set("global_types", builder.getArrayAttr(globals));
    state.attributes.set(DistDialect::kShardings, builder.getArrayAttr(shardings));
    state.attributes.set(DistDialect::kGlobalType, builder.getArrayAttr(globals));
    std::string why;
    for (Attribute reason : reasons)
      why += (why.empty() ? "" : "; ") + cast<StringAttr>(reason).str();
    if (!why.empty())
      state.attributes.set(DistDialect::kReason, builder.getStringAttr(why));
    Operation *fused = builder.create(state);
    for (auto [member, result] : llvm::zip(bucket.members, fused->getResults())) {
      member->getResult(0).replaceAllUsesWith(result);
      member->erase();
    }
    number();
  }

  void moveUsersBehind(Bucket &bucket, Operation *last) {
    llvm::SmallPtrSet<Operation *, 32> behind;
    SmallVector<Operation *> moved;
    for (Operation *member : bucket.members)
      behind.insert(member);
    for (Operation &op :
         llvm::make_range(bucket.members.front()->getIterator(), last->getIterator())) {
      if (behind.contains(&op))
        continue;
      bool depends = false;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands()) {
          Operation *producer = operand.getDefiningOp();
          producer = producer ? block.findAncestorOpInBlock(*producer) : nullptr;
          depends = depends || (producer && behind.contains(producer));
        }
      });
      if (depends) {
        behind.insert(&op);
        moved.push_back(&op);
      }
    }
    Operation *after = last;
    for (Operation *op : moved) {
      op->moveAfter(after);
      after = op;
    }
  }

  Block &block;
  const Plan &plan;
  const llvm::DenseMap<Operation *, int64_t> &positions; // looked up, never iterated
  llvm::DenseMap<Operation *, int64_t> order;
};

struct DistFuseCollectives : dist::impl::DistFuseCollectivesBase<DistFuseCollectives> {
  using DistFuseCollectivesBase::DistFuseCollectivesBase;

  void runOnOperation() override {
    FailureOr<SmallVector<Plan>> plans = readOptions();
    if (failed(plans))
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function))
        continue;
      SmallVector<Block *> blocks;
      function.walk<WalkOrder::PreOrder>([&](Block *block) {
        if (!isa<linalg::LinalgOp>(block->getParentOp()))
          blocks.push_back(block);
      });
      fuseAll<AllReduceOp>(function, blocks, (*plans)[0]);
      fuseAll<AllGatherOp>(function, blocks, (*plans)[1]);
      fuseAll<ReduceScatterOp>(function, blocks, (*plans)[2]);
    }
  }

  template <typename Op>
  static void fuseAll(func::FuncOp function, ArrayRef<Block *> blocks, const Plan &plan) {
    if (plan.mode == "off")
      return;
    int64_t count = 0;
    llvm::DenseMap<Operation *, int64_t> positions;
    function.walk<WalkOrder::PreOrder>([&](Op op) { positions[op] = count++; });
    for (Block *block : blocks)
      Fuser(*block, plan, positions).run<Op>();
    if (plan.mode == "index")
      for (int64_t index : plan.config)
        if (index >= count)
          function.emitRemark() << "comm_fusion '" << plan.key << "': index " << index
                                << " is beyond the " << count << " there are; it cuts nothing";
  }

  InFlightDiagnostic error(StringRef key) {
    return getOperation().emitError() << "comm_fusion '" << key << "': ";
  }

  FailureOr<SmallVector<Plan>> readOptions() {
    SmallVector<Plan> plans(3);
    auto list = [](ArrayRef<int64_t> values) { return llvm::to_vector(values); };
    plans[0] = {"allreduce", allReduce, list(allReduceConfig), false};
    plans[1] = {"allgather", allGather, list(allGatherConfig), false};
    plans[2] = {"reducescatter", reduceScatter, list(reduceScatterConfig), false};
    // `config` belongs to the one kind that wants a list and has none.
    Plan *taker = nullptr;
    for (Plan &plan : plans) {
      plan.ownConfig = !plan.config.empty();
      if (config.empty() || plan.ownConfig || (plan.mode != "size" && plan.mode != "index"))
        continue;
      if (taker)
        return error(plan.key) << "config is that of '" << taker->key
                               << "' as well; give each kind its own, as in all-reduce-config";
      taker = &plan;
      plan.config.assign(config.begin(), config.end());
    }
    for (Plan &plan : plans)
      if (failed(check(plan)))
        return failure();
    if (!config.empty() && !taker)
      return error("config") << "no kind has mode size or index, so nothing reads it";
    return plans;
  }

  LogicalResult check(const Plan &plan) {
    bool mayIndex = plan.key == "allreduce";
    if (plan.mode == "off" || plan.mode == "auto") {
      if (plan.ownConfig)
        return error(plan.key) << "mode " << plan.mode << " takes no config";
      return success();
    }
    if (plan.mode == "size") {
      if (plan.config.size() != 1 || plan.config[0] <= 0)
        return error(plan.key) << "mode size needs config = one positive number of MiB";
      return success();
    }
    if (plan.mode == "index" && mayIndex) {
      for (auto [i, value] : llvm::enumerate(plan.config))
        if (value < 0 || (i && value <= plan.config[i - 1]))
          return error(plan.key) << "mode index needs ascending, unique indices >= 0, found "
                                 << value;
      return success();
    }
    if (plan.mode == "index")
      return error(plan.key) << "mode index is for all-reduce only";
    return error(plan.key) << "unknown mode '" << plan.mode << "'; it is one of off, auto, size"
                           << (mayIndex ? ", index" : "");
  }
};

} // namespace
