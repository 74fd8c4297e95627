//===- GpuPlaceRows.cpp - Allocate rows in shared memory ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a row exceeds the registers, values that several members need are placed in shared memory, as
// far as it suffices; the others are recomputed from their operands.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

using namespace mlir;

namespace tessera::codegen {

/// Allocates rows in shared memory, reusing memory after the last use; returns false if it does not
/// suffice for all.
bool GpuEmitter::placeSlots(const std::map<Key, Range> &all) {
  struct Place {
    const Key *key;
    const Range *range;
    int64_t bytes;
  };
  std::vector<Place> places;
  for (const auto &[key, range] : all) {
    Value root = Value::getFromOpaquePointer(key.root);
    if (range.first == range.last || recomputed.count(key) || walked.count(key) ||
        group.sumsInto(root) || (group.writes(root) && !isOnlyAt(key)))
      continue;
    const Space &space = spaces.at(key.volume);
    int64_t rounds = (space.chunks + team - 1) / team;
    places.push_back(
        {&key, &range, rounds * team * std::max<int64_t>(1, space.lanes) * bytesOf(range.element)});
  }
  llvm::sort(places, [](const Place &a, const Place &b) {
    return std::tie(a.range->first, a.range->number) < std::tie(b.range->first, b.range->number);
  });
  struct Memory {
    Type element;
    int64_t bytes;
    unsigned last; ///< the last member that uses it
    SmallVector<const Key *> keys;
  };
  std::vector<Memory> memories;
  int64_t used = kReserved;
  bool enough = true;
  for (const Place &place : places) {
    // A member's result may replace its operand, which is read before; an argument is loaded too
    // early for that.
    auto free = llvm::find_if(memories, [&](const Memory &memory) {
      return memory.bytes == place.bytes && memory.element == place.range->element &&
             (place.range->computed ? memory.last <= place.range->first
                                    : memory.last < place.range->first);
    });
    if (free == memories.end()) {
      if (used + place.bytes > sharedLimit) {
        enough = false;
        continue;
      }
      used += llvm::alignTo(place.bytes, kAccessBytes);
      memories.push_back({place.range->element, place.bytes, 0, {}});
      free = std::prev(memories.end());
    }
    free->last = place.range->last;
    free->keys.push_back(place.key);
  }
  placed.clear();
  for (Memory &memory : memories) {
    placed.emplace_back(memory.element, memory.bytes / bytesOf(memory.element));
    for (const Key *key : memory.keys)
      slots[*key].place = placed.size() - 1;
  }
  return enough;
}

/// Lets users recompute all values that they can, which extends the live ranges of the operands.
void GpuEmitter::recomputeAll(std::map<Key, Range> &all) {
  for (const GpuMember &member : llvm::reverse(group.members)) {
    if (!isRecomputable(member, all))
      continue;
    unsigned last = 0;
    for (const NestOutput &output : member.outputs) {
      if (output.accumulates)
        continue;
      Key key = keyInRow(member, member.accesses[output.operand]);
      recomputed[key] = &member;
      last = std::max(last, all.at(key).last);
    }
    for (const GpuAccess &access : member.accesses)
      if (!access.scalar && !access.output)
        if (auto from = all.find(keyInRow(member, access)); from != all.end())
          from->second.last = std::max(from->second.last, last);
  }
}

void GpuEmitter::planSlots() {
  std::map<Key, Range> all = ranges();
  if (placeSlots(all))
    return;
  // Shared memory does not suffice.
  slots.clear();
  recomputeAll(all);
  placeSlots(all);
}

} // namespace tessera::codegen
