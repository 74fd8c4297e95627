//===- GpuScatterUpdates.cpp - Find and perform a block's updates ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuScatter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::codegen {

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

Value ScatterEmitter::sumBefore(Value sum, int64_t place) {
  int64_t warps = threads / kWarp;
  Value before = word(0), total = sum;
  for (int32_t distance = 1; distance < kWarp; distance *= 2) {
    Value other = gpu::ShuffleOp::create(b, loc, total, distance, static_cast<int32_t>(kWarp),
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    Value isAfter = equal(remainder(divide(lane, distance), 2), constant(1));
    before = arith::AddIOp::create(b, loc, before, select(isAfter, other, word(0)));
    total = arith::AddIOp::create(b, loc, total, other);
  }
  onlyIf(equal(lane, constant(0)), [&] { put(total, totals, add(warp, place * warps)); });
  return before;
}

Value ScatterEmitter::collect(Value base, const IRMapping &mapping) {
  Type i32 = b.getI32Type();
  const bool isWhole = updates.count % (threads * items * runs) == 0;
  Value first = multiply(launch.threadIndex(), items);
  SmallVector<SmallVector<Value>> isOwn(runs), row(runs);
  SmallVector<Value> counts;
  auto asWord = [&](Value bit) { return arith::ExtUIOp::create(b, loc, i32, bit); };
  for (int64_t run = 0; run < runs; ++run) {
    Value count = word(0);
    for (int64_t item = 0; item < items; ++item) {
      Value update = add(base, add(first, run * threads * items + item));
      Value at = rowOf(isWhole ? update : least(update, constant(updates.count - 1)), mapping);
      // Rows before the range are very large as unsigned numbers.
      Value isInside =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, constant(share));
      if (!isWhole)
        isInside = arith::AndIOp::create(b, loc, isInside, less(update, constant(updates.count)));
      row[run].push_back(arith::IndexCastOp::create(b, loc, i32, at));
      isOwn[run].push_back(isInside);
      count = arith::AddIOp::create(b, loc, count, asWord(isInside));
    }
    counts.push_back(count);
  }
  // The number of owned updates of the threads before, within the warp and in the warps before. Two
  // runs share a word.
  auto half = [&](Value both, int64_t which) -> Value {
    return which == 0 ? arith::AndIOp::create(b, loc, both, word(0xffff)).getResult()
                      : arith::ShRUIOp::create(b, loc, both, word(16)).getResult();
  };
  SmallVector<Value> before;
  for (int64_t run = 0; run < runs; run += 2) {
    Value both = counts[run];
    if (run + 1 < runs)
      both = arith::OrIOp::create(b, loc, both,
                                  arith::ShLIOp::create(b, loc, counts[run + 1], word(16)));
    before.push_back(sumBefore(both, run / 2));
  }
  barrier();
  Value all = word(0);
  SmallVector<Value> places;
  for (int64_t run = 0; run < runs; run += 2) {
    Value sum = word(0);
    for (int64_t other = 0; other < threads / kWarp; ++other) {
      Value part =
          memref::LoadOp::create(b, loc, totals, constant(run / 2 * (threads / kWarp) + other));
      Value isBefore = less(constant(other), warp);
      before[run / 2] =
          arith::AddIOp::create(b, loc, before[run / 2], select(isBefore, part, word(0)));
      sum = arith::AddIOp::create(b, loc, sum, part);
    }
    for (int64_t which = 0; which < 2 && run + which < runs; ++which) {
      places.push_back(arith::AddIOp::create(b, loc, all, half(before[run / 2], which)));
      all = arith::AddIOp::create(b, loc, all, half(sum, which));
    }
  }
  for (int64_t run = 0; run < runs; ++run)
    for (int64_t item = 0; item < items; ++item) {
      onlyIf(isOwn[run][item], [&] {
        Value to = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), places[run]);
        Value number = add(first, run * threads * items + item);
        put(arith::IndexCastOp::create(b, loc, i32, number), own, to);
        put(row[run][item], rows, to);
      });
      places[run] = arith::AddIOp::create(b, loc, places[run], asWord(isOwn[run][item]));
    }
  barrier();
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), all);
}

