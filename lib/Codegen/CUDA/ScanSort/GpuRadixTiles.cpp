//===- GpuRadixTiles.cpp - Count and move the digits of a tile ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has consecutive elements of a tile, and its lanes adjacent ones at a time. Eight ballots
// find the lanes with the same digit; the first of them adds their number to the warp's counter of
// the digit. So an element knows how many equal digits precede it in the warp, and by sums over the
// warps, digits and blocks where it goes. A tile is brought to the order of its digits in shared
// memory first, so that adjacent threads write adjacent elements.
//
//===----------------------------------------------------------------------===//

#include "GpuRadix.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::codegen {

RadixTiles::RadixTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const SortKernel &sort,
                       const RadixShape &shape, const RadixPass &pass, TileKernel &kernel)
    : TileWriter(launch, info), sort(sort), shape(shape), pass(pass), kernel(kernel) {
  line = divide(launch.blockIndex(), shape.blocksOfLine());
  part = remainder(launch.blockIndex(), shape.blocksOfLine());
  counters = launch.shared(b.getI32Type(), RadixShape::kWarps * RadixShape::kDigits);
}

Value RadixTiles::word(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

Value RadixTiles::loadWord(Value memory, Value place) {
  return memref::LoadOp::create(b, loc, memory, place);
}

Value RadixTiles::toIndex(Value word) {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), word);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value RadixTiles::positionOf(int64_t item) {
  Value ofWarp = multiply(warp, kWarp * shape.items);
  return add(multiply(part, shape.tile()), add(add(ofWarp, lane), kWarp * item));
}

/// The index of an element of the line in an operand or result, with `extent` elements a line.
Value RadixTiles::offsetOf(Value position, int64_t extent) {
  Value outer = divide(line, shape.lines.inner), inner = remainder(line, shape.lines.inner);
  return add(multiply(add(multiply(outer, extent), position), shape.lines.inner), inner);
}

Value RadixTiles::readOperand(unsigned number, Value position) {
  return memref::LoadOp::create(b, loc,
                                launch.flat(kernel.root(sort.operands[number]), /*write=*/false),
                                offsetOf(position, shape.lines.extent));
}

RadixTiles::Values RadixTiles::read(ValueRange from, Value position, bool onlyKey) {
  auto stored = [&](unsigned field) -> Value {
    return memref::LoadOp::create(b, loc, launch.flat(from[field], /*write=*/false),
                                  add(multiply(line, shape.lines.extent), position));
  };
  Values fields;
  if (!shape.moved.empty()) {
    for (auto [field, number] : llvm::enumerate(shape.moved))
      if (!onlyKey || field == keyField())
        fields.push_back(pass.isFirst ? readOperand(number, position) : stored(field));
    return fields;
  }
  bool gathers = pass.beginsKey && !pass.isFirst;
  Value index;
  if (!onlyKey || gathers)
    index = pass.isFirst
                ? arith::IndexCastUIOp::create(b, loc, b.getI32Type(), position).getResult()
                : stored(1);
  if (pass.beginsKey)
    fields.push_back(readOperand(pass.key, gathers ? toIndex(index) : position));
  else
    fields.push_back(stored(0));
  if (!onlyKey)
    fields.push_back(index);
  return fields;
}

