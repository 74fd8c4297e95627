//===- GpuScatter.cpp - Updates at computed indices, by blocks -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a nest over updates %n and columns %j,
//
//   for %n, for %j:   dest[place[%n], %j] = f(dest[place[%n], %j], source[%n, %j])
//
// each range of rows has a block, and each column a thread of it. The threads of a block compute
// the places of many updates at once, keep those of the block's rows, in order, in shared memory,
// and then perform these:
//
//   for %chunk:   own = [%n in the chunk, if place[%n] is in the block's range]
//                 for %n in own:   update of dest[place[%n], column]
//
// The updates of an element are done by one thread in order, so the result is that of one thread
// in every run. Where there are fewer columns than threads, these also divide the rows of a range.
//
//===----------------------------------------------------------------------===//

#include "GpuLimits.h"
#include "GpuPlan.h"
#include "GpuStages.h"
#include "GpuTileWriter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

/// Updates of a chunk that each thread looks at.
static constexpr int64_t kUpdates = 4;
/// Blocks that keep a GPU busy, and as many as help.
static constexpr int64_t kFewBlocks = 264, kManyBlocks = 1056;

static int64_t ceilDiv(int64_t left, int64_t right) {
  return (left + right - 1) / right;
}

namespace {
class ScatterEmitter : TileWriter {
public:
  ScatterEmitter(Operation *nest, GpuLaunchBuilder &launch, GpuLaunchInfo &info)
      : TileWriter(launch, info), nest(nest), loops(perfectNest(nest)) {}

  /// Whether the scheme is possible; finds the roles of the loops.
  bool match();
  GpuShape emit();

private:
  /// Some of the loops and the number of their iterations, which count row-major.
  struct Loops {
    SmallVector<scf::ForOp> loops;
    int64_t count = 1;
    void add(scf::ForOp loop) {
      loops.push_back(loop);
      count *= *getConstantIntValue(loop.getUpperBound());
    }
  };

  void choose();
  void countBytes();
  /// Maps the induction variables to those of iteration `number`.
  void enter(const Loops &part, Value number, IRMapping &mapping);
  /// The place of an update, as a row of the block's range, if unsigned less than `share`.
  Value rowOf(Value update, IRMapping mapping);
  /// Writes the updates of the chunk at `base` that the block owns; returns their number.
  Value collect(Value base, const IRMapping &mapping);
  Value equal(Value left, Value right) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, right);
  }
  Value word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 32); }
  template <typename Body> void onlyIf(Value condition, Body body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  Operation *nest;
  SmallVector<scf::ForOp> loops;
  OwnedDimension owned;
  SmallVector<Operation *> slice; ///< ops that compute the place, in order
  Loops updates, batches, columns;

  int64_t threads = kBlockThreads;
  int64_t width = 1;  ///< columns of a block
  int64_t groups = 1; ///< threads of a column, which divide the rows of a range
  int64_t owners = 1, share = 1;
  int64_t items = 1; ///< updates of a chunk for each thread
  Value firstRow, own, rows, totals;
};
} // namespace

bool ScatterEmitter::match() {
  std::optional<OwnedDimension> found = ownedDimension(nest);
  if (!found || loops.empty())
    return false;
  owned = *found;
  Block *body = loops.back().getBody();
  Operation *place = owned.place.getDefiningOp();
  if (place->getBlock() != body)
    return false;
  llvm::SmallPtrSet<Operation *, 16> needed{place};
  llvm::SmallPtrSet<Value, 4> used;
  for (Operation &op : llvm::reverse(*body)) {
    if (!needed.contains(&op))
      continue;
    slice.insert(slice.begin(), &op);
    for (Value operand : op.getOperands()) {
      used.insert(operand);
      if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == body)
        needed.insert(def);
    }
  }
  SmallVector<unsigned> independent = independentLoops(nest);
  for (auto [i, loop] : llvm::enumerate(loops)) {
    bool isIndependent = llvm::is_contained(independent, i);
    (!isIndependent                          ? updates
     : used.contains(loop.getInductionVar()) ? batches
                                             : columns)
        .add(loop);
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  choose();
  return std::max({updates.count, owned.extent, columns.count}) <= kMost &&
         owners * batches.count * ceilDiv(columns.count, width) <= kMaxBlocks;
}

