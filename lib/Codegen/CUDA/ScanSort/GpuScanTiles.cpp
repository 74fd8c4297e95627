//===- GpuScanTiles.cpp - Scan lines in chunks ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread scans its elements, the lanes of a warp their totals by shuffles, and each thread the
// totals of all warps, or of all threads that share a line of another dimension, in shared memory.
// The total of a chunk precedes the next one. Elements are combined in an order that depends on
// sizes alone, so that the bits are the same in every run. No identity is needed: what has nothing
// before it stays as it is. Positions beyond the end of a line read its last elements again; they
// are the last ones of the scan, so no result depends on them.
//
//===----------------------------------------------------------------------===//

#include "GpuScanTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::codegen {

//===----------------------------------------------------------------------===//
// The division of a scan
//===----------------------------------------------------------------------===//

/// Bytes of a thread's elements, their number, and the accesses to them at most, so that several
/// blocks share the registers of a multiprocessor.
static constexpr int64_t kBytes = 128, kElements = 16, kRounds = 8;
/// Threads of a block whose lines have a warp at most; teams that share a line.
static constexpr int64_t kTeamThreads = 128, kUnits = 8;
/// Blocks and threads that occupy a GPU of 132 multiprocessors, and blocks that share its work.
static constexpr int64_t kBusyBlocks = 132, kBusyThreads = kBusyBlocks * 1024,
                         kWantedBlocks = 4 * kBusyBlocks;
/// Fewer chunks of a line than this are scanned by one block.
static constexpr int64_t kFewChunks = 4;

ScanShape::ScanShape(const Lines &lines, ArrayRef<Type> elements) : lines(lines) {
  int64_t widest = 1, bytes = 0;
  bool hasBits = false;
  for (Type element : elements) {
    widest = std::max(widest, bytesOf(element));
    bytes += bytesOf(element);
    hasBits |= element.isInteger(1);
  }
  const int64_t extent = lines.extent;
  if (lines.inner == 1) {
    lanes = hasBits ? 1 : std::max<int64_t>(1, kAccessBytes / widest);
    if (hasBits)
      narrow = "elements of one bit";
    else if (extent % lanes != 0)
      narrow = "lines of " + std::to_string(extent) + " elements";
    else
      narrow = "as many elements as of the widest tensor";
    while (extent % lanes != 0)
      lanes /= 2;
    int64_t items = std::clamp<int64_t>(kBytes / bytes, 1, kElements);
    int64_t accesses = extent / lanes, most = std::clamp<int64_t>(items / lanes, 1, kRounds);
    team = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(accesses));
    rounds = std::min<int64_t>(most, llvm::divideCeil(accesses, team));
    if (accesses <= kWarp * most)
      linesOfBlock = kTeamThreads / team;
    else
      units = std::min<int64_t>(kUnits, llvm::divideCeil(extent, ofUnit()));
  } else {
    narrow = "adjacent threads have adjacent lines";
    rounds = std::min(std::clamp<int64_t>(kBytes / 2 / bytes, 1, kRounds), extent);
    int64_t wanted = llvm::PowerOf2Ceil(llvm::divideCeil(kBusyThreads, numLines()));
    units =
        std::min<int64_t>(std::clamp<int64_t>(wanted, 1, kUnits), llvm::divideCeil(extent, rounds));
    linesOfBlock = std::min<int64_t>(numLines(), llvm::alignDown(kBlockThreads / units, kWarp));
  }
  if (blocks(1) < kBusyBlocks && chunks() >= kFewChunks) {
    parts = std::min<int64_t>(chunks(), llvm::divideCeil(kWantedBlocks, blocks(1)));
    chunksOfPart = llvm::divideCeil(chunks(), parts);
    parts = llvm::divideCeil(chunks(), chunksOfPart);
  }
}

int64_t ScanShape::threads() const {
  return linesOfBlock * team * units;
}

int64_t ScanShape::blocks(int64_t count) const {
  return llvm::divideCeil(numLines(), linesOfBlock) * count;
}

//===----------------------------------------------------------------------===//
// Combinations
//===----------------------------------------------------------------------===//

ScanTiles::ScanTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, Block &combiner,
                     const ScanShape &shape, const Lists &tensors)
    : TileWriter(launch, info), combiner(combiner), shape(shape), tensors(tensors) {
  for (Value input : tensors.inputs)
    elements.push_back(cast<MemRefType>(input.getType()).getElementType());
}

