//===- GpuLaunches.cpp - A kernel as grid launches ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"
#include "GpuStages.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

constexpr int64_t kWorkspaceAlignment = 256;
/// Index arithmetic is done in 32 bits (GpuEmitter.cpp).
constexpr int64_t kMaxIterations = int64_t(1) << 31;

/// A launch to be: a group of ops that have a scheme, or one op by itself.
struct Plan {
  std::optional<GpuGroup> group;
  SmallVector<Operation *> ops; ///< without a group: in order, by one thread
  bool parallel = false;        ///< one linalg op, a thread an iteration
  bool nest = false;            ///< one nest of loops, some of which are independent
  std::string reason;           ///< why not in a group
};

/// What an op, with all in its regions, reads and writes.
void effectsOf(Operation *op, SmallVectorImpl<Value> &reads, SmallVectorImpl<Value> &writes) {
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      Value root = rootOf(operand.get());
      bool written = false;
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(inner))
        written = linalgOp.isDpsInit(&operand);
      else if (auto store = dyn_cast<memref::StoreOp>(inner))
        written = &operand == &store.getMemrefMutable();
      (written ? writes : reads).push_back(root);
      if (written)
        reads.push_back(root);
    }
  });
}

class Splitter {
public:
  Splitter(func::FuncOp kernel, ModuleOp launches, StringRef symbol, ArrayRef<bool> mayAlias,
           int64_t sharedLimit, runtime::GpuKernel &result, GpuKernelInfo &info)
      : kernel(kernel), launches(launches), symbol(symbol), mayAlias(mayAlias),
        sharedLimit(sharedLimit), result(result), info(info) {}

  LogicalResult run(bool schemes) {
    if (schemes) {
      plan();
      if (succeeded(emitPlans()))
        return success();
      addReason("one launch of one thread: " + reason);
      restart();
    }
    plans.clear();
    fills.clear();
    Plan all;
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isa<memref::AllocOp, memref::AllocaOp, memref::DeallocOp>(op))
        all.ops.push_back(&op);
    plans.push_back(std::move(all));
    return emitPlans();
  }