void RadixTiles::write(ValueRange to, Value position, ValueRange fields) {
  if (!pass.isLast) {
    Value place = add(multiply(line, shape.lines.extent), position);
    for (auto [field, value, root] : llvm::enumerate(fields, to))
      if (!shape.moved.empty() || field != 0 || !pass.endsKey)
        memref::StoreOp::create(b, loc, value, launch.flat(root, /*write=*/true), place);
    return;
  }
  auto store = [&] {
    Value place = offsetOf(position, shape.count);
    for (auto [number, result] : llvm::enumerate(sort.results)) {
      if (!result)
        continue;
      const auto *field = llvm::find(shape.moved, number);
      Value value = shape.moved.empty() ? readOperand(number, toIndex(fields[1]))
                                        : fields[field - shape.moved.begin()];
      memref::StoreOp::create(b, loc, value, launch.flat(kernel.root(*result), /*write=*/true),
                              place);
    }
  };
  if (shape.count < shape.lines.extent)
    onlyIf(less(position, constant(shape.count)), store);
  else
    store();
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

Value RadixTiles::keyOf(Value element) {
  Type type = element.getType();
  bool descending = sort.op.getDescending();
  if (type.isInteger(1)) {
    Value key = arith::ExtUIOp::create(b, loc, b.getI32Type(), element);
    return descending ? arith::XOrIOp::create(b, loc, key, word(1)).getResult() : key;
  }
  Value key = element;
  if (type.isIndex())
    key = arith::IndexCastOp::create(b, loc, b.getI64Type(), element);
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Type bits = b.getIntegerType(width);
  auto number = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(bits, value));
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  if (auto real = dyn_cast<FloatType>(type)) {
    // As SortWords::keyOf, without a wider type: zeros are equal, NaN of either sign is last.
    Value raw = arith::BitcastOp::create(b, loc, bits, element);
    Value most = number(APInt::getSignedMaxValue(width)), zero = number(APInt::getZero(width));
    APInt infinity = APFloat::getInf(real.getFloatSemantics()).bitcastToAPInt();
    Value magnitude = arith::AndIOp::create(b, loc, raw, most);
    Value isNegative = compare(arith::CmpIPredicate::slt, raw, zero);
    key = select(isNegative, arith::XOrIOp::create(b, loc, raw, most), raw);
    key = select(compare(arith::CmpIPredicate::eq, magnitude, zero), zero, key);
    key = select(compare(arith::CmpIPredicate::ugt, magnitude, number(infinity)), most, key);
  }
  APInt flipped = APInt::getSignMask(width);
  if (descending)
    flipped.flipAllBits();
  return arith::XOrIOp::create(b, loc, key, number(flipped));
}

Value RadixTiles::digitOf(Value element) {
  Value key = keyOf(element);
  unsigned width = key.getType().getIntOrFloatBitWidth();
  Type i32 = b.getI32Type();
  if (width < 32)
    key = arith::ExtUIOp::create(b, loc, i32, key);
  if (width > 32) {
    Value by = arith::ExtUIOp::create(b, loc, key.getType(), shiftBy);
    key = arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, key, by));
  } else {
    key = arith::ShRUIOp::create(b, loc, key, shiftBy);
  }
  return arith::AndIOp::create(b, loc, key, word(RadixShape::kDigits - 1));
}