ScanTiles::Values ScanTiles::combine(ValueRange before, ValueRange behind) {
  IRMapping mapping;
  Values arguments(before);
  llvm::append_range(arguments, behind);
  mapping.map(combiner.getArguments(), arguments);
  for (Operation &inner : combiner.without_terminator())
    b.clone(inner, mapping);
  return llvm::map_to_vector(combiner.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

ScanTiles::Values ScanTiles::choose(Value condition, ValueRange left, ValueRange right) {
  Values result;
  for (auto [x, y] : llvm::zip_equal(left, right))
    result.push_back(select(condition, x, y));
  return result;
}

ScanTiles::Optional ScanTiles::combine(const Optional &before, const Optional &behind) {
  if (before.values.empty() || behind.values.empty())
    return before.values.empty() ? behind : before;
  Optional result{combine(before.values, behind.values)};
  if (before.exists)
    result.values = choose(before.exists, result.values, behind.values);
  if (behind.exists)
    result.values = choose(behind.exists, result.values, before.values);
  if (before.exists && behind.exists)
    result.exists = arith::OrIOp::create(b, loc, before.exists, behind.exists);
  return result;
}

ScanTiles::Values ScanTiles::shuffled(ValueRange values, int64_t operand, gpu::ShuffleMode mode) {
  return llvm::map_to_vector(values, [&](Value each) { return shuffle(each, operand, mode); });
}

Value ScanTiles::isAtLeast(Value value, int64_t bound) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, value, constant(bound));
}