private:
  //===--------------------------------------------------------------------===//
  // Which ops make a launch
  //===--------------------------------------------------------------------===//

  void plan() {
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
        std::string why;
        FailureOr<GpuMember> member = GpuMember::get(generic, why);
        if (succeeded(member) && member->volume() < kMaxIterations) {
          member->classOf.assign(member->extents.size(), -1);
          if (member->isFill())
            fills.push_back(*member);
          else
            place(*member);
          continue;
        }
        placeFills([&](Value root) { return touches(&op, root); });
        Plan alone;
        alone.ops.push_back(&op);
        alone.parallel = true;
        alone.reason = why;
        plans.push_back(std::move(alone));
        continue;
      }
      bool writes = op.walk([](Operation *inner) {
                        return isa<linalg::LinalgOp, memref::StoreOp>(inner)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      }).wasInterrupted();
      // What only reads is computed again wherever it is needed.
      placeFills([&](Value root) { return touches(&op, root); });
      if (!writes)
        continue;
      bool nest = !independentLoops(&op).empty();
      if (plans.empty() || nest || plans.back().group || plans.back().parallel || plans.back().nest)
        plans.emplace_back();
      plans.back().nest = nest;
      plans.back().ops.push_back(&op);
      plans.back().reason =
          op.getNumRegions() ? ("a loop of '" + op.getName().getStringRef() + "'").str() : "";
    }
    placeFills([](Value) { return true; });
    for (Plan &plan : plans)
      if (plan.group)
        plan.group->spread();
  }

  static bool touches(Operation *op, Value root) {
    SmallVector<Value> reads, writes;
    effectsOf(op, reads, writes);
    return llvm::is_contained(reads, root) || llvm::is_contained(writes, root);
  }

  /// Puts a member into the last launch that takes it, at the earliest behind what it depends on.
  /// Fills wait for the member that needs them.
  void place(const GpuMember &member) {
    std::vector<GpuMember> needed, others;
    for (GpuMember &fill : fills) {
      Value root = fill.accesses.back().root;
      bool used = llvm::is_contained(member.gathered, root);
      for (const GpuAccess &access : member.accesses)
        used |= access.root == root;
      (used ? needed : others).push_back(std::move(fill));
    }
    fills = std::move(others);
    for (Plan &earlier : llvm::reverse(plans)) {
      if (earlier.group && earlier.group->join(member, needed))
        return;
      if (conflicts(earlier, member) ||
          llvm::any_of(needed, [&](const GpuMember &fill) { return conflicts(earlier, fill); }))
        break;
    }
    std::vector<GpuMember> all = std::move(needed);
    all.push_back(member);
    for (const GpuMember &next : all) {
      if (!plans.empty() && &next != &all.front() && plans.back().group &&
          plans.back().group->join(next))
        continue;
      Plan fresh;
      fresh.group.emplace(next);
      plans.push_back(std::move(fresh));
    }
  }

  /// Fills that an op without a group needs.
  void placeFills(llvm::function_ref<bool(Value)> needed) {
    std::vector<GpuMember> others;
    for (GpuMember &fill : fills) {
      if (!needed(fill.accesses.back().root)) {
        others.push_back(std::move(fill));
        continue;
      }
      Plan fresh;
      fresh.group.emplace(std::move(fill));
      plans.push_back(std::move(fresh));
    }
    fills = std::move(others);
  }

  static bool conflicts(const Plan &plan, const GpuMember &member) {
    if (plan.group)
      return plan.group->conflicts(member);
    SmallVector<Value> reads, writes;
    for (Operation *op : plan.ops)
      effectsOf(op, reads, writes);
    for (const GpuAccess &access : member.accesses)
      if (!access.scalar && (llvm::is_contained(writes, access.root) ||
                             (access.output && llvm::is_contained(reads, access.root))))
        return true;
    return llvm::any_of(member.gathered,
                        [&](Value root) { return llvm::is_contained(writes, root); });
  }

  static void effectsOfPlan(const Plan &plan, SmallVectorImpl<Value> &reads,
                            SmallVectorImpl<Value> &writes) {
    for (Operation *op : plan.ops)
      effectsOf(op, reads, writes);
    if (plan.group)
      for (const GpuMember &member : plan.group->members)
        effectsOf(member.op, reads, writes);
  }

  //===--------------------------------------------------------------------===//
  // Their functions
  //===--------------------------------------------------------------------===//

  LogicalResult emitPlans() {
    for (size_t i = 0; i < plans.size(); ++i)
      if (failed(emit(i)))
        return failure();
    layOutWorkspace();
    return success();
  }

  /// Whether the plan that comes before or at `index` writes `root` after the kernel's op `load`.
  bool changedBefore(size_t index, Operation *load, Value root) {
    for (size_t i = 0; i <= index; ++i) {
      SmallVector<Value> reads, writes;
      effectsOfPlan(plans[i], reads, writes);
      if (!llvm::is_contained(writes, root))
        continue;
      auto later = [&](Operation *op) { return load->isBeforeInBlock(op); };
      if (llvm::any_of(plans[i].ops, later))
        return true;
      if (plans[i].group && llvm::any_of(plans[i].group->members,
                                         [&](const GpuMember &member) { return later(member.op); }))
        return true;
    }
    // Or a write that the load should see was put behind this launch.
    for (size_t i = index + 1; i < plans.size(); ++i) {
      SmallVector<Value> reads, writes;
      effectsOfPlan(plans[i], reads, writes);
      if (!llvm::is_contained(writes, root))
        continue;
      auto sooner = [&](Operation *op) { return op->isBeforeInBlock(load); };
      if (llvm::any_of(plans[i].ops, sooner))
        return true;
      if (plans[i].group && llvm::any_of(plans[i].group->members, [&](const GpuMember &member) {
            return sooner(member.op);
          }))
        return true;
    }
    return false;
  }

  bool liveAfter(size_t index, Value root) {
    if (isa<BlockArgument>(root))
      return true;
    for (size_t i = index + 1; i < plans.size(); ++i) {
      SmallVector<Value> reads, writes;
      effectsOfPlan(plans[i], reads, writes);
      // Scalars that are loaded between launches are loaded within them.
      if (llvm::is_contained(reads, root))
        return true;
      for (Operation *user : root.getUsers())
        if (isa<memref::LoadOp>(user))
          return true;
    }
    return false;
  }

  LogicalResult emit(size_t index) {
    Plan &plan = plans[index];
    Operation *first = plan.group ? plan.group->members.front().op.getOperation() : plan.ops[0];
    std::string name = (symbol + "_" + Twine(result.launches.size())).str();
    GpuLaunchBuilder builder(launches, name, first->getLoc());
    auto changed = [&](Operation *load, Value root) { return changedBefore(index, load, root); };
    builder.changed = changed;
    GpuLaunchInfo launchInfo;
    FailureOr<GpuShape> shape;
    if (plan.group) {
      for (const GpuMember &member : plan.group->members)
        contractMultiplyAdds(member.op);
      auto live = [&](Value root) { return liveAfter(index, root); };
      shape = GpuEmitter(builder, *plan.group, launchInfo, live, sharedLimit).emit();
    } else {
      if (!plan.reason.empty())
        addReason(plan.reason);
      shape = emitAlone(plan, builder, launchInfo);
    }
    if (failed(shape)) {
      reason = builder.reason;
      builder.function.erase();
      return failure();
    }
    if (builder.buffers.empty()) {
      builder.function.erase(); // nothing is computed
      return success();
    }
    builder.finish(shape->threads);
    runtime::GpuLaunch launch;
    launch.symbol = name;
    launch.grid = {shape->blocks, 1, 1};
    launch.block = {shape->threads, 1, 1};
    launch.sharedBytes = builder.sharedBytes;
    for (const GpuLaunchBuilder::Buffer &buffer : builder.buffers) {
      auto type = cast<MemRefType>(buffer.root.getType());
      runtime::GpuArgument argument;
      argument.bytes = type.getNumElements() * bytesOf(type.getElementType());
      argument.writes = buffer.written;
      if (auto block = dyn_cast<BlockArgument>(buffer.root))
        argument.slot = block.getArgNumber();
      else
        temporaries[buffer.root].push_back({result.launches.size(), launch.arguments.size()});
      unsigned place = launch.arguments.size();
      auto block = dyn_cast<BlockArgument>(buffer.root);
      if (!block || !mayAlias[block.getArgNumber()])
        builder.function.setArgAttr(place, LLVM::LLVMDialect::getNoAliasAttrName(),
                                    builder.b.getUnitAttr());
      builder.function.setArgAttr(place, LLVM::LLVMDialect::getAlignAttrName(),
                                  builder.b.getI64IntegerAttr(64));
      launch.arguments.push_back(argument);
    }
    for (const GpuLaunchBuilder::Buffer &buffer : builder.buffers)
      if (!isa<BlockArgument>(buffer.root) && !llvm::is_contained(order, buffer.root))
        order.push_back(buffer.root);
    result.launches.push_back(std::move(launch));
    info.launches.push_back(launchInfo);
    return success();
  }

  /// Ops as they are, by one thread; or a linalg op by a thread an iteration of its outer loops.
  FailureOr<GpuShape> emitAlone(Plan &plan, GpuLaunchBuilder &builder, GpuLaunchInfo &launchInfo) {
    SmallVector<Value> reads, writes;
    for (Operation *op : plan.ops) {
      effectsOf(op, reads, writes);
      WalkResult walk = op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands()) {
          bool inside = llvm::any_of(plan.ops, [&](Operation *other) {
            Operation *def = operand.getDefiningOp();
            return def ? other->isAncestor(def)
                       : other->isAncestor(operand.getParentBlock()->getParentOp());
          });
          if (!inside && failed(builder.capture(operand)))
            return WalkResult::interrupt();
        }
        return WalkResult::advance();
      });
      if (walk.wasInterrupted())
        return failure();
    }
    for (Value root : reads)
      if (isRoot(root))
        builder.buffer(root, /*write=*/false);
    for (Value root : writes)
      if (isRoot(root))
        builder.buffer(root, /*write=*/true);
    SmallVector<Operation *> clones;
    for (Operation *op : plan.ops)
      clones.push_back(builder.b.clone(*op, builder.mapping));
    for (const GpuLaunchBuilder::Buffer &buffer : builder.buffers) {
      auto type = cast<MemRefType>(buffer.root.getType());
      int64_t bytes = type.getNumElements() * bytesOf(type.getElementType());
      launchInfo.readBytes += llvm::is_contained(reads, buffer.root) ? bytes : 0;
      launchInfo.writtenBytes += buffer.written ? bytes : 0;
    }
    if (plan.parallel)
      if (FailureOr<GpuShape> shape = spread(clones[0], builder); succeeded(shape)) {
        launchInfo.scheme = shape->threads > 1 ? GpuScheme::loops : GpuScheme::serial;
        launchInfo.narrow.push_back(plan.reason.empty() ? "one by one" : plan.reason);
        return shape;
      }
    launchInfo.narrow.push_back(plan.reason.empty() ? "one by one" : plan.reason);
    if (plan.nest) {
      launchInfo.scheme = GpuScheme::loops;
      return spreadNest(clones[0], builder);
    }
    launchInfo.scheme = GpuScheme::serial;
    if (failed(lowerToScalarLoops(builder.function))) {
      builder.reason = "an op without a loop form";
      return failure();
    }
    return GpuShape();
  }

  /// A thread for each iteration of the independent loops; it walks the others in order.
  static FailureOr<GpuShape> spreadNest(Operation *op, GpuLaunchBuilder &builder) {
    OpBuilder &b = builder.b;
    Location loc = builder.loc;
    SmallVector<unsigned> independent = independentLoops(op);
    b.setInsertionPoint(op);
    // The number of threads is known before the loops are gone; the guard comes around them.
    int64_t count = 1;
    SmallVector<scf::ForOp> loops;
    op->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) { loops.push_back(loop); });
    for (unsigned i : independent)
      count *= *getConstantIntValue(loops[i].getUpperBound());
    if (count >= kMaxIterations)
      return failure();
    GpuShape shape;
    shape.threads = std::min<int64_t>(128, llvm::alignTo(count, 32));
    shape.blocks = (count + shape.threads - 1) / shape.threads;
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value number = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, builder.blockIndex(), constant(shape.threads)),
        builder.threadIndex());
    if (count % shape.threads != 0) {
      auto branch = scf::IfOp::create(
          b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, constant(count)),
          /*withElse=*/false);
      op->moveBefore(branch.thenBlock()->getTerminator());
      b.setInsertionPoint(op);
    }
    spreadLoops(op, independent, number, b);
    b.setInsertionPointToEnd(&builder.function.getBody().front());
    return shape;
  }

  static bool isRoot(Value root) {
    return isa<BlockArgument>(root)
               ? isa<func::FuncOp>(cast<BlockArgument>(root).getOwner()->getParentOp())
               : isa_and_nonnull<memref::AllocOp, memref::AllocaOp>(root.getDefiningOp());
  }

  /// A thread for each iteration of the parallel loops around everything else, when different
  /// iterations write different elements.
  FailureOr<GpuShape> spread(Operation *op, GpuLaunchBuilder &builder) {
    auto generic = cast<linalg::GenericOp>(op);
    SmallVector<int64_t, 4> extents = generic.getStaticLoopRanges();
    int64_t count = 1;
    for (auto [extent, iterator] : llvm::zip_equal(extents, generic.getIteratorTypesArray())) {
      if (ShapedType::isDynamic(extent))
        return failure();
      count *= iterator == utils::IteratorType::parallel ? extent : 1;
    }
    if (count == 0 || count >= kMaxIterations)
      return failure();
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      AffineMap map = generic.getMatchingIndexingMap(&init);
      llvm::SmallBitVector found(extents.size());
      for (AffineExpr expr : map.getResults())
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          found.set(dim.getPosition());
      for (auto [loop, iterator] : llvm::enumerate(generic.getIteratorTypesArray()))
        if (iterator == utils::IteratorType::parallel && extents[loop] > 1 && !found.test(loop))
          return failure();
    }
    OpBuilder &b = builder.b;
    Location loc = builder.loc;
    IRRewriter rewriter(op->getContext());
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToParallelLoops(rewriter, generic);
    if (failed(loops) || loops->empty())
      return failure();
    auto outer = dyn_cast<scf::ParallelOp>((*loops)[0]);
    if (!outer) {
      rewriter.eraseOp(op);
      return GpuShape();
    }
    int64_t iterations = 1;
    SmallVector<int64_t> trips;
    for (auto [lower, upper, step] :
         llvm::zip_equal(outer.getLowerBound(), outer.getUpperBound(), outer.getStep())) {
      trips.push_back(*getConstantIntValue(upper));
      iterations *= trips.back();
    }
    GpuShape shape;
    shape.threads = std::min<int64_t>(128, llvm::alignTo(iterations, 32));
    shape.blocks = (iterations + shape.threads - 1) / shape.threads;
    b.setInsertionPoint(outer);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value at = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, builder.blockIndex(), constant(shape.threads)),
        builder.threadIndex());
    if (iterations % shape.threads != 0) {
      auto branch = scf::IfOp::create(
          b, loc,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, constant(iterations)),
          /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value rest = at;
    for (auto [iv, trip] : llvm::reverse(llvm::zip_equal(outer.getInductionVars(), trips))) {
      iv.replaceAllUsesWith(arith::RemUIOp::create(b, loc, rest, constant(trip)).getResult());
      rest = arith::DivUIOp::create(b, loc, rest, constant(trip));
    }
    Block *from = outer.getBody();
    from->getTerminator()->erase();
    b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(), from->getOperations());
    rewriter.eraseOp(outer);
    rewriter.eraseOp(op);
    return shape;
  }

  //===--------------------------------------------------------------------===//
  // The workspace
  //===--------------------------------------------------------------------===//

  /// First fit, in the order of first use; buffers share bytes when their launches do not overlap.
  void layOutWorkspace() {
    struct Interval {
      size_t first, last;
      int64_t begin, end;
    };
    SmallVector<Interval> placed;
    for (Value root : order) {
      auto &uses = temporaries[root];
      auto type = cast<MemRefType>(root.getType());
      int64_t bytes = llvm::alignTo(type.getNumElements() * bytesOf(type.getElementType()),
                                    kWorkspaceAlignment);
      Interval mine{uses.front().first, uses.back().first, 0, bytes};
      for (bool moved = true; moved;) {
        moved = false;
        for (const Interval &other : placed) {
          bool together = mine.first <= other.last && other.first <= mine.last;
          if (together && mine.begin < other.end && other.begin < mine.end) {
            mine.begin = other.end;
            mine.end = mine.begin + bytes;
            moved = true;
          }
        }
      }
      placed.push_back(mine);
      result.workspaceBytes = std::max(result.workspaceBytes, mine.end);
      for (auto [launch, argument] : uses)
        result.launches[launch].arguments[argument].offset = mine.begin;
    }
    info.workspaceBytes = result.workspaceBytes;
  }

  void addReason(const std::string &why) {
    if (why.empty() || info.reason.find(why) != std::string::npos)
      return;
    info.reason += (info.reason.empty() ? "" : ", ") + why;
  }

  void restart() {
    for (const runtime::GpuLaunch &launch : result.launches)
      launches.lookupSymbol(launch.symbol)->erase();
    result = {};
    info.launches.clear();
    temporaries.clear();
    order.clear();
  }

  func::FuncOp kernel;
  ModuleOp launches;
  StringRef symbol;
  ArrayRef<bool> mayAlias;
  int64_t sharedLimit;
  runtime::GpuKernel &result;
  GpuKernelInfo &info;
  std::vector<Plan> plans;
  std::vector<GpuMember> fills; ///< not in a plan yet
  std::string reason;
  /// Of each temporary that memory is needed for: launch and argument of its uses.
  llvm::DenseMap<Value, SmallVector<std::pair<size_t, size_t>>> temporaries;
  SmallVector<Value> order;
};

} // namespace

LogicalResult splitIntoLaunches(func::FuncOp kernel, ModuleOp launches, StringRef symbol,
                                ArrayRef<bool> mayAlias, bool schemes, int64_t sharedLimit,
                                runtime::GpuKernel &result, GpuKernelInfo &info) {
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<MemRefType>(argument.getType());
    info.argumentBytes += type.getNumElements() * bytesOf(type.getElementType());
  }
  return Splitter(kernel, launches, symbol, mayAlias, sharedLimit, result, info).run(schemes);
}

} // namespace tessera::codegen
