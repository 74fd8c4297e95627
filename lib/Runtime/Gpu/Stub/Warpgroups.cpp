//===- Warpgroups.cpp - Emulated products of warpgroups -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"

#include "Matrices.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tessera::runtime {

namespace {

constexpr uint32_t kRows = 64, kWarpRows = 16, kDepth = 16, kChunk = 16;
/// Names of sums are NaN from this word on.
constexpr uint32_t kFirstName = 0x7fc00001, kNames = 0x3ffffe;

uint32_t wordOf(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  return word;
}

float floatOf(uint32_t word) {
  float x;
  std::memcpy(&x, &word, sizeof(x));
  return x;
}

/// The bytes of a row in a swizzled layout; 16 without a swizzle.
int64_t widthOf(uint64_t descriptor) {
  constexpr int64_t kWidths[] = {16, 128, 64, 32};
  return kWidths[descriptor >> 62];
}

} // namespace

int64_t MatrixDescriptor::place(uint32_t row, uint32_t k, uint64_t base) const {
  constexpr int64_t kElement = 2, kMask = 0x3ffff;
  auto field = [&](unsigned first) { return static_cast<int64_t>(bits >> first & 0x3fff) << 4; };
  int64_t leading = field(16), stride = field(32), width = widthOf(bits);
  int64_t i = row, j = k, offset = 0;
  if (width == 16)
    offset = transposed ? i / 8 * stride + i % 8 * kElement + j / 8 * leading + j % 8 * width
                        : i / 8 * stride + i % 8 * width + j / 8 * leading + j % 8 * kElement;
  else if (transposed)
    offset = i / (width / kElement) * leading + i % (width / kElement) * kElement + j / 8 * stride +
             j % 8 * width;
  else
    offset = i / 8 * stride + i % 8 * width + j * kElement;
  int64_t address = ((field(0) - static_cast<int64_t>(base)) & kMask) + offset;
  // Words of 16 bytes are exchanged by the number of the row of 128 bytes in a group of eight.
  return address ^ ((address >> 7 & (width / 16 - 1)) << 4);
}

void Warpgroups::begin(uint32_t count, void *shared, int64_t sharedBytes) {
  memory = static_cast<unsigned char *>(shared);
  bytes = sharedBytes;
  nextName = 0;
  threads.assign(count, {});
  warps.assign((count + kWarp - 1) / kWarp, {});
  executed.assign((count + kGroup - 1) / kGroup, {});
  unfenced.assign(static_cast<size_t>(sharedBytes / kChunk + 1), 0);
}

Warpgroups::Pending *Warpgroups::find(Thread &thread, uint32_t name, uint32_t &place) {
  for (auto it = thread.pending.rbegin(); it != thread.pending.rend(); ++it)
    if (name >= it->name && name - it->name < it->values.size()) {
      place = name - it->name;
      return &*it;
    }
  return nullptr;
}

int64_t Warpgroups::place(MatrixDescriptor matrix, uint32_t row, uint32_t k) const {
  auto base = reinterpret_cast<uint64_t>(memory);
  if (fault == WarpgroupFault::offset)
    matrix.bits += 2;
  if (fault == WarpgroupFault::stride) {
    uint64_t leading = matrix.bits >> 16 & 0x3fff, stride = matrix.bits >> 32 & 0x3fff;
    matrix.bits &= ~(uint64_t(0x3fff) << 16 | uint64_t(0x3fff) << 32);
    matrix.bits |= stride << 16 | leading << 32;
  }
  int64_t at = matrix.place(row, k, base);
  if (fault == WarpgroupFault::swizzle)
    at ^= (at >> 7 & (widthOf(matrix.bits) / 16 - 1)) << 4;
  return at;
}

uint64_t Warpgroups::hashOf(const std::vector<uint32_t> &chunks) const {
  uint64_t hash = 14695981039346656037u;
  for (uint32_t chunk : chunks)
    for (uint32_t i = 0; i < kChunk; i += 8) {
      uint64_t word;
      std::memcpy(&word, memory + chunk * kChunk + i, sizeof(word));
      hash = (hash ^ word) * 1099511628211u;
      hash ^= hash >> 29;
    }
  return hash;
}

