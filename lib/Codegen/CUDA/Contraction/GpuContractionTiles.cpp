//===- GpuContractionTiles.cpp - Tiles of a contraction -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes a tile of the product. It iterates over the sum in steps: while one step is
// multiplied from shared memory, the elements of the next one are loaded from memory to registers.
//
//===----------------------------------------------------------------------===//

#include "GpuContractionTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::codegen {

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

int64_t ContractionTiles::widthOf(const ContractionLoops &loops, const LoopGroup &group,
                                  unsigned operand, int64_t most) {
  if (group.extents.empty() || group.strides.back()[operand] != 1)
    return 1;
  int64_t width = most;
  auto fits = [&](int64_t value) { return value % width == 0; };
  auto allFit = [&] {
    if (!fits(loops.starts[operand]) || !fits(group.extents.back()))
      return false;
    for (const LoopGroup *each : {&loops.batches, &loops.rows, &loops.columns, &loops.sums})
      for (size_t i = 0; i < each->strides.size(); ++i) {
        bool isInnermost = each == &group && i + 1 == each->strides.size();
        if (!isInnermost && !fits(each->strides[i][operand]))
          return false;
      }
    return true;
  };
  while (width > 1 && !allFit())
    width /= 2;
  return width;
}

/// How threads load an operand: whether along the sum, and how many elements at once.
static std::pair<bool, int64_t> loadsOf(const ContractionLoops &loops, unsigned operand,
                                        Type element) {
  const LoopGroup &lines = operand == 0 ? loops.rows : loops.columns;
  int64_t most = kAccessBytes / bytesOf(element);
  int64_t ofSums = ContractionTiles::widthOf(loops, loops.sums, operand, most);
  int64_t ofLines = ContractionTiles::widthOf(loops, lines, operand, most);
  if (ofSums != ofLines)
    return {ofSums > ofLines, std::max(ofSums, ofLines)};
  auto run = [&](const LoopGroup &group) {
    bool isDense = !group.extents.empty() && std::abs(group.strides.back()[operand]) == 1;
    return isDense ? group.extents.back() : 0;
  };
  return {run(loops.sums) > run(lines), ofSums};
}

ContractionShape ContractionTiles::shapeOf(const ContractionLoops &loops, Type element) {
  constexpr int64_t kFewestSteps = 8;
  ContractionShape shape;
  int64_t rows = loops.rows.size(), columns = loops.columns.size(), sums = loops.sums.size();
  auto tileOf = [](int64_t size, int64_t least, int64_t most) {
    while (most > least && size <= most / 2)
      most /= 2;
    return most;
  };
  bool usesMma = ContractionTiles::usesMma(element);
  if (usesMma) {
    shape.threads = 4 * kWarp;
    shape.rows = tileOf(rows, 64, 128);
    shape.columns = tileOf(columns, 32, 64);
    // Elements loaded one by one take a register each.
    bool isWide = loadsOf(loops, 0, element).second >= 4 && loadsOf(loops, 1, element).second >= 4;
    shape.depth = isWide ? 2 * kDepth : kDepth;
  } else {
    shape.rows = tileOf(rows, 32, 128);
    shape.columns = tileOf(columns, 32, 128);
    shape.depth = 8;
  }
  shape.rowTiles = llvm::divideCeil(rows, shape.rows);
  shape.columnTiles = llvm::divideCeil(columns, shape.columns);
  shape.batches = loops.batches.size();
  int64_t steps = llvm::divideCeil(sums, shape.depth);
  int64_t stepsOfPart = llvm::divideCeil(steps, partsOfSum(shape.blocks(), steps, kFewestSteps));
  shape.partDepth = stepsOfPart * shape.depth;
  shape.parts = llvm::divideCeil(steps, stepsOfPart);
  return shape;
}

ContractionTiles::ContractionTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info,
                                   const ContractionLoops &loops, const ContractionShape &shape,
                                   std::array<Value, 3> roots, bool accumulates)
    : TileWriter(launch, info), loops(loops), shape(shape), roots(roots), accumulates(accumulates),
      element(cast<MemRefType>(roots[0].getType()).getElementType()) {
  rowBlocks = shape.rows / (kRows * shape.threads / kWarp);
  lineVector = std::min<int64_t>(4, shape.rows / 16);
  columnVector = std::min<int64_t>(4, shape.columns / 16);
  int64_t columns = loops.columns.size();
  if (shape.parts == 1)
    storeWidth = widthOf(loops, loops.columns, 2, 4);
  else
    storeWidth = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
}

