//===- GpuEmitPermute.cpp - Transpose tiles in shared memory --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// out[j, i] = f(x[i, j]): x is contiguous along one loop (`across`), out along another (`last`). A
// block reads a tile of x along the first, 16 bytes per thread, stores it in shared memory, and
// computes the tile of out along the second as the flat scheme does. Rows of the tile in shared
// memory have an odd number of words, and a warp works on 4 rows by 8 vectors of either side, so
// neither side has bank conflicts (for elements of less than 4 bytes: two-way conflicts when
// reading the tile).
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kWordBytes = 4;
/// The shared memory that every GPU provides by default, and with several blocks per
/// multiprocessor.
static constexpr int64_t kSharedBytes = 40 << 10;

/// The extent of a tile's side for elements of `bytes` bytes: at least 128 bytes in each direction.
static int64_t sideFor(int64_t bytes) {
  return bytes == 1 ? 128 : bytes >= 8 ? 32 : 64;
}

/// The row pitch of a tile in elements.
static int64_t pitchFor(int64_t across, int64_t bytes) {
  if (bytes >= kWordBytes)
    return across | 1;
  int64_t perWord = kWordBytes / bytes;
  return (((across + perWord - 1) / perWord) | 1) * perWord;
}

/// Distributes the work of a tile over the threads, one vector of `width` elements along one of its
/// loops at a time; `body` gets the vector's start in the tile. `runs`: vectors per row.
void GpuEmitter::overTile(const Tile &tile, int64_t runs, int64_t width, bool alongLast,
                          function_ref<void(Value, Value)> body) {
  int64_t lines = alongLast ? tile.across : tile.last, total = runs * lines;
  int64_t rounds = (total + tile.threads - 1) / tile.threads;
  OpBuilder::InsertionGuard guard(b);
  Value index = launch.threadIndex();
  if (rounds > 1) {
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(rounds), constant(1));
    b.setInsertionPointToStart(loop.getBody());
    index = add(index, multiply(loop.getInductionVar(), tile.threads));
  }
  if (total % tile.threads != 0) {
    auto branch = scf::IfOp::create(
        b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, constant(total)),
        /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value line, run;
  if (runs % 8 == 0 && lines % 4 == 0) {
    Value warp = divide(index, 32), within = remainder(index, 32);
    line = add(multiply(divide(warp, runs / 8), 4), divide(within, 8));
    run = add(multiply(remainder(warp, runs / 8), 8), remainder(within, 8));
  } else {
    line = divide(index, runs);
    run = remainder(index, runs);
  }
  Value at = multiply(run, width);
  Value last = alongLast ? at : line, across = alongLast ? line : at;
  // Tiles at the edge are partial.
  const GpuTiles &tiles = *group.tiles;
  Value inside;
  auto limit = [&](Value begin, Value in, int64_t side, int64_t extent) {
    if (extent % side == 0)
      return;
    Value here =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, add(begin, in), constant(extent));
    inside = inside ? arith::AndIOp::create(b, loc, inside, here).getResult() : here;
  };
  limit(tile.lastAt, last, tile.last, tiles.loops.back().extent);
  limit(tile.acrossAt, across, tile.across, tiles.loops[tiles.across].extent);
  if (inside) {
    auto branch = scf::IfOp::create(b, loc, inside, /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  body(last, across);
}

/// Copies the tile of an operand to shared memory.
void GpuEmitter::stage(const GpuMember &member, const GpuAccess &access, const Tile &tile) {
  Chunk all;
  all.volume = group.count();
  Key key = keyOf(member, access, all);
  if (staged.count(key))
    return;
  const GpuTiles &tiles = *group.tiles;
  int64_t bytes = bytesOf(access.element), width = kAccessBytes / bytes;
  SmallVector<unsigned> loops = GpuGroup::classLoops(member, group.extents.size());
  auto step = [&](unsigned loop) { return access.step[loops[tiles.loops[loop].lastClass]]; };
  auto fits = [&] {
    bool result = access.base % width == 0 && tiles.loops[tiles.across].extent % width == 0 &&
                  (!access.view || access.divisor % width == 0);
    for (unsigned l = 0; l < tiles.loops.size(); ++l)
      result &= l == tiles.across || tiles.loops[l].extent == 1 || step(l) % width == 0;
    return result;
  };
  while (width > 1 && !fits())
    width /= 2;
  if (width * bytes < kAccessBytes)
    note(access.root, /*store=*/false, width * bytes,
         "runs of " + std::to_string(tiles.loops[tiles.across].extent) + " elements");
  countLoad(member, access);
  Staged tiled;
  tiled.pitch = pitchFor(tile.across, bytes);
  tiled.memory = launch.shared(access.element, tile.last * tiled.pitch);
  Value memory = launch.flat(access.root, /*write=*/false);
  overTile(tile, tile.across / width, width, /*alongLast=*/false, [&](Value last, Value across) {
    Value from = add(add(tile.acrossAt, across),
                     multiply(add(tile.lastAt, last), step(tiles.loops.size() - 1)));
    // The indices of the other loops, from their flat index.
    int64_t below = 1;
    for (unsigned l = tiles.loops.size(); l-- > 0;) {
      if (l != tiles.across && l + 1 != tiles.loops.size()) {
        if (step(l) != 0)
          from = add(from,
                     multiply(remainder(divide(tile.rest, below), tiles.loops[l].extent), step(l)));
      }
      below *= tiles.loops[l].extent;
    }
    from = add(from, access.base);
    if (access.view)
      from = add(from, dynamicOffsets[access.view]);
    Value to = add(multiply(last, tiled.pitch), across);
    if (width == 1) {
      memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, memory, from), tiled.memory,
                              to);
      return;
    }
    Value value = vector::LoadOp::create(b, loc, VectorType::get(width, access.element), memory,
                                         ValueRange{from}, /*nontemporal=*/false,
                                         llvm::MaybeAlign(width * bytes));
    int64_t part = std::min(width, std::max<int64_t>(1, kWordBytes / bytes));
    for (int64_t lane = 0; lane < width; lane += part) {
      Values elements;
      for (int64_t l = 0; l < part; ++l)
        elements.push_back(vector::ExtractOp::create(b, loc, value, lane + l));
      if (part == 1) {
        memref::StoreOp::create(b, loc, elements[0], tiled.memory, add(to, lane));
        continue;
      }
      Value word =
          vector::FromElementsOp::create(b, loc, VectorType::get(part, access.element), elements);
      vector::StoreOp::create(b, loc, word, tiled.memory, ValueRange{add(to, lane)},
                              /*nontemporal=*/false, llvm::MaybeAlign(part * bytes));
    }
  });
  staged[key] = tiled;
}