RadixTiles::Values RadixTiles::rank(ArrayRef<Values> fields) {
  Type i32 = b.getI32Type();
  for (int64_t warp = 0; warp < RadixShape::kWarps; ++warp)
    memref::StoreOp::create(b, loc, word(0), counters,
                            add(launch.threadIndex(), warp * RadixShape::kDigits));
  barrier();
  Value own = arith::IndexCastUIOp::create(b, loc, i32, lane);
  Value lanesBefore =
      arith::SubIOp::create(b, loc, arith::ShLIOp::create(b, loc, word(1), own), word(1));
  Values ranked;
  for (auto [item, values] : llvm::enumerate(fields)) {
    Value digit = digitOf(values[keyField() < values.size() ? keyField() : 0]);
    // Beyond the end of a line, behind all elements.
    if (shape.lines.extent % shape.tile() != 0) {
      Value isInside = less(positionOf(static_cast<int64_t>(item)), constant(shape.lines.extent));
      digit = select(isInside, digit, word(RadixShape::kDigits - 1));
    }
    Value peers = word(-1);
    for (int64_t bit = 0; bit < RadixShape::kBits; ++bit) {
      Value masked = arith::AndIOp::create(b, loc, digit, word(1 << bit));
      Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, masked, word(0));
      Value lanes = ballot(isSet);
      Value others = arith::XOrIOp::create(b, loc, lanes, word(-1));
      peers = arith::AndIOp::create(b, loc, peers, select(isSet, lanes, others));
    }
    Value first = math::CountTrailingZerosOp::create(b, loc, peers);
    Value before = math::CtPopOp::create(b, loc, arith::AndIOp::create(b, loc, peers, lanesBefore));
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, first, own);
    Value place = add(multiply(warp, RadixShape::kDigits), toIndex(digit));
    auto branch = scf::IfOp::create(b, loc, TypeRange{i32}, isFirst, /*withElse=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value counted = loadWord(counters, place);
      Value more = arith::AddIOp::create(b, loc, counted, math::CtPopOp::create(b, loc, peers));
      memref::StoreOp::create(b, loc, more, counters, place);
      scf::YieldOp::create(b, loc, counted);
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, loc, word(0));
    }
    Value counted = gpu::ShuffleOp::create(b, loc, branch.getResult(0), first, word(kWarp),
                                           gpu::ShuffleMode::IDX)
                        .getShuffleResult();
    Value equal = arith::AddIOp::create(b, loc, counted, before);
    ranked.push_back(
        arith::OrIOp::create(b, loc, arith::ShLIOp::create(b, loc, digit, word(16)), equal));
    warpBarrier(); // another lane may be the first one of the next element
  }
  barrier();
  return ranked;
}

Value RadixTiles::sumCounters() {
  Value total = word(0);
  for (int64_t warp = 0; warp < RadixShape::kWarps; ++warp) {
    Value place = add(launch.threadIndex(), warp * RadixShape::kDigits);
    Value counted = loadWord(counters, place);
    memref::StoreOp::create(b, loc, total, counters, place);
    total = arith::AddIOp::create(b, loc, total, counted);
  }
  return total;
}

RadixTiles::Values RadixTiles::sumsBefore(Values values) {
  Values sums, totals;
  for (Value value : values) {
    Value sum = value;
    for (int64_t distance = 1; distance < kWarp; distance *= 2) {
      Value other = shuffle(sum, distance, gpu::ShuffleMode::UP);
      Value isThere = less(constant(distance - 1), lane);
      sum = arith::AddIOp::create(b, loc, sum, select(isThere, other, word(0)));
    }
    totals.push_back(launch.shared(b.getI32Type(), RadixShape::kWarps));
    onlyIf(less(constant(kWarp - 2), lane),
           [&] { memref::StoreOp::create(b, loc, sum, totals.back(), warp); });
    sums.push_back(arith::SubIOp::create(b, loc, sum, value));
  }
  barrier();
  for (auto [sum, total] : llvm::zip_equal(sums, totals))
    for (int64_t other = 0; other + 1 < RadixShape::kWarps; ++other) {
      Value isBehind = less(constant(other), warp);
      sum = arith::AddIOp::create(b, loc, sum,
                                  select(isBehind, loadWord(total, constant(other)), word(0)));
    }
  return sums;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

GpuShape RadixTiles::finish() {
  for (const GpuLaunchBuilder::Buffer &buffer : launch.buffers) {
    Type element = cast<MemRefType>(buffer.root.getType()).getElementType();
    note(buffer.root, buffer.written, bytesOf(element), "elements of a sort");
  }
  GpuShape grid;
  grid.blocks = shape.blocks();
  grid.threads = RadixShape::kThreads;
  grid.resident = 2;
  return grid;
}

GpuShape RadixTiles::count(ValueRange from, Value counts, Value shift, Value table) {
  shiftBy = shift ? loadWord(launch.flat(shift, /*write=*/false), constant(0)) : word(pass.shift);
  if (table) {
    Value isFirst = less(add(launch.blockIndex(), launch.threadIndex()), constant(1));
    Value memory = launch.flat(table, /*write=*/true);
    onlyIf(isFirst, [&] {
      for (auto [number, other] : llvm::enumerate(shape.passes))
        memref::StoreOp::create(b, loc, word(other.shift), memory,
                                constant(static_cast<int64_t>(number) * kEntry));
    });
  }
  Value last = constant(shape.lines.extent - 1);
  std::vector<Values> fields;
  for (int64_t item = 0; item < shape.items; ++item)
    fields.push_back(read(from, least(positionOf(item), last), /*onlyKey=*/true));
  rank(fields);
  Value row = add(multiply(line, RadixShape::kDigits), launch.threadIndex());
  memref::StoreOp::create(b, loc, sumCounters(), launch.flat(counts, /*write=*/true),
                          add(multiply(row, shape.blocksOfLine()), part));
  int64_t total = shape.numLines() * shape.lines.extent;
  bool gathers = shape.moved.empty() && pass.beginsKey && !pass.isFirst;
  info.readBytes += total * (bytesOf(shape.elements[pass.key]) + (gathers ? 4 : 0));
  TileWriter::count(counts, /*store=*/true);
  return finish();
}

