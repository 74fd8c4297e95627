//===- GpuLoops.cpp - Launches of ops without a scheme --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../GpuLimits.h"
#include "../GpuStages.h"
#include "GpuPlan.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// The iterations of all loops of the op, including nested loops of constant bounds within it.
static int64_t iterationsOf(Operation *op) {
  int64_t count = 1;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    for (int64_t extent : linalgOp.getStaticLoopRanges())
      count *= std::max<int64_t>(1, extent);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    if (std::optional<llvm::APInt> trips = loop.getStaticTripCount())
      count = trips->getSExtValue();
  int64_t inner = 1;
  for (Region &region : op->getRegions())
    for (Operation &each : region.getOps())
      inner = std::max(inner, iterationsOf(&each));
  return count * inner;
}

/// The least number of threads that keep a GPU busy, and of iterations per owner of indices.
static constexpr int64_t kBusyThreads = 64 << 10, kOwnersIterations = 64;

/// A thread per iteration of the independent loops and per owner of indices; it runs the other
/// loops in order.
static FailureOr<GpuShape> spreadNest(Operation *op, GpuLaunchBuilder &builder) {
  OpBuilder &b = builder.b;
  Location loc = builder.loc;
  SmallVector<unsigned> independent = independentLoops(op);
  b.setInsertionPoint(op);
  // Computes the number of threads before the loops are removed; the guard then surrounds them.
  int64_t count = 1;
  SmallVector<scf::ForOp> loops;
  op->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) { loops.push_back(loop); });
  for (unsigned i : independent)
    count *= *getConstantIntValue(loops[i].getUpperBound());
  if (count / 128 >= kMaxBlocks)
    return failure();
  GpuShape shape;
  shape.iterations = count;
  std::optional<OwnedDimension> owned = ownedDimension(op);
  int64_t owners = 1;
  if (owned)
    owners = std::max<int64_t>(1, std::min({owned->extent, kBusyThreads / count,
                                            iterationsOf(op) / count / kOwnersIterations}));
  shape.owners = owners;
  int64_t perOwner = count;
  count *= owners;
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
  if (owners > 1) {
    keepOwned(*owned, arith::DivUIOp::create(b, loc, number, constant(perOwner)), owners, b);
    number = arith::RemUIOp::create(b, loc, number, constant(perOwner));
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

/// A thread per iteration of the outermost parallel loops, if different iterations write different
/// elements.
static FailureOr<GpuShape> spread(Operation *op, GpuLaunchBuilder &builder) {
  auto generic = cast<linalg::GenericOp>(op);
  SmallVector<int64_t, 4> extents = generic.getStaticLoopRanges();
  int64_t count = 1;
  for (auto [extent, iterator] : llvm::zip_equal(extents, generic.getIteratorTypesArray())) {
    if (ShapedType::isDynamic(extent))
      return failure();
    count *= iterator == utils::IteratorType::parallel ? extent : 1;
  }
  if (count == 0 || count / 128 >= kMaxBlocks)
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
  shape.iterations = iterations;
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
        b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, constant(iterations)),
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

/// Whether the launch reads the buffer; for an output of a linalg op, whether its body does.
static bool readsFrom(const GpuPlan &plan, Value root, ArrayRef<Value> reads) {
  auto generic = plan.parallel ? dyn_cast<linalg::GenericOp>(plan.ops[0]) : linalg::GenericOp();
  if (!generic)
    return llvm::is_contained(reads, root);
  return llvm::any_of(generic->getOpOperands(),
                      [&](OpOperand &operand) {
                        return isa<MemRefType>(operand.get().getType()) &&
                               rootOf(operand.get()) == root &&
                               generic.payloadUsesValueFromOperand(&operand);
                      }) ||
         llvm::any_of(generic.getBody()->getOps<memref::LoadOp>(),
                      [&](memref::LoadOp load) { return rootOf(load.getMemRef()) == root; });
}

/// Bytes of temporaries that a thread may have: its stack is in memory unless it fits in registers.
static constexpr int64_t kPrivateBytes = 1024;

/// The temporaries that only the body of a linalg op accesses. Each iteration has its own contents,
/// so threads must not share them (the workspace is one for all threads of a launch).
static SmallVector<Value> privateBuffers(Operation *op) {
  llvm::SetVector<Value> result;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa_and_nonnull<memref::AllocOp, memref::AllocaOp>(operand.getDefiningOp()) &&
          llvm::all_of(operand.getUsers(), [&](Operation *user) {
            return op->isProperAncestor(user) || isa<memref::DeallocOp>(user);
          }))
        result.insert(operand);
  });
  return result.takeVector();
}

