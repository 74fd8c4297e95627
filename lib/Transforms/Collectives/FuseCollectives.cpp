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

class Fuser {
public:
  Fuser(Block &block, StringRef mode, ArrayRef<int64_t> config)
      : block(block), mode(mode), config(config) {}

  /// Fuses all ops of one kind. A member may join an earlier one's bucket when everything that uses
  /// the earlier results can wait for it, and nothing it needs depends on them.
  template <typename Op> void run() {
    if (mode == "off")
      return;
    number();
    std::map<std::string, SmallVector<Bucket>> open;
    int64_t index = 0;
    SmallVector<Op> ops(block.getOps<Op>());
    for (Op op : ops) {
      int64_t position = index++;
      if (op->getNumOperands() != 1 || !op.getSourcesAttr())
        continue;
      int64_t bytes = bytesOf(op);
      SmallVector<Bucket> &buckets = open[groupOf(op)];
      bool cutHere = mode == "index" && llvm::is_contained(config, position);
      if (!buckets.empty() && !cutHere && bytes + buckets.back().bytes <= limit() &&
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
  int64_t limit() const {
    if (mode == "size")
      return config.front() * kMiB;
    return mode == "index" ? std::numeric_limits<int64_t>::max() : kAutoBytes;
  }

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
  StringRef mode;
  ArrayRef<int64_t> config;
  llvm::DenseMap<Operation *, int64_t> order;
};

struct DistFuseCollectives : dist::impl::DistFuseCollectivesBase<DistFuseCollectives> {
  using DistFuseCollectivesBase::DistFuseCollectivesBase;

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    SmallVector<int64_t> values(config.begin(), config.end());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function))
        continue;
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) {
        if (!isa<linalg::LinalgOp>(block->getParentOp()))
          blocks.push_back(block);
      });
      for (Block *block : blocks) {
        Fuser(*block, allReduce, values).run<AllReduceOp>();
        Fuser(*block, allGather, values).run<AllGatherOp>();
        Fuser(*block, reduceScatter, values).run<ReduceScatterOp>();
      }
    }
  }

  LogicalResult checkOptions() {
    auto check = [&](StringRef key, StringRef mode, bool mayIndex) -> LogicalResult {
      auto error = [&]() { return getOperation().emitError() << "comm_fusion '" << key << "': "; };
      if (mode == "off" || mode == "auto")
        return success();
      if (mode == "size") {
        if (config.size() != 1 || config[0] <= 0)
          return error() << "mode size needs config = one positive number of MiB";
        return success();
      }
      if (mode == "index" && mayIndex) {
        for (auto [i, value] : llvm::enumerate(config))
          if (value < 0 || (i && value <= config[i - 1]))
            return error() << "mode index needs ascending, unique indices >= 0, found " << value;
        return success();
      }
      if (mode == "index")
        return error() << "mode index is for all-reduce only";
      return error() << "unknown mode '" << mode << "'; it is one of off, auto, size"
                     << (mayIndex ? ", index" : "");
    };
    if (failed(check("allreduce", allReduce, true)) || failed(check("allgather", allGather, false)))
      return failure();
    return check("reducescatter", reduceScatter, false);
  }
};

} // namespace