/// Two lanes read, so that a write by either is found.
std::string Warpgroups::readAll(uint32_t first, const std::vector<uint32_t> &chunks,
                                const Reader &reads) {
  if (!reads)
    return "";
  for (uint32_t chunk : chunks)
    for (uint32_t lane : {0, 1})
      if (std::string why = reads(first + lane, memory + chunk * kChunk, kChunk); !why.empty())
        return why;
  return "";
}

std::string Warpgroups::multiply(uint32_t first, const WarpgroupOperands *const *lanes,
                                 const Reader &reads) {
  const WarpgroupOperands &all = *lanes[0];
  uint32_t group = first / kGroup, columns = all.columns;
  Warp &warp = warps[first / kWarp];
  if ((group + 1) * kGroup > threads.size())
    return "multiplies by a warpgroup of less than 128 threads";
  Executed mine{all.left, all.right, columns,
                uint32_t(all.isBf16 | all.accumulates << 1 | all.transposedA << 2 |
                         all.transposedB << 3 | all.leftInRegisters << 4)};
  for (uint32_t lane = 1; lane < kWarp; ++lane)
    if (lanes[lane]->left != all.left || lanes[lane]->right != all.right ||
        lanes[lane]->columns != columns)
      return "multiplies other operands than lane 0 of its warp";
  std::vector<Executed> &others = executed[group];
  if (warp.count < others.size() && !(others[warp.count] == mine))
    return "multiplies other operands than another warp of its warpgroup";
  if (warp.count == others.size())
    others.push_back(mine);
  ++warp.count;
  for (uint64_t descriptor : {all.leftInRegisters ? 0 : all.left, all.right})
    if (descriptor >> 49 & 7)
      return "multiplies a matrix with a base offset, which the emulator lacks";

  Reads read;
  read.group = threads[first].groups + 1;
  std::string error;
  auto element = [&](const MatrixDescriptor &matrix, uint32_t row, uint32_t k) -> uint16_t {
    int64_t at = place(matrix, row, k);
    if (at < 0 || at + 2 > bytes) {
      error = "multiplies byte " + std::to_string(at) + " of shared memory, beyond its end";
      return 0;
    }
    auto chunk = static_cast<uint32_t>(at) / kChunk;
    if (read.chunks.empty() || read.chunks.back() != chunk)
      read.chunks.push_back(chunk);
    uint16_t value;
    std::memcpy(&value, memory + at, sizeof(value));
    return value;
  };
  auto widen = all.isBf16 ? widenBf16 : widenF16;
  float a[kWarpRows][kDepth];
  MatrixDescriptor left{all.left, all.transposedA}, right{all.right, all.transposedB};
  if (all.leftInRegisters) {
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      for (uint32_t word = 0; word < 4; ++word)
        for (uint32_t half = 0; half < 2; ++half)
          a[lane / 4 + 8 * (word % 2)][lane % 4 * 2 + half + 8 * (word / 2)] =
              widen(static_cast<uint16_t>(lanes[lane]->a[word] >> (16 * half)));
  } else {
    uint32_t firstRow = first / kWarp % (kRows / kWarpRows) * kWarpRows;
    for (uint32_t row = 0; row < kWarpRows; ++row)
      for (uint32_t k = 0; k < kDepth; ++k)
        a[row][k] = widen(element(left, firstRow + row, k));
  }
  std::vector<float> b(static_cast<size_t>(columns) * kDepth);
  for (uint32_t column = 0; column < columns; ++column)
    for (uint32_t k = 0; k < kDepth; ++k)
      b[column * kDepth + k] = widen(element(right, column, k));
  if (!error.empty())
    return error;
  std::sort(read.chunks.begin(), read.chunks.end());
  read.chunks.erase(std::unique(read.chunks.begin(), read.chunks.end()), read.chunks.end());
  for (uint32_t chunk : read.chunks)
    if (uint32_t writer = unfenced[chunk])
      return "multiplies byte " + std::to_string(chunk * kChunk) +
             " of shared memory, which thread " + std::to_string(writer - 1) +
             " of the block has written without a fence.proxy.async";
  if (std::string race = readAll(first, read.chunks, reads); !race.empty())
    return race;
  read.hash = hashOf(read.chunks);
  warp.reads.push_back(std::move(read));

  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    Thread &thread = threads[first + lane];
    float *sums = lanes[lane]->sums;
    uint32_t count = columns / 2;
    std::vector<float> values(count, 0.0f);
    bool needsFence = all.leftInRegisters || !all.accumulates;
    if (all.accumulates) {
      uint32_t place = 0;
      Pending *earlier = find(thread, wordOf(sums[0]), place);
      bool continues = earlier && place == 0 && earlier->values.size() == count;
      for (uint32_t i = 0; continues && i < count; ++i)
        continues = wordOf(sums[i]) == earlier->name + i;
      if (continues) {
        values = std::move(earlier->values);
        thread.pending.erase(thread.pending.begin() + (earlier - thread.pending.data()));
      } else {
        values.assign(sums, sums + count);
        needsFence = true;
      }
    }
    if (needsFence && !thread.fenced)
      return "multiplies without a wgmma.fence after other accesses to its registers";
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t row = lane / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (uint32_t k = 0; k < kDepth; ++k)
        values[i] += a[row][k] * b[column * kDepth + k];
    }
    Pending next{thread.groups + 1, kFirstName + nextName, count, std::move(values)};
    for (uint32_t i = 0; i < count; ++i)
      sums[i] = floatOf(next.name + i);
    nextName = nextName + count + 256 > kNames ? 0 : nextName + count;
    thread.pending.push_back(std::move(next));
  }
  return "";
}

