//===- GpuEmitMemory.cpp - Load once, store at the end --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// Whether two accesses to a buffer may touch the same element of a row. Different rows never do:
/// that is why the accesses are in one launch (GpuJoin.cpp).
bool GpuEmitter::mayOverlap(const Key &left, const Key &right) {
  auto end = [](const Key &key) {
    int64_t last = key.base;
    for (const FlatAccess::Dim &dim : key.inner)
      last += dim.step * (dim.extent - 1);
    return last;
  };
  return left.view != right.view || left.outer != right.outer ||
         (left.base <= end(right) && right.base <= end(left));
}

/// Called before an access to memory by `key`: emits a barrier if other threads have accessed the
/// same elements, by other keys, or by this one: all threads of a team load a row's single element,
/// and those beyond the end of a row, or after the last row, load its last elements again.
void GpuEmitter::settle(const Key &key, const Chunk &chunk, Value root, bool writing) {
  Key mine = key;
  mine.chunk = 0;
  bool repeats = rowValid || (key.vector ? chunk.valid || chunk.full : team > 1);
  auto others = [&](const std::set<Key> &keys) {
    return llvm::any_of(
        keys, [&](const Key &k) { return (k < mine || mine < k) && mayOverlap(k, mine); });
  };
  void *memory = root.getAsOpaquePointer();
  if (group.rows && (others(storedBy[memory]) || (writing && others(loadedBy[memory])) ||
                     (writing && repeats && loadedBy[memory].count(mine)))) {
    gpu::BarrierOp::create(b, loc);
    storedBy.clear();
    loadedBy.clear();
  }
  (writing ? storedBy : loadedBy)[memory].insert(mine);
}

Value GpuEmitter::load(const GpuMember &member, const GpuAccess &access, const Chunk &chunk) {
  if (access.scalar)
    return launch.mapping.lookup(access.operand->get());
  Key key = keyOf(member, access, chunk);
  if (auto it = cache.find(key); it != cache.end())
    return it->second;
  if (inLoop && group.rows && key.vector) {
    Slot *slot = slotOf(key);
    if (slot && slot->filled)
      return cache[key] = loadSlot(*slot, access.element, chunk);
    if (const GpuMember *producer = producerOf(key)) {
      recomputeChunk(*producer, chunk);
      return cache.at(key);
    }
    if (slot) {
      Value value = widen(b, loc, loadMemory(member, access, chunk, key), chunk.lanes);
      storeSlot(*slot, value, chunk);
      return cache[key] = value;
    }
  }
  if (auto tiled = staged.find(key); tiled != staged.end())
    return cache[key] = loadStaged(tiled->second, access.element, chunk);
  return cache[key] = loadMemory(member, access, chunk, key);
}

Value GpuEmitter::loadMemory(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                             const Key &key) {
  flush(access.root);
  settle(key, chunk, access.root, /*writing=*/false);
  bool fresh = key.chunk <= 0;
  if (&member == windowed) {
    // Count the elements of all windows, which may overlap, once.
    windowed = nullptr;
    fresh &= windowsRead.insert(keyOf(member, access, chunk)).second;
    windowed = &member;
  }
  if (fresh)
    countLoad(member, access);
  noteNarrow(member, access, /*store=*/false, chunk);
  Value memory = launch.flat(access.root, /*write=*/false);
  FlatAccess along = group.rows ? innerOf(member, access) : outerOf(member, access);
  auto type = VectorType::get(std::max<int64_t>(1, chunk.lanes), access.element);
  auto together = [&]() -> Value {
    int64_t bytes = std::min(kAccessBytes, chunk.lanes * bytesOf(access.element));
    return vector::LoadOp::create(b, loc, type, memory,
                                  ValueRange{address(member, access, chunk, 0)},
                                  /*nontemporal=*/false, llvm::MaybeAlign(bytes));
  };
  auto apart = [&]() -> Value {
    Chunk edge = chunk;
    edge.clamped = static_cast<bool>(chunk.full);
    Values lanes;
    for (int64_t lane = 0; lane < chunk.lanes; ++lane)
      lanes.push_back(memref::LoadOp::create(b, loc, memory, address(member, access, edge, lane)));
    return vector::FromElementsOp::create(b, loc, type, lanes);
  };
  Value value;
  if (chunk.lanes == 0 || (chunk.shifted ? along.isUniform() : along.isRepeated(chunk.lanes))) {
    value = memref::LoadOp::create(b, loc, memory, address(member, access, chunk, 0));
  } else if (!isAligned(member, access, chunk)) {
    value = apart();
  } else if (!chunk.full) {
    value = together();
  } else {
    auto branch = scf::IfOp::create(b, loc, TypeRange(type), chunk.full, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, together());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, apart());
    value = branch.getResult(0);
  }
  return value;
}

