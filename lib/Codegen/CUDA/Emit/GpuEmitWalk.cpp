//===- GpuEmitWalk.cpp - Process rows in order with their sums ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A team processes several rows in order (GpuWalk.cpp). The thread keeps its sums over them until
// the last row: in registers, in shared memory if registers do not suffice, or in the result's
// memory; each thread reads only its own values there.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

/// The bytes of a line of the cache.
static constexpr int64_t kLineBytes = 128;

/// The number of the sum's chunks that the row loop carries as values.
int64_t GpuEmitter::roundsOf(const Sums &sums) const {
  const Space &space = spaces.at(sums.volume);
  return sumsIn == SumsIn::registers ? (space.chunks + team - 1) / team : 0;
}

/// Places the sums in shared memory, if there is enough besides that of the rows' reductions.
bool GpuEmitter::placeSums() {
  int64_t bytes = 0;
  auto elementsOf = [&](const Sums &sums) {
    const Space &space = spaces.at(sums.volume);
    return (space.chunks + team - 1) / team * team * std::max<int64_t>(1, space.lanes);
  };
  for (const Sums &sums : allSums)
    bytes += llvm::alignTo(elementsOf(sums) * bytesOf(sums.access->element), 16);
  if (bytes > sharedLimit - kReserved)
    return false;
  sharedLimit -= bytes;
  for (Sums &sums : allSums)
    sums.memory.memory = launch.shared(sums.access->element, elementsOf(sums));
  return true;
}

/// Sets the initial values of the sums: loop-carried values of the row loop, or values in their
/// memory.
void GpuEmitter::beginSums(Values &carried) {
  for (const GpuMember &member : group.members)
    if (group.isColumnsFill(member))
      rowMember(member);
  for (Sums &sums : allSums) {
    const Space &space = spaces.at(sums.volume);
    for (int64_t number = 0; number < roundsOf(sums); ++number) {
      Chunk chunk = rowChunk(space, sums.volume, number);
      carried.push_back(widen(b, loc, load(*sums.member, *sums.access, chunk), chunk.lanes));
    }
    Values none;
    if (sumsIn == SumsIn::shared)
      overChunks(space, sums.volume, none, [&](const Chunk &chunk, Values &) {
        Value begin = widen(b, loc, load(*sums.member, *sums.access, chunk), chunk.lanes);
        storeSlot(sums.memory, begin, chunk);
      });
  }
}

void GpuEmitter::addRow(Sums &sums, MutableArrayRef<Value> current) {
  const Space &space = spaces.at(sums.volume);
  if (sumsIn == SumsIn::registers) {
    for (auto [number, value] : llvm::enumerate(current))
      value = body(*sums.member, rowChunk(space, sums.volume, number), value)[0];
    return;
  }
  int64_t read = info.readBytes, written = info.writtenBytes;
  Values none;
  overChunks(space, sums.volume, none, [&](const Chunk &chunk, Values &) {
    if (sumsIn == SumsIn::shared) {
      Value before = loadSlot(sums.memory, sums.access->element, chunk);
      storeSlot(sums.memory, body(*sums.member, chunk, before)[0], chunk);
      return;
    }
    Value before = load(*sums.member, *sums.access, chunk);
    storeNow(*sums.member, *sums.access, chunk, body(*sums.member, chunk, before)[0]);
  });
  if (sumsIn == SumsIn::memory) {
    // Counted once per row, regardless of caches.
    info.readBytes += (info.readBytes - read) * (group.walk - 1);
    info.writtenBytes += (info.writtenBytes - written) * (group.walk - 1);
  }
}

void GpuEmitter::endSums(ValueRange carried) {
  for (Sums &sums : allSums) {
    const Space &space = spaces.at(sums.volume);
    for (int64_t number = 0; number < roundsOf(sums); ++number) {
      store(*sums.member, *sums.access, rowChunk(space, sums.volume, number), carried.front());
      carried = carried.drop_front();
    }
    Values none;
    if (sumsIn == SumsIn::shared)
      overChunks(space, sums.volume, none, [&](const Chunk &chunk, Values &) {
        store(*sums.member, *sums.access, chunk,
              loadSlot(sums.memory, sums.access->element, chunk));
      });
  }
}

/// Brings the operands of the next row, but at most row `last`, to the L2 cache, while this one is
/// processed.
void GpuEmitter::prefetchNext(Value last) {
  Value here = row;
  row = arith::MinUIOp::create(b, loc, add(row, 1), last);
  std::set<Key> fetched;
  for (const GpuMember &member : group.members)
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar || group.writes(access.root) || outerOf(member, access).isUniform())
        continue;
      Key key = keyInRow(member, access);
      auto space = spaces.find(key.volume);
      if (!key.vector || space == spaces.end() || !space->second.unrolled ||
          !fetched.insert(key).second)
        continue;
      // One thread of those whose chunks share a line.
      int64_t bytes = std::max<int64_t>(1, space->second.lanes) * bytesOf(access.element);
      Value isFirst = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq,
          remainder(lane, std::max<int64_t>(1, kLineBytes / bytes)), constant(0));
      auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value memory = launch.flat(access.root, /*write=*/false);
      for (int64_t number = 0; number < (space->second.chunks + team - 1) / team; ++number) {
        Chunk chunk = rowChunk(space->second, key.volume, number);
        memref::PrefetchOp::create(b, loc, memory, address(member, access, chunk, 0),
                                   /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
      }
    }
  row = here;
}

void GpuEmitter::walkRows() {
  Value first = row;
  Values carried;
  beginSums(carried);
  // The stores of the sums' initial values stay pending until the final ones.
  std::vector<std::pair<Key, Pending>> waiting = std::move(pending);
  pending.clear();
  cache.clear();
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(group.walk), constant(1), carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    row = add(first, loop.getInductionVar());
    prefetchNext(add(first, group.walk - 1));
    Values current(loop.getRegionIterArgs());
    MutableArrayRef<Value> rest = current;
    int64_t before = sharedReductions;
    auto sums = allSums.begin();
    for (const GpuMember &member : group.members) {
      if (group.isColumns(member)) {
        addRow(*sums, rest.take_front(roundsOf(*sums)));
        rest = rest.drop_front(roundsOf(*sums++));
      } else if (!group.isColumnsFill(member)) {
        rowMember(member);
      }
    }
    flush(Value());
    // The next row's partial results overwrite those of this row, so these must have been read: a
    // second reduction has the barrier that ensures it. In memory, threads beyond the end of a row
    // read sums of others.
    if (team > kWarp && (sharedReductions == before + 1 || sumsIn == SumsIn::memory))
      gpu::BarrierOp::create(b, loc);
    if (!current.empty())
      scf::YieldOp::create(b, loc, current);
  }
  cache.clear();
  storedBy.clear();
  loadedBy.clear();
  pending = std::move(waiting);
  row = first;
  endSums(loop.getResults());
}

} // namespace tessera::codegen