void ContractionTiles::describe(OperandTile &tile, unsigned operand) {
  tile.operand = operand;
  tile.group = operand == 0 ? &loops.rows : &loops.columns;
  tile.lines = operand == 0 ? shape.rows : shape.columns;
  tile.depth = shape.depth;
  std::tie(tile.alongSums, tile.width) = loadsOf(loops, operand, element);
  tile.linesFirst = tile.alongSums && usesMma(element);
  int64_t outer = tile.linesFirst ? tile.lines : tile.depth;
  int64_t inner = tile.linesFirst ? tile.depth : tile.lines;
  int64_t word = kAccessBytes / bytesOf(element);
  // An odd number of 16-byte words per row places eight rows of a matrix in different banks.
  tile.shared = {{}, element, outer, inner, (inner / word | 1) * word};
  tile.shared.memory = launch.shared(element, outer * tile.shared.pitch);
  count(roots[operand], /*store=*/false);
  if (tile.width * bytesOf(element) < kAccessBytes)
    note(roots[operand], /*store=*/false, tile.width * bytesOf(element),
         "windows or unaligned rows");
}

Value offsetOf(TileWriter &t, const LoopGroup &group, unsigned operand, Value index) {
  Value offset = t.constant(0);
  for (size_t i = group.extents.size(); i-- > 0;) {
    Value digit = i == 0 ? index : t.remainder(index, group.extents[i]);
    if (int64_t stride = group.strides[i][operand])
      offset = t.add(offset, t.multiply(digit, stride));
    if (i > 0)
      index = t.divide(index, group.extents[i]);
  }
  return offset;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

SmallVector<Value> ContractionTiles::fetch(const OperandTile &tile, Value firstLine,
                                           Value firstSum) {
  int64_t lines = tile.group->size(), sums = loops.sums.size();
  int64_t chunks = (tile.alongSums ? tile.depth : tile.lines) / tile.width;
  int64_t total = tile.lines * tile.depth / tile.width;
  bool isWhole = total % shape.threads == 0;
  Value memory = launch.flat(roots[tile.operand], /*write=*/false);
  Type type = tile.width == 1 ? element : Type(VectorType::get(tile.width, element));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  SmallVector<Value> fetched;
  for (int64_t first = 0; first < total; first += shape.threads) {
    Value number = add(launch.threadIndex(), first);
    Value outer = divide(number, chunks), inner = multiply(remainder(number, chunks), tile.width);
    Value line = add(firstLine, tile.alongSums ? outer : inner);
    Value sum = add(firstSum, tile.alongSums ? inner : outer);
    // Results of lines beyond the operand are not stored, so any value may be loaded there.
    if (lines % tile.lines != 0 || !isWhole)
      line = least(line, constant(lines - (tile.alongSums ? 1 : tile.width)));
    Value inside;
    if (sums % tile.depth != 0 || !isWhole) {
      inside = less(sum, constant(sums));
      sum = select(inside, sum, constant(0));
    }
    Value offset = add(bases[tile.operand], offsetOf(*this, *tile.group, tile.operand, line));
    offset = add(offset, offsetOf(*this, loops.sums, tile.operand, sum));
    Value value = load(memory, offset, element, tile.width);
    fetched.push_back(inside ? select(inside, value, zero) : value);
  }
  return fetched;
}

void ContractionTiles::put(const OperandTile &tile, ValueRange fetched) {
  int64_t chunks = (tile.alongSums ? tile.depth : tile.lines) / tile.width;
  int64_t total = tile.lines * tile.depth / tile.width;
  for (auto [round, value] : llvm::enumerate(fetched)) {
    int64_t first = static_cast<int64_t>(round) * shape.threads;
    Value number = add(launch.threadIndex(), first);
    OpBuilder::InsertionGuard guard(b);
    if (first + shape.threads > total) {
      auto branch = scf::IfOp::create(b, loc, less(number, constant(total)), /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value outer = divide(number, chunks), inner = multiply(remainder(number, chunks), tile.width);
    if (tile.alongSums == tile.linesFirst) {
      put(value, tile.shared.memory, add(multiply(outer, tile.shared.pitch), inner));
      continue;
    }
    for (int64_t i = 0; i < tile.width; ++i) { // transposed
      Value one = tile.width == 1 ? value : vector::ExtractOp::create(b, loc, value, i).getResult();
      put(one, tile.shared.memory, add(multiply(add(inner, i), tile.shared.pitch), outer));
    }
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> ContractionTiles::leftWords(int64_t block, int64_t step) {
  Value line = add(multiply(warp, kRows * rowBlocks), block * kRows);
  if (left.linesFirst) // two by two matrices, in column-major order
    return matrices(left.shared, add(line, remainder(lane, kRows)),
                    add(multiply(divide(lane, kRows), 8), step * kDepth), /*transposed=*/false);
  Value depth = add(remainder(lane, 8), multiply(divide(lane, kRows), 8));
  return matrices(left.shared, add(depth, step * kDepth),
                  add(line, multiply(remainder(divide(lane, 8), 2), 8)), /*transposed=*/true);
}

SmallVector<Value> ContractionTiles::rightWords(int64_t fragment, int64_t step) {
  if (right.linesFirst)
    return matrices(
        right.shared,
        add(add(remainder(lane, 8), multiply(divide(lane, 16), kColumns)), fragment * kColumns),
        add(multiply(remainder(divide(lane, 8), 2), 8), step * kDepth),
        /*transposed=*/false);
  return matrices(right.shared, add(remainder(lane, kDepth), step * kDepth),
                  add(multiply(divide(lane, kDepth), kColumns), fragment * kColumns),
                  /*transposed=*/true);
}

SmallVector<Value> ContractionTiles::multiplyByMma(ValueRange carried) {
  Fragments sums = unflatten(carried);
  int64_t fragments = shape.columns / kColumns;
  for (int64_t step = 0; step * kDepth < shape.depth; ++step) {
    SmallVector<SmallVector<Value>> words;
    for (int64_t block = 0; block < rowBlocks; ++block)
      words.push_back(leftWords(block, step));
    for (int64_t j = 0; j < fragments; j += 2) {
      SmallVector<Value> other = rightWords(j, step);
      for (int64_t block = 0; block < rowBlocks; ++block)
        for (int64_t i : {0, 1}) {
          Fragment &sum = sums[block * fragments + j + i];
          sum = mma(words[block], ArrayRef(other).slice(2 * i, 2), sum, element);
        }
    }
  }
  return flatten(sums);
}

SmallVector<Value> ContractionTiles::multiplyByFma(ValueRange carried) {
  SmallVector<Value> sums(carried);
  Value threadRow = divide(launch.threadIndex(), 16),
        threadColumn = remainder(launch.threadIndex(), 16);
  int64_t columnVectors = shape.columns / (16 * columnVector);
  auto type = VectorType::get(columnVector, element);
  for (int64_t k = 0; k < shape.depth; ++k) {
    SmallVector<Value> factors, others;
    for (int64_t first = 0; first < shape.rows; first += 16 * lineVector) {
      Value loaded = loadVector(left.shared, constant(k),
                                add(multiply(threadRow, lineVector), first), lineVector);
      for (int64_t i = 0; i < lineVector; ++i)
        factors.push_back(vector::BroadcastOp::create(
            b, loc, type, vector::ExtractOp::create(b, loc, loaded, i).getResult()));
    }
    for (int64_t first = 0; first < shape.columns; first += 16 * columnVector)
      others.push_back(loadVector(right.shared, constant(k),
                                  add(multiply(threadColumn, columnVector), first), columnVector));
    for (auto [i, factor] : llvm::enumerate(factors))
      for (auto [j, other] : llvm::enumerate(others)) {
        Value &sum = sums[i * columnVectors + j];
        sum = vector::FMAOp::create(b, loc, factor, other, sum);
      }
  }
  return sums;
}

SmallVector<Value> ContractionTiles::zeroSums() {
  if (usesMma(element))
    return flatten(zeros(rowBlocks * shape.columns));
  auto type = VectorType::get(columnVector, element);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return SmallVector<Value>(shape.rows / 16 * (shape.columns / 16 / columnVector), zero);
}

SmallVector<Value> ContractionTiles::multiply(ValueRange sums) {
  return usesMma(element) ? multiplyByMma(sums) : multiplyByFma(sums);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value ContractionTiles::resultOffset(const LoopGroup &group, Value index) {
  if (shape.parts == 1)
    return offsetOf(*this, group, 2, index);
  return &group == &loops.rows ? multiply(index, loops.columns.size()) : index;
}

/// Stores a row's values of adjacent columns, each (a scalar or a vector) with its first column.
void ContractionTiles::storeRow(Value row, ArrayRef<std::pair<Value, Value>> columns) {
  OpBuilder::InsertionGuard guard(b);
  int64_t rows = loops.rows.size(), extent = loops.columns.size();
  if (rows % shape.rows != 0) {
    auto branch = scf::IfOp::create(b, loc, less(row, constant(rows)), /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value memory = launch.flat(roots[2], /*write=*/true);
  Value base = add(bases[2], resultOffset(loops.rows, row));
  for (auto [column, value] : columns) {
    auto type = dyn_cast<VectorType>(value.getType());
    int64_t count = type ? type.getNumElements() : 1, width = std::min(count, storeWidth);
    for (int64_t first = 0; first < count; first += width) {
      OpBuilder::InsertionGuard inner(b);
      Value at = add(column, first);
      if (extent % shape.columns != 0) {
        auto branch = scf::IfOp::create(b, loc, less(at, constant(extent)), /*withElse=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      Value some = value;
      if (width < count) {
        SmallVector<Value> elements;
        for (int64_t k = 0; k < width; ++k)
          elements.push_back(vector::ExtractOp::create(b, loc, value, first + k));
        some = width == 1 ? elements[0]
                          : vector::FromElementsOp::create(
                                b, loc, VectorType::get(width, b.getF32Type()), elements)
                                .getResult();
      }
      Value offset = add(base, resultOffset(loops.columns, at));
      put(rounded(some, memory, offset, accumulates), memory, offset);
    }
  }
}

void ContractionTiles::store(ValueRange carried) {
  count(roots[2], /*store=*/true);
  if (accumulates)
    count(roots[2], /*store=*/false);
  int64_t pairs = usesMma(element) ? 2 : columnVector;
  int64_t stored =
      std::min(storeWidth, pairs) * bytesOf(cast<MemRefType>(roots[2].getType()).getElementType());
  if (stored < kAccessBytes)
    note(roots[2], /*store=*/true, stored,
         usesMma(element) ? "a lane's part of a fragment" : "unaligned rows");
  using Columns = SmallVector<std::pair<Value, Value>>;
  if (!usesMma(element)) {
    Value threadRow = divide(launch.threadIndex(), 16);
    Value threadColumn = remainder(launch.threadIndex(), 16);
    size_t next = 0;
    for (int64_t first = 0; first < shape.rows; first += 16 * lineVector)
      for (int64_t i = 0; i < lineVector; ++i) {
        Columns columns;
        for (int64_t at = 0; at < shape.columns; at += 16 * columnVector)
          columns.push_back(
              {add(firstColumn, add(multiply(threadColumn, columnVector), at)), carried[next++]});
        storeRow(add(firstRow, add(multiply(threadRow, lineVector), first + i)), columns);
      }
    return;
  }
  Fragments sums = unflatten(carried);
  int64_t fragments = shape.columns / kColumns;
  auto pair = VectorType::get(2, b.getF32Type());
  for (int64_t block = 0; block < rowBlocks; ++block)
    for (unsigned which : {0, 1}) {
      Columns columns;
      for (int64_t j = 0; j < fragments; ++j) {
        const Fragment &sum = sums[block * fragments + j];
        Value both = vector::FromElementsOp::create(b, loc, pair,
                                                    ValueRange{sum[2 * which], sum[2 * which + 1]});
        columns.push_back({add(firstColumn, columnOf(j, 0)), both});
      }
      Value row = add(multiply(warp, kRows * rowBlocks), block * kRows + 8 * which);
      storeRow(add(firstRow, add(row, group)), columns);
    }
}

void ContractionTiles::emit() {
  // Adjacent blocks share columns, since there are usually more columns than rows.
  Value number = launch.blockIndex();
  firstRow = multiply(remainder(number, shape.rowTiles), shape.rows);
  number = divide(number, shape.rowTiles);
  firstColumn = multiply(remainder(number, shape.columnTiles), shape.columns);
  number = divide(number, shape.columnTiles);
  Value batch = remainder(number, shape.batches);
  part = divide(number, shape.batches);
  for (unsigned operand = 0; operand < 3; ++operand)
    bases[operand] = add(offsetOf(*this, loops.batches, operand, batch), loops.starts[operand]);
  if (shape.parts > 1)
    bases[2] = multiply(add(multiply(part, shape.batches), batch),
                        loops.rows.size() * loops.columns.size());
  describe(left, 0);
  describe(right, 1);

  Value begin = multiply(part, shape.partDepth);
  int64_t sums = loops.sums.size(), lastStep = (sums - 1) / shape.depth * shape.depth;
  Value end =
      shape.parts == 1 ? constant(sums) : least(add(begin, shape.partDepth), constant(sums));
  SmallVector<Value> carried = zeroSums();
  size_t numSums = carried.size();
  llvm::append_range(carried, fetch(left, firstRow, begin));
  size_t numLeft = carried.size() - numSums;
  llvm::append_range(carried, fetch(right, firstColumn, begin));
  SmallVector<Value> done =
      loop(begin, end, shape.depth, carried, [&](Value at, ValueRange carried) {
        barrier(); // the previous tiles have been read
        put(left, carried.slice(numSums, numLeft));
        put(right, carried.drop_front(numSums + numLeft));
        barrier();
        // The last step loads its own elements again.
        Value next = least(add(at, shape.depth), constant(lastStep));
        SmallVector<Value> fetched = fetch(left, firstRow, next);
        llvm::append_range(fetched, fetch(right, firstColumn, next));
        SmallVector<Value> result = multiply(carried.take_front(numSums));
        llvm::append_range(result, fetched);
        return result;
      });
  store(ValueRange(done).take_front(numSums));
}

} // namespace tessera::codegen
