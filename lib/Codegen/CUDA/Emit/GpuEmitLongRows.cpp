//===- GpuEmitLongRows.cpp - Rows that exceed the registers ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a row exceeds the registers, each member processes it in a loop. Values that several members
// need stay in shared memory, as far as it suffices: each thread reads only its own values there,
// so no barrier is needed, and the result for an element may overwrite its operand. Values without
// space in shared memory are recomputed from their operands instead of being written to memory and
// read back.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

using namespace mlir;

namespace tessera::codegen {

/// Limits on the chunks that a thread processes at once: their bytes in registers, their number.
static constexpr int64_t kBurstBytes = 128, kMostTogether = 4;
/// So many rows keep all multiprocessors busy with small blocks, which wait for each other less.
static constexpr int64_t kManyRows = 2048;

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

/// Whether the member's elementwise results (besides its reductions) are not used after the launch,
/// and their operands stay unchanged until their last use.
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

/// Whether all accesses to the buffer of `key` have the same elements.
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

/// The members that read or write an element of a row, or that compute it again.
SmallVector<const GpuMember *> GpuEmitter::usersOf(const Key &key) const {
  SmallVector<const GpuMember *> users;
  std::set<Key> seen{key};
  std::vector<Key> open{key};
  while (!open.empty()) {
    Key next = std::move(open.back());
    open.pop_back();
    for (const GpuMember &member : group.members)
      for (const GpuAccess &access : member.accesses) {
        Key other = access.scalar ? Key() : keyInRow(member, access);
        if (access.scalar || other < next || next < other)
          continue;
        bool again = false;
        for (const NestOutput &output : member.outputs) {
          Key result = keyInRow(member, member.accesses[output.operand]);
          if (producerOf(result) != &member)
            continue;
          again = true;
          if (seen.insert(result).second)
            open.push_back(std::move(result));
        }
        if (!again)
          users.push_back(&member);
      }
  }
  return users;
}

/// Whether nothing needs to stay in shared memory, because a maximum and a sum are computed in one
/// walk over the row; finds values that only this walk needs. Space for them would only leave less
/// for other blocks.
bool GpuEmitter::planWalks(const std::map<Key, Range> &all) {
  findOnlineSums();
  bool none = !onlineSums.empty();
  for (const auto &[key, range] : all) {
    SmallVector<const GpuMember *> users = usersOf(key);
    bool once = llvm::any_of(onlineSums, [&](const OnlineSum &online) {
      return llvm::all_of(users, [&](const GpuMember *user) {
        return user == online.maximum || user == online.sum;
      });
    });
    if (once)
      walked.insert(key);
    none &= once || range.first == range.last || producerOf(key);
  }
  onlineSums.clear();
  return none;
}

/// Chooses the threads of a block for rows processed by loops. `working`: the bytes of a chunk of
/// all values that a member needs.
void GpuEmitter::planLongRows(int64_t working) {
  int64_t most = 1;
  for (auto &[volume, space] : spaces)
    most = std::max(most, space.chunks);
  // With the row in shared memory, a multiprocessor runs one block. (Sums over rows have space for
  // the maximum number of threads.)
  team = std::min(kMaxThreads, static_cast<int64_t>(llvm::alignTo(most, kWarp)));
  std::map<Key, Range> all = ranges();
  recomputeAll(all);
  if (!planWalks(all)) {
    recomputed.clear();
    walked.clear();
    planWalks(ranges());
    planSlots();
  }
  if (slots.empty() && allSums.empty())
    team = std::min<int64_t>(group.count() >= kManyRows ? 256 : 512, team);
  burst = std::clamp<int64_t>(
      llvm::bit_floor(static_cast<uint64_t>(kBurstBytes / std::max<int64_t>(1, working))), 1,
      kMostTogether);
  if (team > 512)
    burst = std::min<int64_t>(burst, 2);
  SmallVector<Value> memories;
  for (auto [element, elements] : placed)
    memories.push_back(launch.shared(element, elements));
  for (auto &[key, slot] : slots)
    slot.memory = memories[slot.place];
}

/// Puts the member's results for the chunk into the cache, without updating its reductions.
void GpuEmitter::recomputeChunk(const GpuMember &member, const Chunk &chunk) {
  Values unused;
  for (const NestOutput &output : member.outputs)
    if (output.accumulates) {
      Type element = member.accesses[output.operand].element;
      unused.push_back(neutralOf(*output.kind, element, chunk.lanes));
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

/// Ends the loops over a row's chunks that write to shared memory: now it has all of them.
void GpuEmitter::endFilling() {
  for (Slot *slot : filling) {
    // The previous value in this memory is no longer used.
    for (auto &[key, other] : slots)
      if (other.memory == slot->memory)
        other.filled = false;
    slot->filled = true;
  }
  filling.clear();
}

void GpuEmitter::storeSlot(Slot &slot, Value value, const Chunk &chunk) {
  if (!llvm::is_contained(filling, &slot))
    filling.push_back(&slot);
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