void ScatterEmitter::choose() {
  width = std::min(threads, columns.count);
  groups = threads / width;
  items = std::min(kUpdates, ceilDiv(updates.count, threads));
  int64_t others = batches.count * ceilDiv(columns.count, width);
  // Every block reads all places: that may cost a quarter of the bytes of the updates, unless few
  // blocks would be busy.
  int64_t placeBytes = 0, updateBytes = 0;
  loops.back().getBody()->walk([&](Operation *op) {
    Type type = isa<memref::LoadOp>(op)    ? op->getResult(0).getType()
                : isa<memref::StoreOp>(op) ? op->getOperand(0).getType()
                                           : Type();
    if (!type)
      return;
    (llvm::is_contained(slice, op) ? placeBytes : updateBytes) += bytesOf(type);
  });
  int64_t cheap = updateBytes * columns.count / std::max<int64_t>(1, 4 * placeBytes);
  owners = std::max(ceilDiv(kFewBlocks, others), std::min(ceilDiv(kManyBlocks, others), cheap));
  owners = std::max<int64_t>(1, std::min({owners, owned.extent, updates.count}));
  share = ceilDiv(owned.extent, owners);
  owners = ceilDiv(owned.extent, share);
}

/// Of what is read and written at places each update's elements count, at most once each.
void ScatterEmitter::countBytes() {
  int64_t each = updates.count * batches.count * columns.count;
  llvm::SmallPtrSet<Value, 8> read, written;
  nest->walk([&](Operation *op) {
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    if (!load && !store)
      return;
    Value root = rootOf(load ? load.getMemRef() : store.getMemRef());
    if (!(load ? read : written).insert(root).second)
      return;
    auto type = cast<MemRefType>(root.getType());
    (load ? info.readBytes : info.writtenBytes) +=
        std::min(each, type.getNumElements()) * bytesOf(type.getElementType());
  });
}

void ScatterEmitter::enter(const Loops &part, Value number, IRMapping &mapping) {
  int64_t rest = part.count;
  for (scf::ForOp loop : llvm::reverse(part.loops)) {
    int64_t trips = *getConstantIntValue(loop.getUpperBound());
    rest /= trips;
    mapping.map(loop.getInductionVar(), rest == 1 ? number : remainder(number, trips));
    number = divide(number, trips);
  }
}

Value ScatterEmitter::rowOf(Value update, IRMapping mapping) {
  enter(updates, update, mapping);
  for (Operation *op : slice)
    b.clone(*op, mapping);
  return arith::SubIOp::create(b, loc, mapping.lookup(owned.place), firstRow);
}