void Warpgroups::fence(uint32_t thread) {
  threads[thread].fenced = fault != WarpgroupFault::fence;
}

void Warpgroups::commit(uint32_t thread) {
  ++threads[thread].groups;
  threads[thread].fenced = false;
}

std::string Warpgroups::wait(uint32_t number, uint32_t groups, uint32_t count, float *values,
                             const Reader &reads) {
  Thread &thread = threads[number];
  groups += fault == WarpgroupFault::wait;
  thread.completed =
      std::max(thread.completed, thread.groups - std::min<uint64_t>(groups, thread.groups));
  std::vector<Reads> &all = warps[number / kWarp].reads;
  for (size_t i = 0; i < all.size();) {
    if (all[i].group > thread.completed) {
      ++i;
      continue;
    }
    Reads done = std::move(all[i]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    if (hashOf(done.chunks) != done.hash)
      return "waits for a product whose operands in shared memory have changed meanwhile";
    if (std::string race = readAll(number / kWarp * kWarp, done.chunks, reads); !race.empty())
      return race;
  }
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t place = 0;
    Pending *found = find(thread, wordOf(values[i]), place);
    if (!found)
      continue;
    if (found->group > thread.completed)
      return "uses sums of a product that its wgmma.wait_group does not wait for";
    values[i] = found->values[place];
    if (--found->left == 0)
      thread.pending.erase(thread.pending.begin() + (found - thread.pending.data()));
  }
  return "";
}

void Warpgroups::recordWrite(uint32_t thread, const void *address, int64_t count) {
  auto at = static_cast<const unsigned char *>(address) - memory;
  if (at < 0 || at >= bytes)
    return;
  for (auto chunk = static_cast<uint32_t>(at / kChunk);
       chunk <= static_cast<uint32_t>((at + count - 1) / kChunk) && chunk < unfenced.size();
       ++chunk) {
    if (unfenced[chunk] == thread + 1)
      continue;
    unfenced[chunk] = thread + 1;
    threads[thread].written.push_back(chunk);
  }
}

void Warpgroups::fenceProxy(uint32_t thread) {
  if (fault == WarpgroupFault::proxy)
    return;
  for (uint32_t chunk : threads[thread].written)
    if (unfenced[chunk] == thread + 1)
      unfenced[chunk] = 0;
  threads[thread].written.clear();
}

std::string Warpgroups::finish() const {
  for (size_t warp = 0; warp < warps.size(); ++warp)
    if (!executed[warp / 4].empty()) {
      if (warps[warp].count != executed[warp / 4].size())
        return "warp " + std::to_string(warp) +
               " executes fewer products than another warp of its warpgroup";
      if (!warps[warp].reads.empty())
        return "warp " + std::to_string(warp) + " ends before a product that it has begun";
    }
  return "";
}

} // namespace tessera::runtime
