//===- AccessCheck.cpp - Races within a launch ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AccessCheck.h"

#include <algorithm>

namespace tessera::runtime {

/// "(1, 0, 0)": number `number` of `extents`, x fastest.
static std::string text(int64_t number, const std::array<int64_t, 3> &extents) {
  return "(" + std::to_string(number % extents[0]) + ", " +
         std::to_string(number / extents[0] % extents[1]) + ", " +
         std::to_string(number / extents[0] / extents[1]) + ")";
}

AccessCheck::AccessCheck(const GpuLaunch &launch, void *const *pointers)
    : launch(launch), pointers(pointers) {
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    if (launch.arguments[i].writes)
      written.push_back({reinterpret_cast<uintptr_t>(pointers[i]), launch.arguments[i].bytes, {}});
  std::sort(written.begin(), written.end(),
            [](const Region &left, const Region &right) { return left.begin < right.begin; });
  std::vector<Region> joined;
  for (Region &region : written) {
    auto beyond = [](const Region &one) { return one.begin + static_cast<uintptr_t>(one.bytes); };
    if (joined.empty() || region.begin >= beyond(joined.back()))
      joined.push_back(std::move(region));
    else
      joined.back().bytes = static_cast<int64_t>(std::max(beyond(joined.back()), beyond(region)) -
                                                 joined.back().begin);
  }
  written = std::move(joined);
}

void AccessCheck::enterBlock(uint32_t number, const void *memory) {
  block = number + 1;
  epoch = 0;
  auto threads = static_cast<size_t>(launch.block[0] * launch.block[1] * launch.block[2]);
  warpEpochs.assign(threads / kWarp + 1, 0);
  shared.begin = reinterpret_cast<uintptr_t>(memory);
  shared.bytes = launch.sharedBytes;
}

void AccessCheck::setResolution(uint32_t bytes) {
  if (shift >= 0)
    return;
  for (shift = 0; bytes > 1; bytes /= 2)
    ++shift;
  shared.cells.resize(static_cast<size_t>((shared.bytes >> shift) + 1));
  for (Region &region : written)
    region.cells.resize(static_cast<size_t>((region.bytes >> shift) + 1));
}

std::string AccessCheck::nameOf(uint16_t thread, uint32_t inBlock) const {
  return "thread " + text(thread - 1, launch.block) + " of block " +
         text(static_cast<int64_t>(inBlock) - 1, launch.grid);
}

std::string AccessCheck::placeOf(uintptr_t address, bool isShared) const {
  if (isShared)
    return "byte " + std::to_string(address - shared.begin) + " of shared memory";
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const GpuArgument &argument = launch.arguments[i];
    auto offset = static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(pointers[i]));
    if (offset < 0 || offset >= argument.bytes)
      continue;
    std::string at = "byte " + std::to_string(argument.offset + offset) + " of ";
    return at + (argument.slot < 0 ? "the workspace" : "operand " + std::to_string(argument.slot));
  }
  return "";
}

/// Records an access unless it races with another one, and what it races with otherwise.
inline bool AccessCheck::record(Cell &cell, uint16_t thread, AccessKind kind) {
  bool writes = kind != AccessKind::read;
  auto races = [&](uint16_t by, uint32_t inBlock, bool wrote) {
    other = {by, inBlock, wrote};
    return false;
  };
  if (cell.block != block) {
    if (cell.writer)
      return races(cell.writer, cell.block, true);
    if (cell.readers[0]) {
      cell.earlierBlock = cell.block;
      cell.earlierReader = cell.readers[0];
    }
    cell.readers[0] = cell.readers[1] = 0;
    cell.block = block;
  }
  if (writes && cell.earlierReader)
    return races(cell.earlierReader, cell.earlierBlock, false);
  const uint32_t warpEpoch = warpEpochs[warpOf(thread)];
  // A barrier of the warp orders accesses by its lanes.
  auto isOrdered = [&](uint16_t by, uint32_t at) {
    return by == thread || (warpOf(by) == warpOf(thread) && at != warpEpoch);
  };
  if (cell.copying
          ? kind != AccessKind::copyEnd
          : cell.writer && cell.writeEpoch == epoch && !isOrdered(cell.writer, cell.writeWarpEpoch))
    return races(cell.writer, block, true);
  auto &[first, second] = cell.readers;
  if (writes) {
    if (cell.readEpoch == epoch)
      for (uint16_t reader : cell.readers)
        if (reader && !isOrdered(reader, cell.readWarpEpoch))
          return races(reader, block, false);
    cell.writer = thread;
    cell.writeEpoch = epoch;
    cell.writeWarpEpoch = warpEpoch;
    cell.copying = kind == AccessKind::copyBegin;
    return true;
  }
  auto isOwnWarp = [&](uint16_t reader) { return !reader || warpOf(reader) == warpOf(thread); };
  bool isFirst = !first || cell.readEpoch != epoch;
  if (isFirst || (isOwnWarp(first) && isOwnWarp(second) && cell.readWarpEpoch != warpEpoch)) {
    first = thread;
    second = 0;
    cell.readEpoch = epoch;
    cell.readWarpEpoch = warpEpoch;
  } else if (first != thread &&
             (!second || (warpOf(first) == warpOf(second) && !isOwnWarp(first)))) {
    second = thread;
  }
  return true;
}

std::string AccessCheck::reasonOf(const Cell &cell) const {
  std::string by = ", which " + nameOf(other.thread, other.block);
  if (cell.copying && other.wrote)
    return by + " copies asynchronously and has not waited for";
  return by + (other.wrote ? " writes" : " reads") +
         (other.block == block ? ", with no barrier between them"
                               : "; the blocks of a launch have no order");
}

std::string AccessCheck::access(uint32_t thread, const void *address, int64_t bytes,
                                AccessKind kind) {
  auto at = reinterpret_cast<uintptr_t>(address);
  auto contains = [&](const Region &region) {
    return at >= region.begin && at - region.begin < static_cast<uintptr_t>(region.bytes);
  };
  bool isShared = contains(shared);
  Region *region = isShared ? &shared : nullptr;
  for (Region &each : written)
    if (!region && contains(each))
      region = &each;
  const char *verb = kind == AccessKind::read ? "reads " : "writes ";
  if (!region) {
    std::string place = kind == AccessKind::read ? "" : placeOf(at, /*isShared=*/false);
    return place.empty() ? "" : "writes " + place + ", which the launch states only to read";
  }
  if (bytes <= 0 || shift < 0)
    return "";
  uintptr_t offset = at - region->begin;
  auto last = std::min((offset + static_cast<uintptr_t>(bytes) - 1) >> shift,
                       static_cast<uintptr_t>(region->cells.size()) - 1);
  for (uintptr_t i = offset >> shift; i <= last; ++i) {
    Cell &cell = region->cells[i];
    if (isShared && cell.block != block) // the memory of another block
      cell = Cell();
    if (!record(cell, static_cast<uint16_t>(thread + 1), kind))
      return verb + placeOf(std::max(at, region->begin + (i << shift)), isShared) + reasonOf(cell);
  }
  return "";
}

} // namespace tessera::runtime