GpuShape RadixTiles::scatter(ValueRange from, Value sums, ValueRange to, Value shift) {
  shiftBy = shift ? loadWord(launch.flat(shift, /*write=*/false), constant(0)) : word(pass.shift);
  const int64_t tile = shape.tile(), extent = shape.lines.extent;
  SmallVector<Type> types = shape.fieldsOf(pass);
  std::vector<Values> fields;
  for (int64_t item = 0; item < shape.items; ++item)
    fields.push_back(read(from, least(positionOf(item), constant(extent - 1)), /*onlyKey=*/false));
  Values ranked = rank(fields);
  // The thread's digit: where its elements begin in the tile, and in the line.
  Value total = sumCounters();
  Value row = add(multiply(line, RadixShape::kDigits), launch.threadIndex());
  Value first = multiply(row, shape.blocksOfLine()), memory = launch.flat(sums, /*write=*/false);
  Value ofLine = loadWord(memory, add(first, shape.blocksOfLine() - 1));
  Value ofBlocks = loadWord(memory, add(first, part));
  Values before = sumsBefore({total, ofLine});
  Value target =
      arith::AddIOp::create(b, loc, before[1], arith::SubIOp::create(b, loc, ofBlocks, total));
  target = arith::SubIOp::create(b, loc, target, before[0]);
  Value starts = launch.shared(b.getI32Type(), RadixShape::kDigits);
  Value targets = launch.shared(b.getI32Type(), RadixShape::kDigits);
  memref::StoreOp::create(b, loc, before[0], starts, launch.threadIndex());
  memref::StoreOp::create(b, loc, target, targets, launch.threadIndex());
  barrier();
  Values staged;
  for (Type type : types)
    staged.push_back(launch.shared(type, tile));
  for (auto [values, rank] : llvm::zip_equal(fields, ranked)) {
    Value at = toIndex(arith::ShRUIOp::create(b, loc, rank, word(16)));
    Value equal = arith::AndIOp::create(b, loc, rank, word(0xffff));
    Value inTile = arith::AddIOp::create(b, loc, equal, loadWord(starts, at));
    inTile = arith::AddIOp::create(
        b, loc, inTile, loadWord(counters, add(multiply(warp, RadixShape::kDigits), at)));
    for (auto [value, shared] : llvm::zip_equal(values, staged))
      memref::StoreOp::create(b, loc, value, shared, toIndex(inTile));
  }
  barrier();
  Value rest = minus(constant(extent), multiply(part, tile));
  for (int64_t item = 0; item < shape.items; ++item) {
    Value inTile = add(launch.threadIndex(), item * RadixShape::kThreads);
    auto move = [&] {
      Values values = llvm::map_to_vector(staged, [&](Value shared) -> Value {
        return memref::LoadOp::create(b, loc, shared, inTile);
      });
      Value begin = loadWord(targets, toIndex(digitOf(values[keyField()])));
      Value place = arith::AddIOp::create(
          b, loc, begin, arith::IndexCastUIOp::create(b, loc, b.getI32Type(), inTile));
      write(to, toIndex(place), values);
    };
    if (extent % tile == 0)
      move();
    else
      onlyIf(less(inTile, rest), move);
  }
  int64_t elements = shape.numLines() * extent, results = shape.numLines() * shape.count;
  bool movesAll = !shape.moved.empty();
  for (auto [field, type] : llvm::enumerate(types)) {
    bool isIndex = !movesAll && field == 1;
    info.readBytes += isIndex && pass.isFirst ? 0 : elements * bytesOf(type);
    bool isWritten = !pass.isLast && (movesAll || isIndex || !pass.endsKey);
    info.writtenBytes += isWritten ? elements * bytesOf(type) : 0;
  }
  if (pass.isLast)
    for (auto [result, type] : llvm::zip_equal(sort.results, shape.elements))
      if (result) {
        info.writtenBytes += results * bytesOf(type);
        info.readBytes += movesAll ? 0 : results * bytesOf(type);
      }
  TileWriter::count(sums, /*store=*/false);
  return finish();
}

} // namespace tessera::codegen