Value ScatterEmitter::collect(Value base, const IRMapping &mapping) {
  Value first = multiply(launch.threadIndex(), items), count = word(0);
  Type i32 = b.getI32Type();
  SmallVector<Value> isOwn, row;
  for (int64_t item = 0; item < items; ++item) {
    Value update = add(base, add(first, item));
    Value nearest = least(update, constant(updates.count - 1));
    Value at = rowOf(nearest, mapping);
    // Rows before the range are very large as unsigned numbers.
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, constant(share));
    isInside = arith::AndIOp::create(b, loc, isInside, less(update, constant(updates.count)));
    row.push_back(arith::IndexCastOp::create(b, loc, i32, at));
    isOwn.push_back(isInside);
    count = arith::AddIOp::create(b, loc, count, arith::ExtUIOp::create(b, loc, i32, isInside));
  }
  // The number of owned updates of the threads before, within the warp and in the warps before.
  Value before = word(0), total = count;
  for (int32_t distance = 1; distance < kWarp; distance *= 2) {
    Value other = gpu::ShuffleOp::create(b, loc, total, distance, static_cast<int32_t>(kWarp),
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    Value isAfter = equal(remainder(divide(lane, distance), 2), constant(1));
    before = arith::AddIOp::create(b, loc, before, select(isAfter, other, word(0)));
    total = arith::AddIOp::create(b, loc, total, other);
  }
  onlyIf(equal(lane, constant(0)), [&] { put(total, totals, warp); });
  barrier();
  Value all = word(0);
  for (int64_t other = 0; other < threads / kWarp; ++other) {
    Value part = memref::LoadOp::create(b, loc, totals, constant(other));
    Value isBefore = less(constant(other), warp);
    before = arith::AddIOp::create(b, loc, before, select(isBefore, part, word(0)));
    all = arith::AddIOp::create(b, loc, all, part);
  }
  for (int64_t item = 0; item < items; ++item) {
    onlyIf(isOwn[item], [&] {
      Value to = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), before);
      put(arith::IndexCastOp::create(b, loc, i32, add(first, item)), own, to);
      if (groups > 1)
        put(row[item], rows, to);
    });
    before =
        arith::AddIOp::create(b, loc, before, arith::ExtUIOp::create(b, loc, i32, isOwn[item]));
  }
  barrier();
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), all);
}

GpuShape ScatterEmitter::emit() {
  b.setInsertionPoint(nest);
  countBytes();
  Type i32 = b.getI32Type(), index = b.getIndexType();
  const int64_t chunk = threads * items;
  own = launch.shared(i32, chunk);
  if (groups > 1)
    rows = launch.shared(i32, chunk);
  totals = launch.shared(i32, threads / kWarp);
  int64_t parts = ceilDiv(columns.count, width);
  Value block = launch.blockIndex();
  Value part = remainder(block, parts), rest = divide(block, parts);
  firstRow = multiply(divide(rest, batches.count), share);
  IRMapping mapping;
  enter(batches, remainder(rest, batches.count), mapping);
  Value column = add(multiply(part, width), remainder(launch.threadIndex(), width));
  Value group = divide(launch.threadIndex(), width);
  enter(columns, column, mapping);
  loop(constant(0), constant(updates.count), chunk, {},
       [&](Value base, ValueRange) -> SmallVector<Value> {
         Value count = collect(base, mapping);
         loop(constant(0), count, 1, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
           auto read = [&](Value memory) -> Value {
             return arith::IndexCastUIOp::create(b, loc, index,
                                                 memref::LoadOp::create(b, loc, memory, number));
           };
           auto perform = [&] {
             IRMapping inside = mapping;
             enter(updates, add(base, read(own)), inside);
             for (Operation &op : loops.back().getBody()->without_terminator())
               b.clone(op, inside);
           };
           Value isNeeded;
           if (groups > 1)
             isNeeded = equal(remainder(read(rows), groups), group);
           else if (width < threads) // and a block has all columns
             isNeeded = less(launch.threadIndex(), constant(width));
           else if (columns.count % width != 0)
             isNeeded = less(column, constant(columns.count));
           if (isNeeded)
             onlyIf(isNeeded, perform);
           else
             perform();
           return {};
         });
         barrier();
         return {};
       });
  nest->erase();
  b.setInsertionPointToEnd(&launch.function.getBody().front());
  info.serialIterations = ceilDiv(updates.count, threads) + ceilDiv(updates.count, owners);
  GpuShape shape;
  shape.threads = threads;
  shape.blocks = owners * batches.count * parts;
  return shape;
}

std::optional<GpuShape> emitScatter(Operation *nest, GpuLaunchBuilder &builder,
                                    GpuLaunchInfo &info) {
  OpBuilder::InsertPoint before = builder.b.saveInsertionPoint();
  builder.b.setInsertionPoint(nest);
  ScatterEmitter emitter(nest, builder, info);
  if (!emitter.match()) {
    builder.b.restoreInsertionPoint(before);
    return std::nullopt;
  }
  return emitter.emit();
}

} // namespace tessera::codegen
