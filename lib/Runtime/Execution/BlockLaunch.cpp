//===- BlockLaunch.cpp - Kernels on blocks of a product's result ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLaunch.h"

#include <algorithm>

namespace tessera::runtime {

BlockLaunch::BlockLaunch(const Program &program, const LaunchStep &step, Kernel kernel,
                         int64_t tasks, std::vector<void *> slotList)
    : kernel(kernel), tasks(tasks), blocks(step.blocks), slots(std::move(slotList)) {
  for (size_t i = 0; i < slots.size(); ++i)
    steps.push_back(step.isCut(i) ? program.kernelBytes[step.kernel][i] : 0);
}

void BlockLaunch::run(int64_t block, int64_t begin, int64_t end) const {
  thread_local std::vector<void *> arguments;
  arguments.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    arguments[i] = static_cast<char *>(slots[i]) + block * steps[i];
  kernel(arguments.data(), begin, end);
}

BlockProgress::BlockProgress(const std::vector<ElementRange> &written, int64_t elements,
                             int64_t blocks)
    : counts(static_cast<size_t>(blocks)), pending(new std::atomic<int32_t>[blocks]),
      isLeft(static_cast<size_t>(blocks)) {
  const int64_t size = std::max<int64_t>(1, elements / blocks);
  for (auto [first, last] : written) {
    // An empty piece writes nothing; block 0 waits for it.
    ranges.emplace_back(std::clamp<int64_t>(first / size, 0, blocks - 1),
                        std::clamp<int64_t>(last / size, 0, blocks - 1));
    for (int64_t block = ranges.back().first; block <= ranges.back().second; ++block)
      ++counts[block];
  }
}

void BlockProgress::begin() {
  for (size_t block = 0; block < counts.size(); ++block) {
    pending[block].store(counts[block], std::memory_order_relaxed);
    isLeft[block] = counts[block] == 0;
  }
}

std::vector<int64_t> BlockProgress::left() const {
  std::vector<int64_t> blocks;
  for (size_t block = 0; block < isLeft.size(); ++block)
    if (isLeft[block])
      blocks.push_back(static_cast<int64_t>(block));
  return blocks;
}

} // namespace tessera::runtime