ScanTiles::Values ScanTiles::zeros() {
  return llvm::map_to_vector(elements, [&](Type element) -> Value {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void ScanTiles::place(int64_t parts) {
  Value thread = launch.threadIndex(), group = divide(launch.blockIndex(), parts);
  part = remainder(launch.blockIndex(), parts);
  member = remainder(thread, shape.team);
  Value teamOfBlock = divide(thread, shape.team);
  which = remainder(teamOfBlock, shape.linesOfBlock);
  unit = shape.units > 1 ? divide(teamOfBlock, shape.linesOfBlock) : constant(0);
  line = add(multiply(group, shape.linesOfBlock), which);
  if (shape.numLines() % shape.linesOfBlock != 0) {
    isInLine = less(line, constant(shape.numLines()));
    line = least(line, constant(shape.numLines() - 1));
  }
  const Lines &lines = shape.lines;
  base = add(multiply(divide(line, lines.inner), lines.extent * lines.inner),
             remainder(line, lines.inner));
  if (shape.units == 1)
    return;
  int64_t halves = shape.chunks() > 1 ? 2 : 1;
  for (Type element : elements)
    unitTotals.push_back(launch.shared(element, halves * shape.units * shape.linesOfBlock));
}

Value ScanTiles::positionOf(Value chunk, int64_t round) {
  Value access = add(multiply(add(multiply(unit, shape.rounds), round), shape.team), member);
  return add(multiply(chunk, shape.chunk()), multiply(access, shape.lanes));
}

Value ScanTiles::offsetOf(Value chunk, int64_t round, bool isWhole) {
  Value position = positionOf(chunk, round);
  Value last = constant(shape.lines.extent - shape.lanes);
  if (!isWhole)
    position = least(position, last);
  if (tensors.reverse)
    position = minus(last, position);
  return add(base, multiply(position, shape.lines.inner));
}

std::vector<std::vector<ScanTiles::Values>> ScanTiles::read(Value chunk, bool isWhole) {
  SmallVector<Values> loaded; // all loads wait together
  for (int64_t round = 0; round < shape.rounds; ++round) {
    Value offset = offsetOf(chunk, round, isWhole);
    Values &accesses = loaded.emplace_back();
    for (auto [root, element] : llvm::zip_equal(tensors.inputs, elements))
      accesses.push_back(load(launch.flat(root, /*write=*/false), offset, element, shape.lanes));
  }
  std::vector<std::vector<Values>> runs(shape.team == 1 ? 1 : shape.rounds);
  for (auto [round, accesses] : llvm::enumerate(loaded))
    for (int64_t lane = 0; lane < shape.lanes; ++lane) {
      int64_t at = tensors.reverse ? shape.lanes - 1 - lane : lane;
      auto elementOf = [&](Value access) -> Value {
        return shape.lanes == 1 ? access
                                : vector::ExtractOp::create(b, loc, access, at).getResult();
      };
      runs[shape.team == 1 ? 0 : round].push_back(llvm::map_to_vector(accesses, elementOf));
    }
  return runs;
}

void ScanTiles::write(Value chunk, bool isWhole, ArrayRef<std::vector<Values>> runs) {
  for (int64_t round = 0; round < shape.rounds; ++round) {
    auto store = [&] {
      Value offset = offsetOf(chunk, round, isWhole);
      for (auto [number, root] : llvm::enumerate(tensors.results)) {
        if (!root)
          continue;
        Values lanes;
        for (int64_t lane = 0; lane < shape.lanes; ++lane) {
          int64_t at = tensors.reverse ? shape.lanes - 1 - lane : lane;
          lanes.push_back(shape.team == 1 ? runs[0][round * shape.lanes + at][number]
                                          : runs[round][at][number]);
        }
        Value value = lanes[0];
        if (shape.lanes > 1)
          value = vector::FromElementsOp::create(
              b, loc, VectorType::get(shape.lanes, elements[number]), lanes);
        put(value, launch.flat(root, /*write=*/true), offset);
      }
    };
    Value isInside = isInLine;
    if (!isWhole) {
      isInside = less(positionOf(chunk, round), constant(shape.lines.extent));
      if (isInLine)
        isInside = arith::AndIOp::create(b, loc, isInside, isInLine);
    }
    if (isInside)
      onlyIf(isInside, store);
    else
      store();
  }
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

std::pair<ScanTiles::Optional, ScanTiles::Optional> ScanTiles::overUnits(const Values &total,
                                                                         const Optional &before) {
  auto placeOf = [&](Value of) {
    Value row = half ? add(multiply(half, shape.units), of) : of;
    return add(multiply(row, shape.linesOfBlock), which);
  };
  auto store = [&] {
    for (auto [memory, value] : llvm::zip_equal(unitTotals, total))
      memref::StoreOp::create(b, loc, value, memory, placeOf(unit));
  };
  if (shape.team == 1)
    store();
  else
    onlyIf(less(member, constant(1)), store);
  barrier();
  Optional own = before, all = before;
  for (int64_t other = 0; other < shape.units; ++other) {
    Values loaded = llvm::map_to_vector(unitTotals, [&](Value memory) -> Value {
      return memref::LoadOp::create(b, loc, memory, placeOf(constant(other)));
    });
    all = combine(all, Optional{loaded});
    if (other + 1 == shape.units)
      break;
    Value isBehind = isAtLeast(unit, other + 1);
    own.values = own.values.empty() ? all.values : choose(isBehind, all.values, own.values);
  }
  Value isSecond = isAtLeast(unit, 1);
  if (before.values.empty())
    own.exists = isSecond;
  else if (before.exists)
    own.exists = arith::OrIOp::create(b, loc, before.exists, isSecond);
  return {own, all};
}

ScanTiles::Optional ScanTiles::scanChunk(Value chunk, bool isWhole, const Optional &before,
                                         bool writes, bool isLast) {
  std::vector<std::vector<Values>> runs = read(chunk, isWhole);
  for (std::vector<Values> &run : runs)
    for (size_t item = 1; item < run.size(); ++item)
      run[item] = combine(run[item - 1], run[item]);
  // What precedes each run in the unit, and the total of the unit.
  std::vector<Optional> preceding(runs.size());
  Optional total;
  if (shape.team == 1) {
    total.values = runs[0].back();
  } else {
    for (auto [run, precedes] : llvm::zip_equal(runs, preceding)) {
      Values sum = run.back();
      for (int64_t distance = 1; distance < shape.team; distance *= 2) {
        Values other = shuffled(sum, distance, gpu::ShuffleMode::UP);
        sum = choose(isAtLeast(member, distance), combine(other, sum), sum);
      }
      precedes =
          combine(total, Optional{shuffled(sum, 1, gpu::ShuffleMode::UP), isAtLeast(member, 1)});
      // Only a team of a whole warp has several runs, others behind it, or another chunk.
      if (shape.team == kWarp)
        total = combine(total, Optional{shuffled(sum, kWarp - 1, gpu::ShuffleMode::IDX)});
    }
  }
  Optional own = before, next;
  if (shape.units > 1) {
    half = shape.chunks() > 1 ? remainder(chunk, 2) : Value();
    std::tie(own, next) = overUnits(total.values, before);
  } else if (!isLast) {
    next = combine(before, total);
  }
  if (!writes)
    return next;
  for (auto [run, precedes] : llvm::zip_equal(runs, preceding)) {
    Optional prefix = combine(own, precedes);
    std::vector<Values> results;
    for (Values &value : run)
      results.push_back(combine(prefix, Optional{value}).values);
    if (tensors.identity) {
      Values first;
      for (Attribute identity : tensors.identity)
        first.push_back(arith::ConstantOp::create(b, loc, cast<TypedAttr>(identity)));
      if (!prefix.values.empty())
        first = prefix.exists ? choose(prefix.exists, prefix.values, first) : prefix.values;
      results.insert(results.begin(), first);
      results.pop_back();
    }
    run = std::move(results);
  }
  write(chunk, isWhole, runs);
  return next;
}

ScanTiles::Values ScanTiles::walk(Value begin, Value end, ValueRange before, Value first,
                                  bool writes) {
  return loop(begin, end, 1, before, [&](Value chunk, ValueRange carried) -> SmallVector<Value> {
    Value hasBefore = less(first, chunk);
    return scanChunk(chunk, /*isWhole=*/true, {Values(carried), hasBefore}, writes,
                     /*isLast=*/false)
        .values;
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

GpuShape ScanTiles::scan(ValueRange totals) {
  place(shape.parts);
  int64_t whole = shape.wholeChunks();
  if (shape.chunks() == 1) {
    scanChunk(constant(0), !shape.hasRest(), {}, /*writes=*/true, /*isLast=*/true);
  } else {
    Value begin = constant(0), end = constant(whole);
    Values before = zeros();
    if (shape.parts > 1) {
      begin = multiply(part, shape.chunksOfPart);
      end = least(add(begin, shape.chunksOfPart), end);
      // The first part has nothing before it.
      Value previous = greatest(add(part, -1), constant(0));
      Value place = add(multiply(line, shape.parts - 1), previous);
      for (auto [value, memory] : llvm::zip_equal(before, totals))
        value = memref::LoadOp::create(b, loc, launch.flat(memory, /*write=*/false), place);
    }
    before = walk(begin, end, before, constant(0), /*writes=*/true);
    auto rest = [&] {
      scanChunk(constant(whole), /*isWhole=*/false, {before}, /*writes=*/true, /*isLast=*/true);
    };
    if (shape.hasRest() && shape.parts > 1)
      onlyIf(isAtLeast(part, shape.parts - 1), rest);
    else if (shape.hasRest())
      rest();
  }
  for (bool writes : {false, true})
    for (Value root : writes ? tensors.results : tensors.inputs) {
      if (!root)
        continue;
      count(root, writes);
      int64_t bytes = bytesOf(cast<MemRefType>(root.getType()).getElementType()) * shape.lanes;
      if (bytes < kAccessBytes)
        note(root, writes, bytes, shape.narrow);
    }
  for (Value memory : totals)
    count(memory, /*store=*/false);
  GpuShape grid;
  grid.blocks = shape.blocks(shape.parts);
  grid.threads = shape.threads();
  return grid;
}

GpuShape ScanTiles::reduce(ValueRange totals) {
  int64_t parts = shape.parts - 1;
  place(parts);
  Value begin = multiply(part, shape.chunksOfPart);
  Values total = walk(begin, add(begin, shape.chunksOfPart), zeros(), begin, /*writes=*/false);
  Value isOne = less(add(unit, member), constant(1));
  if (isInLine)
    isOne = arith::AndIOp::create(b, loc, isOne, isInLine);
  onlyIf(isOne, [&] {
    Value place = add(multiply(line, parts), part);
    for (auto [value, memory] : llvm::zip_equal(total, totals))
      memref::StoreOp::create(b, loc, value, launch.flat(memory, /*write=*/true), place);
  });
  for (auto [root, element] : llvm::zip_equal(tensors.inputs, elements)) {
    info.readBytes +=
        bytesOf(element) * shape.numLines() * parts * shape.chunksOfPart * shape.chunk();
    int64_t bytes = bytesOf(element) * shape.lanes;
    if (bytes < kAccessBytes)
      note(root, /*store=*/false, bytes, shape.narrow);
  }
  for (Value memory : totals)
    count(memory, /*store=*/true);
  GpuShape grid;
  grid.blocks = shape.blocks(parts);
  grid.threads = shape.threads();
  return grid;
}

} // namespace tessera::codegen