/// Places the temporaries of a body on the stack of each thread; false if they are too large.
static bool placePrivately(ArrayRef<Value> buffers, GpuLaunchBuilder &builder) {
  int64_t bytes = 0;
  for (Value buffer : buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    bytes += type.getNumElements() * bytesOf(type.getElementType());
  }
  if (bytes > kPrivateBytes)
    return false;
  for (Value buffer : buffers)
    builder.mapping.map(
        buffer, memref::AllocaOp::create(builder.b, builder.loc, cast<MemRefType>(buffer.getType()))
                    .getResult());
  return true;
}

// Runs ops by one thread, or a linalg op by a thread per iteration of its outer loops.
FailureOr<GpuShape> emitLoops(const GpuPlan &plan, GpuLaunchBuilder &builder, GpuLaunchInfo &info) {
  SmallVector<Value> reads, writes, own;
  if (plan.parallel)
    own = privateBuffers(plan.ops[0]);
  bool parallel = plan.parallel && placePrivately(own, builder);
  if (parallel != plan.parallel)
    builder.reason =
        "an iteration has temporaries of more than " + std::to_string(kPrivateBytes) + " bytes";
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
  auto isShared = [&](Value root) {
    return isRoot(root) && !(parallel && llvm::is_contained(own, root));
  };
  for (Value root : reads)
    if (isShared(root))
      builder.buffer(root, /*write=*/false);
  for (Value root : writes)
    if (isShared(root))
      builder.buffer(root, /*write=*/true);
  SmallVector<Operation *> clones;
  for (Operation *op : plan.ops) {
    clones.push_back(builder.b.clone(*op, builder.mapping));
    info.serialIterations = std::max(info.serialIterations, iterationsOf(op));
  }
  if (plan.nest && clones.size() == 1)
    if (std::optional<GpuShape> shape = emitScatter(clones[0], builder, info)) {
      info.scheme = GpuScheme::scatter;
      info.narrow.push_back("updates at computed indices");
      return *shape;
    }
  for (const GpuLaunchBuilder::Buffer &buffer : builder.buffers) {
    auto type = cast<MemRefType>(buffer.root.getType());
    int64_t bytes = type.getNumElements() * bytesOf(type.getElementType());
    info.readBytes += readsFrom(plan, buffer.root, reads) ? bytes : 0;
    info.writtenBytes += buffer.written ? bytes : 0;
  }
  info.narrow.push_back(plan.reason.empty() ? "scalar accesses" : plan.reason);
  if (parallel)
    if (FailureOr<GpuShape> shape = spread(clones[0], builder); succeeded(shape)) {
      info.scheme = shape->threads > 1 ? GpuScheme::loops : GpuScheme::serial;
      info.serialIterations /= std::max<int64_t>(1, shape->iterations);
      if (failed(lowerToScalarLoops(builder.function))) // of the body
        return failure();
      return shape;
    }
  if (plan.nest) {
    info.scheme = GpuScheme::loops;
    FailureOr<GpuShape> shape = spreadNest(clones[0], builder);
    if (failed(shape))
      return failure();
    if (shape->iterations * shape->owners == 1)
      info.scheme = GpuScheme::serial;
    info.serialIterations /= shape->iterations;
    return shape;
  }
  info.scheme = GpuScheme::serial;
  if (failed(lowerToScalarLoops(builder.function))) {
    builder.reason = "an op without a loop form";
    return failure();
  }
  return GpuShape();
}

} // namespace tessera::codegen