void ScatterEmitter::cloneOp(Operation &op, IRMapping &mapping) {
  auto load = dyn_cast<memref::LoadOp>(op);
  if (lanes == 1) {
    b.clone(op, mapping);
  } else if (load && isVector(load.getIndices())) {
    SmallVector<Value> at;
    for (Value index : load.getIndices())
      at.push_back(mapping.lookupOrDefault(index));
    int64_t bytes = std::min(kAccessBytes, lanes * bytesOf(load.getType()));
    mapping.map(load.getResult(),
                vector::LoadOp::create(b, loc, VectorType::get(lanes, load.getType()),
                                       mapping.lookupOrDefault(load.getMemRef()), at,
                                       /*nontemporal=*/false, llvm::MaybeAlign(bytes))
                    .getResult());
  } else {
    mapping.map(op.getResult(0), cloneInLanes(b, op, mapping, lanes));
  }
}

void ScatterEmitter::store(memref::StoreOp op, Value value, const IRMapping &mapping) {
  SmallVector<Value> at;
  for (Value index : op.getIndices())
    at.push_back(mapping.lookupOrDefault(index));
  Value memory = mapping.lookupOrDefault(op.getMemRef());
  if (!isVector(op.getIndices())) {
    memref::StoreOp::create(b, loc, value, memory, at);
    return;
  }
  int64_t bytes = std::min(kAccessBytes, lanes * bytesOf(op.getMemRefType().getElementType()));
  vector::StoreOp::create(b, loc, widen(b, loc, value, lanes), memory, at, /*nontemporal=*/false,
                          llvm::MaybeAlign(bytes));
}

ScatterEmitter::Update ScatterEmitter::begin(Value base, Value number, const IRMapping &mapping) {
  auto get = [&](Value memory) -> Value { return memref::LoadOp::create(b, loc, memory, number); };
  auto asIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  };
  Update update;
  update.mapping = mapping;
  enter(updates, add(base, asIndex(get(own))), update.mapping);
  update.row = get(rows);
  update.mapping.map(owned.place, add(firstRow, asIndex(update.row)));
  return update;
}

void ScatterEmitter::perform(Value base, Value number, const IRMapping &mapping) {
  Update update = begin(base, number, mapping);
  for (Operation &op : loops.back().getBody()->without_terminator()) {
    if (&op == owned.place.getDefiningOp())
      continue;
    auto written = dyn_cast<memref::StoreOp>(op);
    if (written && lanes > 1)
      store(written, update.mapping.lookupOrDefault(written.getValueToStore()), update.mapping);
    else if (op.getNumResults() == 1)
      cloneOp(op, update.mapping);
    else
      b.clone(op, update.mapping);
  }
}

void ScatterEmitter::performTogether(Value base, Value number, Value count,
                                     const IRMapping &mapping) {
  // The ops behind the old value.
  llvm::SmallPtrSet<Operation *, 16> behind;
  for (Operation &op : loops.back().getBody()->without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          Operation *def = operand.getDefiningOp();
          return def && (def == read.getOperation() || behind.contains(def));
        }))
      behind.insert(&op);
  SmallVector<Update> all;
  Value last = add(count, -1);
  for (int64_t i = 0; i < together; ++i) {
    all.push_back(begin(base, i == 0 ? number : least(add(number, i), last), mapping));
    for (Operation &op : loops.back().getBody()->without_terminator())
      if (&op != owned.place.getDefiningOp() && &op != written.getOperation() &&
          !behind.contains(&op))
        cloneOp(op, all.back().mapping);
    if (read)
      all.back().old = all.back().mapping.lookup(read.getResult());
  }
  for (auto [i, update] : llvm::enumerate(all)) {
    if (read) {
      Value old = update.old;
      for (const Update &before : ArrayRef(all).take_front(i))
        old = arith::SelectOp::create(b, loc, equal(before.row, update.row), before.result, old);
      update.mapping.map(read.getResult(), old);
    }
    for (Operation &op : loops.back().getBody()->without_terminator())
      if (behind.contains(&op) && &op != written.getOperation())
        cloneOp(op, update.mapping);
    update.result = update.mapping.lookupOrDefault(written.getValueToStore());
    if (isVector(written.getIndices()))
      update.result = widen(b, loc, update.result, lanes);
  }
  for (auto [i, update] : llvm::enumerate(all)) {
    auto write = [&, &update = update] { store(written, update.result, update.mapping); };
    if (i == 0)
      write();
    else
      onlyIf(less(add(number, static_cast<int64_t>(i)), count), write);
  }
}

} // namespace tessera::codegen
