//===- InsertReshards.cpp - Reshard where a use needs another sharding ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sources.h"
#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/Selections.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTINSERTRESHARDS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// "partial sums reduced: ", by the kind of the contributions.
static std::string reductionsOf(const TensorSharding &sharding) {
  StringRef kind = "results";
  bool isOneKind = llvm::all_of(sharding.partial, [&](const sharding::PartialAxis &axis) {
    return axis.kind == sharding.partial.front().kind;
  });
  if (isOneKind)
    switch (sharding.partial.front().kind) {
    case sharding::ReduceKind::sum:
      kind = "sums";
      break;
    case sharding::ReduceKind::avg:
      kind = "means";
      break;
    case sharding::ReduceKind::max:
      kind = "maxima";
      break;
    case sharding::ReduceKind::min:
      kind = "minima";
      break;
    case sharding::ReduceKind::prod:
      kind = "products";
      break;
    }
  return "partial " + kind.str() + " reduced: ";
}

namespace {

/// One use of a value and the sharding that it needs.
struct RequiredUse {
  OpOperand *use;
  ShardingAttr sharding;
  std::string reason;
};

class ReshardInserter {
public:
  ReshardInserter(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings)
      : function(function), meshes(meshes), shardings(shardings), signature(function),
        sources(meshes, shardings) {}

  void run() {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != function)
        collect(op);
    });
    signature.write();
    for (auto &[value, list] : needs)
      satisfy(value, list);
    sources.eraseReplaced();
    dropConstraints();
  }

