//===- DeviceMemory.cpp - Memory use of programs on devices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace tessera::runtime {

namespace {
struct Block {
  int64_t device;
  const std::byte *data;
  int64_t bytes;
};

struct Account {
  int64_t reserved = 0, peakAllocated = 0, peakReserved = 0;
};

/// Pages stay resident until their block is freed. So the peak can be measured at that moment, and
/// on request, without counting during steps.
struct Ledger {
  std::mutex mutex;
  std::map<uint64_t, Block> blocks; ///< by id
  std::map<int64_t, Account> accounts;
  uint64_t lastId = 0;

  /// The bytes in use on a device; raises its peak. The caller holds the lock.
  int64_t measure(int64_t device);
};
} // namespace

static Ledger &ledger() {
  static Ledger *instance = new Ledger; // never destroyed: programs may be closed late
  return *instance;
}

/// The resident bytes of a block.
static int64_t residentBytes(const Block &block) {
  const auto page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<intptr_t>(block.data);
  const int64_t first = begin / page * page, end = begin + block.bytes;
  constexpr int64_t kPages = 1 << 16; // queried at once
  std::vector<unsigned char> resident(
      static_cast<size_t>(std::min(kPages, (end - first + page - 1) / page)));
  int64_t sum = 0;
  for (int64_t at = first; at < end; at += kPages * page) {
    int64_t length = std::min(end - at, kPages * page);
    if (::mincore(reinterpret_cast<void *>(at), static_cast<size_t>(length), resident.data()) != 0)
      return block.bytes;
    for (int64_t i = 0; i * page < length; ++i)
      if (resident[static_cast<size_t>(i)] & 1)
        sum +=
            std::min<int64_t>(at + (i + 1) * page, end) - std::max<int64_t>(at + i * page, begin);
  }
  return sum;
}

int64_t Ledger::measure(int64_t device) {
  int64_t used = 0;
  for (const auto &[id, block] : blocks)
    if (block.device == device)
      used += block.data ? residentBytes(block) : block.bytes;
  Account &account = accounts[device];
  account.peakAllocated = std::max(account.peakAllocated, used);
  return used;
}

MemoryClaim::MemoryClaim(int64_t device, const std::byte *data, int64_t bytes) {
  if (bytes <= 0)
    return;
  Ledger &all = ledger();
  std::lock_guard lock(all.mutex);
  id = ++all.lastId;
  all.blocks.emplace(id, Block{device, data, bytes});
  Account &account = all.accounts[device];
  account.reserved += bytes;
  account.peakReserved = std::max(account.peakReserved, account.reserved);
}

MemoryClaim::MemoryClaim(MemoryClaim &&other) noexcept : id(std::exchange(other.id, 0)) {}

MemoryClaim::~MemoryClaim() {
  if (id == 0)
    return;
  Ledger &all = ledger();
  std::lock_guard lock(all.mutex);
  auto it = all.blocks.find(id);
  all.measure(it->second.device);
  all.accounts[it->second.device].reserved -= it->second.bytes;
  all.blocks.erase(it);
}

MemoryUse memoryUse(int64_t device) {
  Ledger &all = ledger();
  std::lock_guard lock(all.mutex);
  if (!all.accounts.contains(device))
    return {};
  int64_t used = all.measure(device);
  const Account &account = all.accounts[device];
  return {used, account.reserved, account.peakAllocated, account.peakReserved};
}

std::vector<int64_t> devicesWithMemory() {
  Ledger &all = ledger();
  std::lock_guard lock(all.mutex);
  std::vector<int64_t> devices;
  for (const auto &[device, account] : all.accounts)
    devices.push_back(device);
  return devices;
}

void resetPeakMemory(int64_t device) {
  Ledger &all = ledger();
  std::lock_guard lock(all.mutex);
  auto it = all.accounts.find(device);
  if (it == all.accounts.end())
    return;
  it->second.peakAllocated = 0;
  all.measure(device);
  it->second.peakReserved = it->second.reserved;
}

} // namespace tessera::runtime