Value GpuEmitter::loadStaged(const Staged &tiled, Type element, const Chunk &chunk) {
  Values lanes;
  Value first = add(multiply(lastIndex, tiled.pitch), acrossIndex);
  for (int64_t lane = 0; lane < std::max<int64_t>(1, chunk.lanes); ++lane)
    lanes.push_back(memref::LoadOp::create(b, loc, tiled.memory, add(first, lane * tiled.pitch)));
  if (chunk.lanes == 0)
    return lanes[0];
  return vector::FromElementsOp::create(b, loc, VectorType::get(chunk.lanes, element), lanes);
}

GpuShape GpuEmitter::emitPermute() {
  const GpuTiles &tiles = *group.tiles;
  int64_t last = tiles.loops.back().extent, across = tiles.loops[tiles.across].extent;
  // The operands of the tile, without duplicates.
  SmallVector<std::pair<const GpuMember *, const GpuAccess *>> operands;
  int64_t widest = 1, bytes = 0;
  std::set<Key> keys;
  for (const GpuMember &member : group.members)
    for (const GpuAccess &access : member.accesses)
      if (group.isTiled(member, access)) {
        operands.push_back({&member, &access});
        widest = std::max(widest, bytesOf(access.element));
        if (keys.insert(keyOf(member, access, Chunk())).second)
          bytes += bytesOf(access.element);
      }
  int64_t side = sideFor(widest), most = side * side;
  Tile tile;
  tile.last = std::min(side, last);
  tile.across = std::min(side, across);
  // If one side is short, the other one becomes longer.
  while (tile.last < side && 2 * tile.across <= across && 2 * tile.across * tile.last <= most)
    tile.across *= 2;
  while (tile.across < side && 2 * tile.last <= last && 2 * tile.across * tile.last <= most)
    tile.last *= 2;
  while (tile.last * (tile.across + kWordBytes) * bytes > kSharedBytes && tile.last > 8)
    tile.last /= 2;

  int64_t lanes = flatLanes();
  while (lanes > 1 && (last % lanes != 0 || tile.last % lanes != 0))
    lanes /= 2;
  lanes = lanes <= 1 ? 0 : lanes;
  int64_t width = std::max<int64_t>(1, lanes);
  int64_t chunks = tile.last / width * tile.across;
  tile.threads = std::min(kBlockThreads, static_cast<int64_t>(llvm::alignTo(chunks, 32)));

  GpuShape shape;
  shape.threads = tile.threads;
  int64_t lastTiles = (last + tile.last - 1) / tile.last;
  int64_t acrossTiles = (across + tile.across - 1) / tile.across;
  shape.blocks = group.count() / (last * across) * lastTiles * acrossTiles;
  Value block = launch.blockIndex();
  tile.lastAt = multiply(remainder(block, lastTiles), tile.last);
  block = divide(block, lastTiles);
  tile.acrossAt = multiply(remainder(block, acrossTiles), tile.across);
  block = divide(block, acrossTiles);
  // `block` counts the other loops; in a flat index of all loops, the two loops of the tile are
  // zero.
  int64_t aboveAcross = 1, between = 1;
  for (unsigned l = 0; l + 1 < tiles.loops.size(); ++l)
    if (l != tiles.across)
      (l < tiles.across ? aboveAcross : between) *= tiles.loops[l].extent;
  tile.rest = add(multiply(divide(block, between), across * between * last),
                  multiply(remainder(block, between), last));

  for (auto [member, access] : operands)
    stage(*member, *access, tile);
  gpu::BarrierOp::create(b, loc);

  int64_t acrossBelow = between * last;
  overTile(tile, tile.last / width, width, /*alongLast=*/true, [&](Value lastIn, Value acrossIn) {
    lastIndex = lastIn;
    acrossIndex = acrossIn;
    Chunk chunk;
    chunk.lanes = lanes;
    chunk.volume = group.count();
    chunk.at = add(add(tile.rest, add(tile.lastAt, lastIn)),
                   multiply(add(tile.acrossAt, acrossIn), acrossBelow));
    flatBody(chunk);
  });
  return shape;
}

} // namespace tessera::codegen
