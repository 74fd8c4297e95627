//===- DeviceMemoryTest.cpp - Accounting of device memory -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Execution/DeviceMemory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tessera::runtime;

namespace {
constexpr int64_t kDevice = 4001; // unused by other tests
} // namespace

TEST(DeviceMemory, PeaksOutliveBlocks) {
  resetPeakMemory(kDevice);
  {
    MemoryClaim first(kDevice, nullptr, 100);
    {
      MemoryClaim moved(kDevice, nullptr, 50), second(std::move(moved));
      EXPECT_EQ(memoryUse(kDevice).reserved, 150);
      EXPECT_EQ(memoryUse(kDevice).allocated, 150);
    }
    MemoryUse use = memoryUse(kDevice);
    EXPECT_EQ(use.reserved, 100);
    EXPECT_EQ(use.peakReserved, 150);
    EXPECT_EQ(use.peakAllocated, 150);
    resetPeakMemory(kDevice);
    EXPECT_EQ(memoryUse(kDevice).peakReserved, 100);
  }
  EXPECT_EQ(memoryUse(kDevice).reserved, 0);
  EXPECT_EQ(memoryUse(kDevice).peakAllocated, 100);
  EXPECT_EQ(memoryUse(kDevice + 1).peakReserved, 0) << "another device";
}

TEST(DeviceMemory, OnlyTouchedPagesCount) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t size = 16 * page;
  void *data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  (void)::madvise(data, size, MADV_NOHUGEPAGE);
  auto *bytes = static_cast<std::byte *>(data);
  resetPeakMemory(kDevice);
  {
    // The last page belongs only partly to the block.
    MemoryClaim block(kDevice, bytes, static_cast<int64_t>(size - 10));
    EXPECT_EQ(memoryUse(kDevice).reserved, static_cast<int64_t>(size - 10));
    EXPECT_EQ(memoryUse(kDevice).allocated, 0);
    std::memset(bytes + 3 * page, 1, 2 * page);
    EXPECT_EQ(memoryUse(kDevice).allocated, static_cast<int64_t>(2 * page));
    bytes[size - 20] = std::byte(1);
  }
  // No query happened while the block existed.
  EXPECT_EQ(memoryUse(kDevice).peakAllocated, static_cast<int64_t>(3 * page - 10));
  EXPECT_EQ(memoryUse(kDevice).allocated, 0);
  ::munmap(data, size);
}