private:
  void need(OpOperand &use, ShardingAttr sharding, std::string reason) {
    if (sharding && isa<RankedTensorType>(use.get().getType()))
      needs[use.get()].push_back({&use, sharding, std::move(reason)});
  }

  /// Operands of control flow have the sharding of the values that they become.
  void collectForwarded(RegionBranchOpInterface op) {
    bool loops = isa<LoopLikeOpInterface>(op.getOperation());
    llvm::SmallPtrSet<OpOperand *, 8> seen; // a loop's argument has the sharding of its result
    forEachForwardedUse(op, [&](OpOperand &use, Value receiver) {
      if (isa<RankedTensorType>(receiver.getType()) && seen.insert(&use).second)
        need(use, getSharding(receiver),
             loops ? "required by a loop-carried value"
                   : "required by the result of both branches");
    });
  }

  /// A result has its annotated sharding; one that feeds an argument has that of the argument, so
  /// that the reshard for the next step is part of this one.
  void collectResult(OpOperand &use) {
    unsigned index = use.getOperandNumber();
    auto own = function.getResultAttrOfType<ShardingAttr>(index, DistDialect::kSharding);
    if (auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds)) {
      BlockArgument fed = function.getArgument(feeds.getInt());
      if (ShardingAttr wanted = getSharding(fed); wanted && wanted != own) {
        signature.ofResult(index).set(DistDialect::kSharding, wanted);
        return need(use, wanted,
                    "required by argument '" + argumentName(function, fed.getArgNumber()) +
                        "', which it feeds");
      }
    }
    need(use, own, "required by result '" + resultName(function, index) + "'");
  }

  /// Whether devices hold the whole value of which a slice is taken.
  bool hasSliceOf(Value value, ShardingAttr wanted) {
    ShardingAttr own = getSharding(value);
    return own && own.getMesh() == wanted.getMesh() &&
           sharding::hasSelection(resolveVerified(own, meshes, value.getType()),
                                  resolveVerified(wanted, meshes, value.getType()));
  }

  void collect(Operation *op) {
    if (isa<ReshardOp>(op))
      return; // an explicit reshard accepts any sharding
    if (auto constraint = dyn_cast<ShardTensorOp>(op))
      return need(op->getOpOperand(0), constraint.getSharding(), "required by dist.shard_tensor");
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      for (OpOperand &use : ret->getOpOperands())
        collectResult(use);
      return;
    }
    if (auto controlFlow = dyn_cast<RegionBranchOpInterface>(op))
      return collectForwarded(controlFlow);
    if (isControlFlowEnd(op))
      return;
    if (llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
      return;
    for (auto [use, wanted] : llvm::zip(op->getOpOperands(), shardings.of(op).operands))
      if (wanted && !(isa<tensor::ExtractSliceOp>(op) && hasSliceOf(use.get(), wanted)))
        need(use, wanted,
             "required by operand " + std::to_string(use.getOperandNumber()) + " of " +
                 op->getName().getStringRef().str());
  }

  /// Places the reshards of one value: a sharding that several uses need is made once, after the
  /// value; a partial value that is needed in several shardings is reduced once before it is cut.
  void satisfy(Value value, ArrayRef<RequiredUse> list) {
    ShardingAttr own = getSharding(value);
    if (!own)
      return;
    llvm::MapVector<ShardingAttr, SmallVector<const RequiredUse *>> bySharding;
    for (const RequiredUse &need : list)
      if (need.sharding != own)
        bySharding[need.sharding].push_back(&need);
    if (bySharding.empty())
      return;
    if (Operation *source = value.getDefiningOp(); source && Sources::isSource(source))
      for (auto &[sharding, uses] : bySharding)
        if (Value made = rebuildSource(source, sharding, uses.front()->reason)) {
          for (const RequiredUse *need : uses)
            need->use->set(made);
          uses.clear();
          sources.replaced(source);
        }
    bySharding.remove_if([](auto &entry) { return entry.second.empty(); });
    if (bySharding.empty())
      return;
    Value base = value;
    TensorSharding current = resolveVerified(own, meshes, value.getType());
    bool targetsWhole = llvm::all_of(bySharding, [&](auto &entry) {
      return entry.first.getMesh() == own.getMesh() &&
             !resolveVerified(entry.first, meshes, value.getType()).isPartial();
    });
    if (current.isPartial() && bySharding.size() > 1 && targetsWhole) {
      ShardingAttr reduced = ShardingAttr::get(own.getMesh(), meshes.get(own.getMesh()),
                                               current.withoutPartial(), function.getContext());
      base = reshard(value, reduced, reductionsOf(current) + "required by several uses", nullptr);
    }
    llvm::SmallDenseMap<ShardingAttr, Value> cutFrom = moveOnce(base, bySharding);
    std::string why = getSharding(base) == own && current.isPartial() ? reductionsOf(current) : "";
    // Values also needed as contributions, and selected elements of what is also needed whole, are
    // created from the latter.
    llvm::SmallDenseMap<ShardingAttr, Value> moved; // looked up only
    for (bool isPart : {false, true})
      for (auto &[sharding, uses] : bySharding) {
        TensorSharding wanted = resolveVerified(sharding, meshes, value.getType());
        TensorSharding whole =
            sharding::withoutSelections(current.isPartial() ? wanted : wanted.withoutPartial());
        if (isPart != (whole != wanted))
          continue;
        Value from = cutFrom.lookup(sharding);
        if (!from && isPart)
          from = moved.lookup(ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                                                whole, function.getContext()));
        if (Value made = serve(value, from ? from : base, sharding, uses, why))
          moved[sharding] = made;
      }
  }

  /// Reshards `base`, which stands for `value`, for some uses. Returns the reshard shared by uses
  /// outside of branches, which those inside take as well, or null: if there is none, a use inside
  /// a branch has its own, which runs only when the branch is taken.
  Value serve(Value value, Value base, ShardingAttr sharding, ArrayRef<const RequiredUse *> uses,
              const std::string &why) {
    auto shared = llvm::find_if(
        uses, [&](const RequiredUse *need) { return !isInBranch(need->use->getOwner(), value); });
    if (shared == uses.end()) {
      for (const RequiredUse *need : uses)
        need->use->set(reshard(base, sharding, why + need->reason, need->use->getOwner()));
      return {};
    }
    Value moved = getSharding(base) == sharding
                      ? base
                      : reshard(base, sharding, why + (*shared)->reason, nullptr);
    for (const RequiredUse *need : uses)
      need->use->set(moved);
    return moved;
  }

  /// Shifted reads of one value need overlapping windows: if the union of all windows along the
  /// same dimensions is smaller than what they take apart, it is moved once, and each window is cut
  /// from it. Returns the union by sharding, without windows that are moved separately.
  llvm::SmallDenseMap<ShardingAttr, Value>
  moveOnce(Value base,
           llvm::MapVector<ShardingAttr, SmallVector<const RequiredUse *>> &bySharding) {
    llvm::SmallDenseMap<ShardingAttr, Value> cutFrom; // looked up only
    auto type = cast<RankedTensorType>(base.getType());
    ShardingAttr own = getSharding(base);
    TensorSharding current = resolveVerified(own, meshes, type);
    const sharding::Mesh &mesh = meshes.get(own.getMesh());
    if (!current.windows.empty() || current.isPartial() || bySharding.size() < 2)
      return cutFrom;
    std::vector<int64_t> shape = shapeOf(type);
    sharding::Layout has = sharding::makeLayout(current, shape);
    auto bytesTo = [&](const TensorSharding &target) {
      return sharding::trafficOf(sharding::CollectiveKind::exchange, mesh.numDevices(), 1, mesh,
                                 has, mesh, sharding::makeLayout(target, shape))
          .wireBytes;
    };
    // Exchanges of one value are joined later.
    auto bytesOfAll = [&](ArrayRef<ShardingAttr> targets) {
      std::vector<sharding::MovedTensor> moved;
      for (ShardingAttr target : targets) {
        sharding::Layout wants = sharding::makeLayout(resolveVerified(target, meshes, type), shape);
        moved.push_back({1, sharding::selectLike(has, wants), wants});
      }
      return sharding::trafficOf(sharding::CollectiveKind::exchange, mesh.numDevices(), mesh, mesh,
                                 moved)
          .wireBytes;
    };
    struct WindowGroup {
      TensorSharding hull;
      SmallVector<ShardingAttr> members;
    };
    // Windows that one op reads are moved by one exchange, whose busiest device counts.
    auto bytesApart = [&](ArrayRef<ShardingAttr> members) {
      llvm::MapVector<Operation *, std::vector<sharding::MovedTensor>> byReader;
      for (ShardingAttr member : members)
        byReader[bySharding[member].front()->use->getOwner()].push_back(
            {1, sharding::makeLayout(current, shape),
             sharding::makeLayout(resolveVerified(member, meshes, type), shape)});
      int64_t bytes = 0;
      for (auto &[reader, tensors] : byReader)
        bytes += sharding::trafficOf(sharding::CollectiveKind::exchange, mesh.numDevices(), mesh,
                                     mesh, tensors)
                     .wireBytes;
      return bytes;
    };
    SmallVector<WindowGroup, 2> groups;
    for (auto &[sharding, uses] : bySharding) {
      TensorSharding wanted = resolveVerified(sharding, meshes, type);
      // One value after `base` serves all uses: none may be in a branch, and all must need windows.
      if (sharding.getMesh() != own.getMesh() || wanted.isPartial() ||
          llvm::any_of(uses, [&](const RequiredUse *need) {
            return isInBranch(need->use->getOwner(), base);
          }))
        return cutFrom;
      // Not one of what is far apart, as the rows that a roll takes from the other end.
      auto group = llvm::find_if(groups, [&](WindowGroup &other) {
        TensorSharding hull = other.hull;
        if (!widenHull(hull, wanted, shape) ||
            bytesTo(hull) > bytesTo(other.hull) + bytesTo(wanted))
          return false;
        other.hull = std::move(hull);
        return true;
      });
      if (group != groups.end()) {
        group->members.push_back(sharding);
      } else if (TensorSharding hull; startHull(hull, wanted, shape)) {
        groups.push_back({hull, {sharding}});
      } else {
        return cutFrom;
      }
    }
    for (const WindowGroup &group : groups) {
      if (group.members.size() < 2 || bytesTo(group.hull) >= bytesApart(group.members) ||
          bytesTo(group.hull) > bytesOfAll(group.members))
        continue;
      Value hull = reshard(
          base, ShardingAttr::get(own.getMesh(), mesh, group.hull, function.getContext()),
          "several of its windows are read: " + bySharding[group.members[0]].front()->reason,
          nullptr);
      for (ShardingAttr member : group.members)
        cutFrom[member] = hull;
    }
    return cutFrom;
  }

  /// A window of the elements begin, begin + stride, ... of a dimension as one of all elements with
  /// that phase, begin % stride; nothing where its elements are not a run of those.
  static std::optional<sharding::Window> asRun(sharding::Window window, int64_t extent) {
    if (window.divisor != 1 || window.step < 0)
      return std::nullopt;
    if (!window.isSelection())
      window.count = extent;
    return window;
  }
  /// The place of a window's first element among those of its phase.
  static int64_t firstOf(const sharding::Window &window) { return window.begin / window.stride; }
  static bool startHull(TensorSharding &hull, const TensorSharding &wanted,
                        const std::vector<int64_t> &shape) {
    hull = wanted;
    for (sharding::Window &window : hull.windows) {
      std::optional<sharding::Window> run = asRun(window, shape[window.dim]);
      if (!run || wanted.dims[window.dim].empty())
        return false;
      window = *run;
    }
    return !hull.windows.empty();
  }
  static bool widenHull(TensorSharding &hull, const TensorSharding &wanted,
                        const std::vector<int64_t> &shape) {
    if (hull.dims != wanted.dims || hull.windows.size() != wanted.windows.size())
      return false;
    for (auto [all, one] : llvm::zip_equal(hull.windows, wanted.windows))
      if (all.dim != one.dim || all.step != one.step || all.stride != one.stride ||
          all.begin % all.stride != one.begin % one.stride || !asRun(one, shape[one.dim]))
        return false;
    for (auto [all, one] : llvm::zip_equal(hull.windows, wanted.windows)) {
      sharding::Window run = *asRun(one, shape[one.dim]);
      int64_t low = std::min(firstOf(all), firstOf(run));
      int64_t high = std::max(firstOf(all) + all.count, firstOf(run) + run.count);
      int64_t first = std::min(all.offset + firstOf(all), run.offset + firstOf(run));
      int64_t last =
          std::max(all.offset + firstOf(all) + all.length, run.offset + firstOf(run) + run.length);
      all.begin = all.begin % all.stride + low * all.stride;
      all.count = high - low;
      all.offset = first - low;
      all.length = last - first;
    }
    return true;
  }

  /// A source with another sharding; null if that is impossible. Its contributions are its value on
  /// one device of each group.
  Value rebuildSource(Operation *source, ShardingAttr sharding, const std::string &reason) {
    TensorSharding wanted = resolveVerified(sharding, meshes, source->getResult(0).getType());
    if (!wanted.isPartial() || !wanted.windows.empty())
      return sources.make(source, sharding);
    ShardingAttr whole = ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                                           wanted.withoutPartial(), function.getContext());
    Value made = whole == getSharding(source->getResult(0)) ? source->getResult(0)
                                                            : sources.make(source, whole);
    return made ? reshard(made, sharding, reason, nullptr) : Value();
  }

  /// The op whose body contains the reader: reshards are between ops of the program, not in
  /// elementwise bodies.
  static Operation *outsideBodies(Operation *reader) {
    Operation *result = reader;
    for (Operation *op = reader->getParentOp(); op; op = op->getParentOp())
      if (isa<linalg::LinalgOp, tensor::PadOp, tensor::GenerateOp>(op))
        result = op;
    return result;
  }

  static bool isInBranch(Operation *user, Value value) {
    for (Operation *op = outsideBodies(user)->getParentOp();
         op && op != value.getParentBlock()->getParentOp(); op = op->getParentOp())
      if (isControlFlow(op) && !isa<LoopLikeOpInterface>(op))
        return true;
    return false;
  }

  /// A reshard before `before`, or directly after the value if that is null.
  Value reshard(Value value, ShardingAttr sharding, const std::string &reason, Operation *before) {
    OpBuilder builder(function.getContext());
    if (before) {
      builder.setInsertionPoint(outsideBodies(before));
    } else {
      // Several after one op, or at the head of one block, keep the order of their creation.
      if (Operation *last = lastBehind.lookup(anchorOf(value)))
        builder.setInsertionPointAfter(last);
      else
        builder.setInsertionPointAfterValue(value);
    }
    auto op = ReshardOp::create(builder, value.getLoc(), value.getType(), value, sharding);
    op->setAttr(DistDialect::kReason, builder.getStringAttr(reason));
    setSharding(op.getResult(), sharding);
    if (!before)
      lastBehind[anchorOf(value)] = op;
    return op;
  }

  /// The op, or the block of an argument, after which reshards are placed.
  static void *anchorOf(Value value) {
    return value.getDefiningOp() ? static_cast<void *>(value.getDefiningOp())
                                 : static_cast<void *>(value.getParentBlock());
  }

  /// Constraints are now reshards, or were satisfied.
  void dropConstraints() {
    function.walk([](ShardTensorOp op) {
      op.getResult().replaceAllUsesWith(op.getOperand());
      op.erase();
    });
    function.walk([](ReshardOp op) {
      if (getSharding(op.getOperand()) == op.getSharding() || op.getResult().use_empty()) {
        op.getResult().replaceAllUsesWith(op.getOperand());
        op.erase();
      }
    });
  }

  func::FuncOp function;
  const MeshTable &meshes;
  OpShardings &shardings;
  SignatureAttrs signature;                               ///< as it will be written
  llvm::MapVector<Value, SmallVector<RequiredUse>> needs; // in program order
  llvm::DenseMap<void *, Operation *> lastBehind;         // looked up, never iterated
  Sources sources;
};

struct DistInsertReshards : dist::impl::DistInsertReshardsBase<DistInsertReshards> {
  void runOnOperation() override {
    MeshTable meshes(getOperation());
    if (meshes.empty())
      return;
    OpShardings shardings(meshes);
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function)) {
        placeOpenResults(function, meshes);
        if (failed(checkShardingsDecided(function, meshes)))
          return signalPassFailure();
        ReshardInserter(function, meshes, shardings).run();
      }
  }
};

} // namespace