void GpuEmitter::store(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                       Value value) {
  Key key = keyOf(member, access, chunk);
  if (key.vector)
    value = widen(b, loc, value, chunk.lanes);
  if (inLoop && group.rows && key.vector) {
    cache[key] = value;
    Slot *slot = slotOf(key);
    if (slot)
      storeSlot(*slot, value, chunk);
    if (live(access.root) || (!slot && !producerOf(key)))
      storeNow(member, access, chunk, value);
    return;
  }
  if (inLoop) {
    storeNow(member, access, chunk, value);
    if (group.rows)
      cache[key] = value;
    return;
  }
  cache[key] = value;
  Pending store{&member, &access, chunk, value};
  for (auto &[known, waiting] : pending)
    if (!(known < key) && !(key < known)) {
      waiting = store;
      return;
    }
  // Pending stores of the buffer under another key must be written first.
  bool other = llvm::any_of(pending, [&](const std::pair<Key, Pending> &entry) {
    Key known = entry.first, mine = key;
    known.chunk = mine.chunk = 0;
    return known.root == mine.root && (known < mine || mine < known);
  });
  if (other)
    flush(access.root);
  // Values loaded under other keys are stale.
  for (auto it = cache.begin(); it != cache.end();) {
    Key known = it->first, mine = key;
    known.chunk = mine.chunk = 0;
    bool stale = known.root == mine.root && (known < mine || mine < known);
    it = stale ? cache.erase(it) : std::next(it);
  }
  pending.emplace_back(key, store);
}

void GpuEmitter::storeNow(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                          Value value) {
  Key key = keyOf(member, access, chunk);
  settle(key, chunk, access.root, /*writing=*/true);
  if (key.chunk <= 0)
    countStore(member, access);
  noteNarrow(member, access, /*store=*/true, chunk);
  Value memory = launch.flat(access.root, /*write=*/true);
  // The first thread of the team stores the single element of a row.
  Value condition = chunk.valid;
  if (group.rows) {
    if (!key.vector)
      condition = team > 1
                      ? arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, constant(0))
                      : Value();
    if (rowValid)
      condition =
          condition ? arith::AndIOp::create(b, loc, condition, rowValid).getResult() : rowValid;
  }
  OpBuilder::InsertionGuard guard(b);
  if (condition) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  auto type = dyn_cast<VectorType>(value.getType());
  auto apart = [&](Value inside) {
    for (int64_t lane = 0; lane < chunk.lanes; ++lane) {
      OpBuilder::InsertionGuard lanes(b);
      Value element = vector::ExtractOp::create(b, loc, value, lane);
      if (inside) {
        Value valid = vector::ExtractOp::create(b, loc, inside, lane);
        auto branch = scf::IfOp::create(b, loc, valid, /*withElse=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      memref::StoreOp::create(b, loc, element, memory, address(member, access, chunk, lane));
    }
  };
  auto together = [&] {
    int64_t bytes = std::min(kAccessBytes, chunk.lanes * bytesOf(access.element));
    vector::StoreOp::create(b, loc, value, memory, ValueRange{address(member, access, chunk, 0)},
                            /*nontemporal=*/false, llvm::MaybeAlign(bytes));
  };
  Value inside = type && chunk.full ? within(chunk) : Value();
  if (!type) {
    memref::StoreOp::create(b, loc, value, memory, address(member, access, chunk, 0));
  } else if (!isAligned(member, access, chunk)) {
    apart(inside);
  } else if (!chunk.full) {
    together();
  } else {
    auto branch = scf::IfOp::create(b, loc, chunk.full, /*withElse=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    together();
    b.setInsertionPointToStart(branch.elseBlock());
    apart(inside);
  }
}

/// Writes the pending stores to `root`; if it is null, all that are live after the launch.
void GpuEmitter::flush(Value root) {
  std::vector<std::pair<Key, Pending>> waiting = std::move(pending);
  pending.clear();
  for (auto &entry : waiting) {
    const Pending &store = entry.second;
    if (root && store.access->root != root)
      pending.push_back(entry);
    else if (root || live(store.access->root))
      storeNow(*store.member, *store.access, store.chunk, store.value);
  }
}

} // namespace tessera::codegen
