//===- GpuEmitLongRows.cpp - Rows beyond the registers --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row that registers cannot hold is walked by a loop for each member. What several of them need
// stays in shared memory as far as that goes: a thread finds there what it has put there itself, so
// that no barrier is needed, and what is computed of an element may take the place of what it is
// computed from. What has no place is computed again from what it was computed from, rather than
// written to memory and read back.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../Kernels/KernelLanes.h"

using namespace mlir;

namespace tessera::codegen {

GpuEmitter::Key GpuEmitter::keyInRow(const GpuMember &member, const GpuAccess &access) const {
  Chunk chunk;
  chunk.volume = 1;
  for (unsigned loop : GpuGroup::ownLoops(member))
    chunk.volume *= member.extents[loop];
  return keyOf(member, access, chunk);
}

std::map<GpuEmitter::Key, GpuEmitter::Range> GpuEmitter::ranges() const {
  std::map<Key, Range> result;
  for (auto [i, member] : llvm::enumerate(group.members))
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar)
        continue;
      Key key = keyInRow(member, access);
      if (!key.vector || key.volume == 1)
        continue;
      auto [entry, fresh] = result.try_emplace(key);
      if (fresh) {
        entry->second.first = i;
        entry->second.number = result.size();
        entry->second.element = access.element;
        entry->second.computed =
            access.output && llvm::none_of(member.outputs, [&](const NestOutput &output) {
              return &member.accesses[output.operand] == &access && output.readsOld;
            });
      }
      entry->second.last = i;
    }
  return result;
}

/// Whether what the member computes element by element (beside what it may reduce) is not needed
/// after the launch, and comes from what stays as it is until the last of those who need it.
bool GpuEmitter::isRecomputable(const GpuMember &member, const std::map<Key, Range> &ranges) const {
  if (!member.gathered.empty() || GpuGroup::ownLoops(member).empty() ||
      llvm::all_of(member.outputs, [](const NestOutput &output) { return output.accumulates; }))
    return false;
  for (const NestOutput &output : member.outputs) {
    if (output.accumulates)
      continue;
    const GpuAccess &access = member.accesses[output.operand];
    Key key = keyInRow(member, access);
    auto found = ranges.find(key);
    if (output.readsOld || live(access.root) || found == ranges.end() ||
        &group.members[found->second.first] != &member)
      return false;
    if (!isOnlyAt(key))
      return false;
    for (const GpuMember &other : group.members)
      for (const GpuAccess &use : other.accesses)
        if (use.root == access.root && use.output && &other != &member)
          return false;
  }
  bool behind = false;
  for (const GpuMember &other : group.members) {
    if (behind)
      for (const GpuAccess &use : other.accesses)
        for (const GpuAccess &access : member.accesses)
          if (use.output && !access.output && use.root == access.root)
            return false;
    behind |= &other == &member;
  }
  return true;
}

/// Whether all who access the buffer behind `key` do so at the same elements.
bool GpuEmitter::isOnlyAt(const Key &key) const {
  for (const GpuMember &member : group.members) {
    for (Value root : member.gathered)
      if (root.getAsOpaquePointer() == key.root)
        return false;
    for (const GpuAccess &access : member.accesses) {
      if (access.scalar || access.root.getAsOpaquePointer() != key.root)
        continue;
      Key other = keyInRow(member, access);
      if (other < key || key < other)
        return false;
    }
  }
  return true;
}

/// Threads of a block for a row that is walked by loops.
void GpuEmitter::planLongRows() {
  int64_t most = 1;
  for (auto &[volume, space] : spaces)
    most = std::max(most, space.chunks);
  // With the row in shared memory a multiprocessor has one block.
  // (Sums over rows have places for as many threads as there are at most.)
  team = std::min(kMaxThreads, static_cast<int64_t>(llvm::alignTo(most, kWarp)));
  planSlots();
  if (slots.empty() && allSums.empty())
    team = std::min<int64_t>(512, team);
  SmallVector<Value> memories;
  for (auto [element, elements] : placed)
    memories.push_back(launch.shared(element, elements));
  for (auto &[key, slot] : slots)
    slot.memory = memories[slot.place];
}

/// What the member computes of the chunk is in the cache; what it reduces is not touched.
void GpuEmitter::computeAgain(const GpuMember &member, const Chunk &chunk) {
  Values unused;
  for (const NestOutput &output : member.outputs)
    if (output.accumulates) {
      Type element = member.accesses[output.operand].element;
      Value neutral = arith::ConstantOp::create(b, loc, neutralElement(*output.kind, element));
      unused.push_back(widen(b, loc, neutral, chunk.lanes));
    }
  body(member, chunk, unused);
}

GpuEmitter::Slot *GpuEmitter::slotOf(Key key) {
  key.chunk = 0;
  auto found = slots.find(key);
  return found == slots.end() ? nullptr : &found->second;
}

const GpuMember *GpuEmitter::producerOf(Key key) const {
  key.chunk = 0;
  auto found = recomputed.find(key);
  return found == recomputed.end() ? nullptr : found->second;
}

Value GpuEmitter::loadSlot(const Slot &slot, Type element, const Chunk &chunk) {
  int64_t width = std::max<int64_t>(1, chunk.lanes);
  Value at = multiply(chunk.slot, width);
  if (chunk.lanes == 0)
    return memref::LoadOp::create(b, loc, slot.memory, at);
  return vector::LoadOp::create(
      b, loc, VectorType::get(width, element), slot.memory, ValueRange{at},
      /*nontemporal=*/false, llvm::MaybeAlign(std::min(kAccessBytes, width * bytesOf(element))));
}

void GpuEmitter::storeSlot(Slot &slot, Value value, const Chunk &chunk) {
  // Whoever had the place before is not needed any more.
  for (auto &[key, other] : slots)
    if (other.memory == slot.memory)
      other.filled = false;
  slot.filled = true;
  Value at = multiply(chunk.slot, std::max<int64_t>(1, chunk.lanes));
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type) {
    memref::StoreOp::create(b, loc, value, slot.memory, at);
    return;
  }
  int64_t bytes = chunk.lanes * bytesOf(type.getElementType());
  vector::StoreOp::create(b, loc, value, slot.memory, ValueRange{at}, /*nontemporal=*/false,
                          llvm::MaybeAlign(std::min(kAccessBytes, bytes)));
}

} // namespace tessera::codegen
