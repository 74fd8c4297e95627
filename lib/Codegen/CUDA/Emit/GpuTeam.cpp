//===- GpuTeam.cpp - Choose the number of threads of a row ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kTeamThreads = 128; ///< of a block with several teams
static constexpr int64_t kMaxRounds = 16;
/// Fewer rows than this leave multiprocessors idle (132 of an H100, two blocks each).
static constexpr int64_t kFewRows = 264;
/// Values of a row in so many registers leave space for the rest, if two blocks of kBlockThreads
/// share a multiprocessor: 128 registers of each thread.
static constexpr int64_t kResidentRegisters = 112;
/// Shorter rows, in vectors, do not justify the code at their edges.
static constexpr int64_t kShortestShifted = 8;

/// The registers that a thread can use for the row in a block of `threads`: the block has 64 Ki
/// registers, a thread at most 255, and addresses and temporaries need some.
static int64_t registersFor(int64_t threads) {
  return std::min<int64_t>(224, (64 << 10) / threads) * 5 / 8 - 8;
}

void GpuEmitter::planTeam() {
  for (const GpuMember &member : group.members)
    if (group.isColumns(member))
      allSums.push_back({&member, &member.accesses[member.outputs[0].operand],
                         member.volume() / group.count(), Slot()});
  std::map<int64_t, SmallVector<const GpuMember *>> byVolume;
  for (const GpuMember &member : group.members) {
    int64_t volume = 1;
    for (unsigned loop : GpuGroup::ownLoops(member))
      volume *= member.extents[loop];
    byVolume[volume].push_back(&member);
  }
  int64_t most = 1;
  bool shifted = false;
  for (auto &[volume, members] : byVolume) {
    if (volume == 1)
      continue;
    Space &space = spaces[volume];
    space.lanes = lanesFor(members, volume);
    space.chunks = volume / std::max<int64_t>(1, space.lanes);
    if (shift(members, volume, space))
      space.chunks = (volume + 2 * space.lanes - 2) / space.lanes;
    most = std::max(most, space.chunks);
    shifted |= space.leading != nullptr;
  }
  // Bytes of one chunk of all values that are live between members or until the end, at the
  // maximum; and of all values that one member needs at once.
  SmallVector<int64_t> waiting(group.members.size()), needed(group.members.size());
  int64_t summed = 0;
  for (const auto &[key, range] : ranges()) {
    int64_t bytes = std::max<int64_t>(1, spaces[key.volume].lanes) *
                    std::max<int64_t>(4, bytesOf(range.element));
    Value root = Value::getFromOpaquePointer(key.root);
    if (group.sumsInto(root)) {
      summed += bytes;
      continue;
    }
    unsigned end = group.writes(root) && live(root) ? group.members.size() : range.last;
    for (unsigned i = range.first; i < end; ++i)
      waiting[i] += bytes;
    needed[range.first] += bytes;
    if (range.last != range.first)
      needed[range.last] += bytes;
  }
  int64_t held = *llvm::max_element(waiting) + summed, working = *llvm::max_element(needed);
  auto rounds = [&](int64_t threads) { return (most + threads - 1) / threads; };
  auto fits = [&](int64_t threads) {
    return rounds(threads) <= kMaxRounds &&
           (rounds(threads) * held + working) / 4 <= registersFor(std::max(threads, kTeamThreads));
  };
  // Several rounds have more loads in flight than one; vectors of many elements have as many loads,
  // and take as long to compile.
  int64_t widest = 0;
  for (auto &[volume, space] : spaces)
    widest = std::max(widest, space.lanes);
  bool wide = widest >= 8;
  if (group.walk > 1) {
    // Few rows are in flight at a time, so each gets a block.
    for (int64_t chunks : {1, 2, 4, 8}) {
      team = std::min(kMaxThreads,
                      static_cast<int64_t>(llvm::alignTo((most + chunks - 1) / chunks, kWarp)));
      if (team <= 256)
        break;
    }
  } else if (most <= (wide ? 1 : 2) * kWarp) {
    int64_t threads = wide ? most : (most + 1) / 2;
    team = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(std::max<int64_t>(1, threads)));
  } else {
    auto spread = [&](int64_t rounds) {
      team = std::min(kMaxThreads,
                      static_cast<int64_t>(llvm::alignTo((most + rounds - 1) / rounds, kWarp)));
      return fits(team);
    };
    // Few rows get as many threads as possible; otherwise blocks are small, with several at a time.
    // Every chunk at an edge has its own code, so there should be few rounds.
    bool done = group.count() < kFewRows && (spread(2) || spread(4));
    for (int64_t wanted : {shifted || wide ? 2 : 4, 4, 8, 16}) {
      if (done)
        break;
      spread(wanted);
      done = team <= 256;
    }
  }
  auto grow = [&] {
    while (!fits(team) && team < kMaxThreads)
      team = team < kWarp ? team * 2 : std::min(kMaxThreads, team + kWarp);
    return fits(team);
  };
  int64_t fewest = team;
  bool unrolled = grow();
  if (!unrolled && !allSums.empty()) {
    held -= summed;
    team = fewest;
    unrolled = grow();
    sumsIn = placeSums() ? SumsIn::shared : SumsIn::memory;
  }
  // Two blocks hide the barriers of each other.
  if (unrolled && group.walk > 1 && team <= kBlockThreads &&
      (rounds(team) * held + working) / 4 <= kResidentRegisters)
    resident = 2;
  if (!unrolled)
    planLongRows(working);
  for (auto &[volume, space] : spaces)
    space.unrolled = unrolled;
  teams = team <= kWarp && group.walk == 1 ? kTeamThreads / team : 1;
  teams = std::min<int64_t>(teams,
                            llvm::PowerOf2Ceil(std::max<int64_t>(1, group.count() / group.walk)));
  // Shuffles involve all lanes of a warp.
  teams = std::max(teams, kWarp / std::min(team, kWarp));
}

/// Lets chunks begin at aligned addresses if that allows more lanes.
bool GpuEmitter::shift(ArrayRef<const GpuMember *> members, int64_t volume, Space &space) const {
  // A thread has the same columns in every row that it processes.
  if (group.walk > 1)
    return false;
  int64_t most = 0;
  for (const GpuMember *member : members)
    for (const GpuAccess &access : member->accesses) {
      FlatAccess inner = innerOf(*member, access);
      // Temporaries of the launch are not in memory.
      if (access.scalar || inner.dims.size() != 1 || inner.dims[0].step != 1 ||
          (group.writes(access.root) && !live(access.root)))
        continue;
      if (int64_t bytes = elementsOf(*member, access) * bytesOf(access.element); bytes > most) {
        most = bytes;
        space.leader = member;
        space.leading = &access;
      }
    }
  int64_t lanes = space.leading ? kAccessBytes / bytesOf(space.leading->element) : 0;
  if (lanes <= std::max<int64_t>(1, space.lanes) || volume < kShortestShifted * lanes ||
      isAligned(*space.leader, *space.leading, lanes)) {
    space.leader = nullptr;
    space.leading = nullptr;
    return false;
  }
  space.lanes = lanes;
  return true;
}

} // namespace tessera::codegen
