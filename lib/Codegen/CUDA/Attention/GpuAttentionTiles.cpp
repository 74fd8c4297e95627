//===- GpuAttentionTiles.cpp - Tiles of an attention in shared memory -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuAttentionTiles.h"

using namespace mlir;

namespace tessera::codegen {

AttentionTiles::AttentionTiles(GpuLaunchBuilder &launch, const ext::AttentionParts &parts,
                               ArrayRef<Value> roots, GpuLaunchInfo &info,
                               const GpuLaunchLimits &limits)
    : TileWriter(launch, info), parts(parts), sharedLimit(limits.sharedBytes),
      hasWarpgroups(limits.warpgroups), roots(roots), fixed(parts.domain.extents.size()) {
  for (unsigned loop : parts.domain.query)
    if (!query || extent(loop) > extent(query))
      query = loop;
  for (Region &region : parts.op->getRegions())
    forms.push_back(readForm(region));
  if (query)
    known = ext::knownConditionsOf(parts, *query);
}

void AttentionTiles::setWarps(int64_t count, int64_t rowBlocks) {
  numWarps = count;
  numRowBlocks = rowBlocks;
}

Value AttentionTiles::rowOf(unsigned which) {
  Value first = add(multiply(warp, kRows * numRowBlocks), group);
  return add(first, kRows * (which / 2) + 8 * (which % 2));
}

SmallVector<unsigned> AttentionTiles::otherQueryLoops() const {
  SmallVector<unsigned> others;
  for (unsigned loop : parts.domain.query)
    if (loop != query)
      others.push_back(loop);
  return others;
}

Type AttentionTiles::element() const {
  return cast<MemRefType>(roots[0].getType()).getElementType();
}

void AttentionTiles::fixDigits(ArrayRef<unsigned> loops, Value number) {
  for (auto [i, loop] : llvm::enumerate(llvm::reverse(loops))) {
    bool isFirst = i + 1 == loops.size();
    fix(loop, isFirst ? number : remainder(number, extent(loop)));
    if (!isFirst)
      number = divide(number, extent(loop));
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int64_t strideOf(AffineMap map, Value root, unsigned loop) {
  auto type = cast<MemRefType>(root.getType());
  std::optional<unsigned> dim = map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
  if (!dim)
    return 0;
  int64_t stride = 1;
  for (int64_t extent : type.getShape().drop_front(*dim + 1))
    stride *= extent;
  return stride;
}

Value AttentionTiles::offsetOf(AffineMap map, Value root, std::optional<unsigned> loop, Value index,
                               bool clamp) {
  Value offset = constant(0);
  for (AffineExpr expr : map.getResults()) {
    unsigned each = cast<AffineDimExpr>(expr).getPosition();
    Value at = fixed[each];
    if (loop == each)
      at = clamp ? least(index, constant(extent(each) - 1)) : index;
    if (at)
      offset = add(offset, multiply(at, strideOf(map, root, each)));
  }
  return offset;
}

Value AttentionTiles::loadElement(unsigned operand, std::optional<unsigned> loop, Value index) {
  Value root = roots[operand];
  Value memory = launch.flat(root, /*write=*/false);
  note(root, /*store=*/false, bytesOf(cast<MemRefType>(root.getType()).getElementType()),
       "one element per row or score");
  return memref::LoadOp::create(b, loc, memory, offsetOf(parts.maps[operand], root, loop, index));
}

SharedTile AttentionTiles::makeTile(Type element, int64_t rows, int64_t depth, int64_t count) {
  SharedTile tile{{}, element, rows, static_cast<int64_t>(llvm::alignTo(depth, kDepth))};
  // An odd number of 16-byte words per row places eight rows of a matrix in different banks.
  int64_t width = kAccessBytes / bytesOf(element);
  tile.pitch = (llvm::alignTo(tile.depth, width) / width | 1) * width;
  tile.memory = launch.shared(element, count * rows * tile.pitch);
  return tile;
}

SharedTile AttentionTiles::makeOperand(int64_t rows, int64_t depth, int64_t count) {
  if (!usesWarpgroups())
    return makeTile(element(), rows, depth, count);
  SharedTile tile{{}, element(), rows, static_cast<int64_t>(llvm::alignTo(depth, kDepth))};
  int64_t bytes = tile.depth * bytesOf(element());
  tile.pitch = tile.depth;
  for (tile.swizzle = 128; bytes % tile.swizzle != 0;)
    tile.swizzle /= 2;
  // Results of a single tile of rows are stored through it, with rows that are padded.
  int64_t padded = count == 1 ? tile.depth + kAccessBytes / bytesOf(element()) : tile.depth;
  tile.memory = launch.shared(element(), count * rows * padded, kSwizzleAlignment);
  return tile;
}

SharedTile AttentionTiles::rowsOf(SharedTile tile, int64_t first, int64_t count) {
  tile.start = first == 0 ? tile.start : add(tile.start, constant(first * tile.pitch));
  tile.rows = count;
  return tile;
}

void AttentionTiles::makeWalked(ArrayRef<Walked> walked, std::optional<unsigned> loop,
                                int64_t rows) {
  constexpr int64_t kLeastCopy = 4, kMostShared = 48 << 10; // bytes
  int64_t bytes = 0;
  copiesAhead = usesMma();
  for (const Walked &each : walked) {
    int64_t width = widthOf(parts.maps[each.operand], roots[each.operand], loop, /*store=*/false);
    copiesAhead &= width * bytesOf(element()) >= kLeastCopy;
    bytes += 2 * rows * (each.depth + kAccessBytes) * bytesOf(element());
  }
  copiesAhead &= usesWarpgroups() || bytes <= kMostShared;
  for (const Walked &each : walked)
    each.tile = makeOperand(rows, each.depth, copiesAhead ? 2 : 1);
}

SmallVector<Value> AttentionTiles::walk(ArrayRef<Walked> walked, std::optional<unsigned> loop,
                                        Value begin, Value end, ValueRange carried,
                                        const Staging &staging,
                                        function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  int64_t rows = walked.front().tile.rows;
  SmallVector<Value> all(carried);
  if (!copiesAhead) {
    if (staging.begin)
      llvm::append_range(all, staging.begin());
    return TileWriter::loop(begin, end, rows, all, [&](Value at, ValueRange inner) {
      SmallVector<SmallVector<Value>> fetched;
      for (const Walked &each : walked)
        fetched.push_back(fetch(each.tile, each.operand, loop, at));
      barrier(); // the previous tiles have been read
      for (auto [each, values] : llvm::zip_equal(walked, fetched))
        put(each.tile, values);
      if (staging.stage)
        staging.stage(at);
      barrier();
      return body(at, inner);
    });
  }

  auto choose = [&](Value half) {
    for (const Walked &each : walked)
      each.tile.start = multiply(half, rows * each.tile.pitch);
  };
  auto copySome = [&](Value at, Value half, bool isAhead) {
    auto branch = scf::IfOp::create(b, loc, less(at, end), /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    choose(half);
    for (const Walked &each : walked)
      if (each.isAhead == isAhead)
        copy(each.tile, each.operand, loop, at);
    if (staging.copy && !isAhead)
      staging.copy(at, half);
  };
  bool hasAhead = llvm::any_of(walked, [](const Walked &each) { return each.isAhead; });
  auto copyAll = [&](Value at, Value half) {
    copySome(at, half, /*isAhead=*/false);
    if (hasAhead)
      copySome(add(at, rows), half, /*isAhead=*/true);
    commitCopies();
  };
  barrier(); // tiles of a previous walk have been read
  if (hasAhead)
    copySome(begin, constant(1), /*isAhead=*/true);
  copyAll(begin, constant(0));
  if (staging.begin) {
    choose(constant(1)); // of those that are ahead
    llvm::append_range(all, staging.begin());
  }
  all.push_back(constant(0));
  SmallVector<Value> done =
      TileWriter::loop(begin, end, rows, all, [&](Value at, ValueRange inner) {
        Value half = inner.back(), other = arith::SubIOp::create(b, loc, constant(1), half);
        waitForCopies();
        publish();
        barrier(); // the copies of all threads are complete, and the other half has been read
        copyAll(add(at, rows), other);
        if (staging.stage) {
          staging.stage(at);
          barrier();
        }
        choose(half);
        currentHalf = half;
        SmallVector<Value> next = body(at, inner.drop_back());
        next.push_back(other);
        return next;
      });
  for (const Walked &each : walked)
    each.tile.start = {};
  done.pop_back();
  return done;
}

/// The widest access to rows of a tensor in elements.
static int64_t widestAccess(AffineMap map, Value root) {
  auto type = cast<MemRefType>(root.getType());
  int64_t width = kAccessBytes / bytesOf(type.getElementType());
  auto fits = [&](int64_t each) { return each % width == 0; };
  // Features are contiguous, as matchAttention requires. The row and all other strides must be
  // multiples of the width.
  while (width > 1 && !(fits(type.getShape().back()) &&
                        llvm::all_of(map.getResults().drop_back(), [&](AffineExpr expr) {
                          return fits(strideOf(map, root, cast<AffineDimExpr>(expr).getPosition()));
                        })))
    width /= 2;
  return width;
}

bool AttentionTiles::canCopy(unsigned operand) const {
  return widestAccess(parts.maps[operand], roots[operand]) > 1;
}

int64_t AttentionTiles::widthOf(AffineMap map, Value root, std::optional<unsigned> loop,
                                bool store) {
  auto type = cast<MemRefType>(root.getType());
  int64_t bytes = bytesOf(type.getElementType()), width = widestAccess(map, root);
  if (width * bytes < kAccessBytes)
    note(root, store, width * bytes,
         "rows of " + std::to_string(type.getShape().back()) + " elements");
  return width;
}

SmallVector<AttentionTiles::Chunk> AttentionTiles::chunksOf(const SharedTile &tile,
                                                            unsigned operand,
                                                            std::optional<unsigned> loop,
                                                            Value begin) {
  Value root = roots[operand];
  AffineMap map = parts.maps[operand];
  int64_t width = widthOf(map, root, loop, /*store=*/false);
  int64_t depth = cast<MemRefType>(root.getType()).getShape().back(), rows = extent(loop);
  int64_t chunks = tile.depth / width, total = tile.rows * chunks, threads = kWarp * numWarps;
  SmallVector<Chunk> result;
  // Where a round has whole rows, a thread has one column, and constant distances of its rows.
  bool hasWholeRows =
      loop && threads % chunks == 0 && rows % tile.rows == 0 && total % threads == 0;
  for (int64_t round = 0; round * threads < total; ++round) {
    Value number = add(launch.threadIndex(), round * threads);
    if (hasWholeRows && round > 0) {
      int64_t distance = round * (threads / chunks);
      Value offset = add(result[0].offset, distance * strideOf(map, root, *loop));
      result.push_back({number, offset, result[0].inside, width});
      continue;
    }
    Value row = add(begin, divide(number, chunks));
    Value column = multiply(remainder(number, chunks), width);
    Value inside;
    if (rows % tile.rows != 0 || total % threads != 0)
      inside = less(row, constant(rows));
    if (depth != tile.depth) {
      Value here = less(column, constant(depth));
      inside = inside ? arith::AndIOp::create(b, loc, inside, here).getResult() : here;
      column = select(here, column, constant(0));
    }
    Value offset =
        add(offsetOf(map, root, loop, row, /*clamp=*/rows % tile.rows != 0 || total % threads != 0),
            column);
    result.push_back({number, offset, inside, width});
  }
  return result;
}

SmallVector<Value> AttentionTiles::fetch(const SharedTile &tile, unsigned operand,
                                         std::optional<unsigned> loop, Value begin) {
  SmallVector<Value> fetched;
  Value memory = launch.flat(roots[operand], /*write=*/false);
  for (const Chunk &chunk : chunksOf(tile, operand, loop, begin)) {
    Value value = load(memory, chunk.offset, tile.element, chunk.width);
    if (chunk.inside)
      value = select(chunk.inside, value,
                     arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType())));
    fetched.push_back(value);
  }
  return fetched;
}

void AttentionTiles::copy(const SharedTile &tile, unsigned operand, std::optional<unsigned> loop,
                          Value begin) {
  Value memory = launch.flat(roots[operand], /*write=*/false);
  SmallVector<Chunk> chunks = chunksOf(tile, operand, loop, begin);
  forChunks(tile, chunks.front().width, chunks.size(), [&](size_t round, Value place) {
    const Chunk &chunk = chunks[round];
    copyAsync(memory, chunk.offset, tile.memory, place, chunk.width, chunk.inside);
  });
}

void AttentionTiles::put(const SharedTile &tile, ValueRange fetched) {
  auto vector = dyn_cast<VectorType>(fetched.front().getType());
  forChunks(
      tile, vector ? vector.getNumElements() : 1, fetched.size(),
      [&](size_t round, Value place) { TileWriter::put(fetched[round], tile.memory, place); });
}

void AttentionTiles::forChunks(const SharedTile &tile, int64_t width, size_t count,
                               function_ref<void(size_t, Value)> body) {
  int64_t chunks = tile.depth / width, total = tile.rows * chunks, threads = kWarp * numWarps;
  Value firstPlace;
  for (size_t round = 0; round < count; ++round) {
    auto first = static_cast<int64_t>(round) * threads;
    Value number = add(launch.threadIndex(), first);
    OpBuilder::InsertionGuard guard(b);
    if (first + threads > total) {
      auto branch = scf::IfOp::create(b, loc, less(number, constant(total)), /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value place;
    // Rows of a swizzled layout repeat its pattern after eight.
    constexpr int64_t kPattern = 8;
    bool repeats = tile.swizzle == 0 || first / chunks % kPattern == 0;
    int64_t pitch = tile.swizzle == 0 ? tile.pitch : tile.swizzle / bytesOf(tile.element);
    if (round > 0 && threads % chunks == 0 && repeats)
      place = add(firstPlace, first / chunks * pitch);
    else
      place = placeOf(tile, divide(number, chunks), multiply(remainder(number, chunks), width));
    if (round == 0)
      firstPlace = place;
    body(round, place);
  }
}

/// Four lanes store 32 bytes of a row, which is a sector of memory: a tile of f32 would take twice
/// the shared memory of one of 16-bit floats, and blocks from a multiprocessor.
void AttentionTiles::storePairs(const SharedTile &tile, ArrayRef<Fragment> fragments, Value root,
                                AffineMap map, std::optional<unsigned> loop, Value begin) {
  auto pair = VectorType::get(2, b.getF32Type());
  int64_t depth = cast<MemRefType>(root.getType()).getShape().back(), extent = this->extent(loop);
  size_t across = fragments.size() / numRowBlocks;
  Value memory = launch.flat(root, /*write=*/true);
  auto storeIf = [&](Value condition) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  for (unsigned which = 0; which < laneRows(); ++which) {
    OpBuilder::InsertionGuard guard(b);
    Value row = add(begin, rowOf(which));
    if (extent % tile.rows != 0)
      storeIf(less(row, constant(extent)));
    Value place = offsetOf(map, root, loop, row, /*clamp=*/false);
    for (size_t number = 0; number < across; ++number) {
      OpBuilder::InsertionGuard columnGuard(b);
      const Fragment &fragment = fragments[which / 2 * across + number];
      Value column = columnOf(number, 0);
      if (static_cast<int64_t>(number + 1) * kColumns > depth)
        storeIf(less(column, constant(depth)));
      const std::array<Value, 2> both{fragment[which % 2 * 2], fragment[which % 2 * 2 + 1]};
      TileWriter::put(vector::FromElementsOp::create(b, loc, pair, both), memory,
                      add(place, column));
    }
  }
}

void AttentionTiles::store(SharedTile tile, ArrayRef<Fragment> fragments, Value root, AffineMap map,
                           std::optional<unsigned> loop, Value begin) {
  Type element = cast<MemRefType>(root.getType()).getElementType();
  int64_t columns = static_cast<int64_t>(fragments.size()) / numRowBlocks * kColumns;
  count(root, /*store=*/true);
  if (element.isF32() && !tile.element.isF32() && widthOf(map, root, loop, /*store=*/true) > 1)
    return storePairs(tile, fragments, root, map, loop, begin);
  if (tile.swizzle != 0) { // no products read it any more
    tile.pitch = tile.depth + kAccessBytes / bytesOf(tile.element);
    tile.swizzle = 0;
  }
  if (tile.element != element || tile.depth < columns)
    tile = makeTile(element, tile.rows, columns);
  barrier(); // the tile has been read
  auto pair = VectorType::get(2, tile.element);
  for (auto [number, fragment] : llvm::enumerate(fragments))
    for (unsigned which : {0, 1}) {
      SmallVector<Value> both;
      for (unsigned column : {0, 1})
        both.push_back(convert(fragment[2 * which + column], tile.element));
      Value row = rowOf(laneRowOf(number, 2 * which, fragments.size()));
      Value column = columnOf(acrossOf(number, fragments.size()), 0);
      Value offset = add(multiply(row, tile.pitch), column);
      TileWriter::put(vector::FromElementsOp::create(b, loc, pair, both), tile.memory, offset);
    }
  barrier();
  int64_t width = widthOf(map, root, loop, /*store=*/true);
  int64_t depth = cast<MemRefType>(root.getType()).getShape().back(), rows = extent(loop);
  int64_t chunks = depth / width, total = tile.rows * chunks, threads = kWarp * numWarps;
  Value memory = launch.flat(root, /*write=*/true);
  for (int64_t first = 0; first < total; first += threads) {
    Value number = add(launch.threadIndex(), first);
    Value line = divide(number, chunks), row = add(begin, line);
    Value column = multiply(remainder(number, chunks), width);
    OpBuilder::InsertionGuard guard(b);
    Value inside;
    if (rows % tile.rows != 0)
      inside = less(row, constant(rows));
    if (first + threads > total) {
      Value here = less(number, constant(total));
      inside = inside ? arith::AndIOp::create(b, loc, inside, here).getResult() : here;
    }
    if (inside) {
      auto branch = scf::IfOp::create(b, loc, inside, /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value value = load(tile.memory, add(multiply(line, tile.pitch), column), tile.element, width);
    TileWriter::put(value, memory, add(offsetOf(map, root, loop, row, /*clamp=*/false), column));
  }
}

} // namespace tessera::codegen
