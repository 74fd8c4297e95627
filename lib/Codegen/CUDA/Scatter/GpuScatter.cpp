//===- GpuScatter.cpp - Updates at computed indices, by blocks ------------===//
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
// in every run. A thread has as many columns as 128 bits have elements. Where there are fewer
// threads with columns than in a block, they also divide the rows of a range.
//
// A thread performs several updates at once: it loads what all of them need, and an update of a row
// that an earlier one of these also changes takes the row from that one.
//
//===----------------------------------------------------------------------===//

#include "GpuScatter.h"

using namespace mlir;

namespace tessera::codegen {

/// Consecutive updates that each thread looks at, and the most such runs of a chunk.
static constexpr int64_t kUpdates = 4, kMostRuns = 4;
/// Elements that a thread updates at once, and the most updates.
static constexpr int64_t kElements = 16, kMostTogether = 8;
/// Blocks that keep a GPU busy, and as many as help.
static constexpr int64_t kFewBlocks = 264, kManyBlocks = 1056;

static int64_t ceilDiv(int64_t left, int64_t right) {
  return (left + right - 1) / right;
}

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
         owners * batches.count * ceilDiv(columns.count / lanes, width) <= kMaxBlocks;
}

bool ScatterEmitter::isVector(ValueRange indices) {
  return lanes > 1 && !indices.empty() && indices.back() == columns.loops.back().getInductionVar();
}

void ScatterEmitter::chooseLanes() {
  Block *body = loops.back().getBody();
  SmallVector<memref::StoreOp> stores(body->getOps<memref::StoreOp>());
  bool isStraight = llvm::all_of(body->without_terminator(), [](Operation &op) {
    return isa<memref::LoadOp, memref::StoreOp>(op) || op.hasTrait<OpTrait::ConstantLike>() ||
           OpTrait::hasElementwiseMappableTraits(&op);
  });
  if (!isStraight || stores.empty())
    return;
  Value last = columns.loops.empty() ? Value() : columns.loops.back().getInductionVar();
  int64_t least = kAccessBytes;
  bool isLast = last != nullptr;
  for (Operation *user : last ? llvm::to_vector(last.getUsers()) : SmallVector<Operation *>()) {
    auto load = dyn_cast<memref::LoadOp>(user);
    auto store = dyn_cast<memref::StoreOp>(user);
    auto indices = load ? load.getIndices() : store ? store.getIndices() : ValueRange();
    MemRefType type = load ? load.getMemRefType() : store ? store.getMemRefType() : MemRefType();
    isLast &= !indices.empty() && indices.back() == last && llvm::count(indices, last) == 1 &&
              type.getLayout().isIdentity() && type.getShape().back() % 8 == 0 &&
              (!store || store.getValueToStore() != last);
    if (type)
      least = std::min(least, bytesOf(type.getElementType()));
  }
  if (isLast && *getConstantIntValue(columns.loops.back().getUpperBound()) % 8 == 0)
    lanes = std::min<int64_t>(8, kAccessBytes / least);
  if (stores.size() != 1)
    return;
  written = stores[0];
  for (auto load : body->getOps<memref::LoadOp>()) {
    if (rootOf(load.getMemRef()) != rootOf(written.getMemRef()))
      continue;
    if (read || load.getMemRef() != written.getMemRef() ||
        !llvm::equal(load.getIndices(), written.getIndices()))
      return;
    read = load;
  }
  together = std::min(kMostTogether, kElements / lanes);
}

void ScatterEmitter::choose() {
  chooseLanes();
  int64_t across = columns.count / lanes;
  width = std::min(threads, across);
  groups = threads / width;
  // As many loads are in flight if some of the threads perform several updates at once.
  if (together > 1 && groups <= together)
    groups = 1;
  if (groups > 1)
    together = 1;
  items = std::min(kUpdates, ceilDiv(updates.count, threads));
  runs = std::min(kMostRuns, ceilDiv(updates.count, threads * items));
  int64_t others = batches.count * ceilDiv(across, width);
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

GpuShape ScatterEmitter::emit() {
  b.setInsertionPoint(nest);
  countBytes();
  Type i32 = b.getI32Type();
  const int64_t chunk = threads * items * runs, across = columns.count / lanes;
  own = launch.shared(i32, chunk);
  rows = launch.shared(i32, chunk);
  totals = launch.shared(i32, threads / kWarp * ceilDiv(runs, 2));
  int64_t parts = ceilDiv(across, width);
  Value block = launch.blockIndex();
  Value part = remainder(block, parts), rest = divide(block, parts);
  firstRow = multiply(divide(rest, batches.count), share);
  IRMapping mapping;
  enter(batches, remainder(rest, batches.count), mapping);
  Value column = add(multiply(part, width), remainder(launch.threadIndex(), width));
  Value group = divide(launch.threadIndex(), width);
  enter(columns, multiply(column, lanes), mapping);
  loop(constant(0), constant(updates.count), chunk, {},
       [&](Value base, ValueRange) -> SmallVector<Value> {
         Value count = collect(base, mapping);
         auto overOwn = [&] {
           loop(constant(0), count, together, {},
                [&](Value number, ValueRange) -> SmallVector<Value> {
                  if (together > 1)
                    performTogether(base, number, count, mapping);
                  else if (groups == 1)
                    perform(base, number, mapping);
                  else
                    onlyIf(equal(remainder(arith::IndexCastUIOp::create(
                                               b, loc, b.getIndexType(),
                                               memref::LoadOp::create(b, loc, rows, number)),
                                           groups),
                                 group),
                           [&] { perform(base, number, mapping); });
                  return {};
                });
         };
         if (groups == 1 && width < threads) // and a block has all columns
           onlyIf(less(launch.threadIndex(), constant(width)), overOwn);
         else if (across % width != 0)
           onlyIf(less(column, constant(across)), overOwn);
         else
           overOwn();
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
