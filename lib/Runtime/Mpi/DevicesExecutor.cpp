//===- DevicesExecutor.cpp - Several devices of a process -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DevicesExecutor.h"

#include <algorithm>
#include <thread>

namespace tessera::runtime {

Status DevicesExecutor::onAll(size_t count, const std::function<Status(size_t)> &body) {
  std::vector<Status> said(count);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i)
    threads.emplace_back([&, i] { said[i] = body(i); });
  said[0] = body(0);
  for (std::thread &each : threads)
    each.join();
  auto first = std::find_if(said.begin(), said.end(), [](const Status &each) {
    return !each.ok() && !each.isReportedElsewhere();
  });
  if (first == said.end())
    first = std::find_if(said.begin(), said.end(), [](const Status &each) { return !each.ok(); });
  return first == said.end() ? Status() : *first;
}

ProcessExecutor *DevicesExecutor::holder(int64_t part, int64_t position) const {
  for (auto &device : devices)
    if (device->holds(part, position))
      return device.get();
  return nullptr;
}

Status DevicesExecutor::run() {
  isCounted = false;
  return onAll(devices.size(), [&](size_t i) { return devices[i]->run(); });
}

Status DevicesExecutor::finish() {
  isCounted = true;
  return onAll(devices.size(), [&](size_t i) { return devices[i]->finish(); });
}

Status DevicesExecutor::writeSlot(int64_t part, int64_t position, int64_t slot,
                                  const std::byte *data, int64_t size) {
  ProcessExecutor *device = holder(part, position);
  return device ? device->writeSlot(part, position, slot, data, size) : Status();
}

std::byte *DevicesExecutor::slotData(int64_t part, int64_t position, int64_t slot) {
  ProcessExecutor *device = holder(part, position);
  return device ? device->slotData(part, position, slot) : nullptr;
}

/// All devices take part, and the first one's copy is returned.
Expected<std::vector<const std::byte *>>
DevicesExecutor::readSlots(int64_t part, const std::vector<int64_t> &positions, int64_t slot,
                           int64_t size, Readers readers, std::vector<Bytes> &staging) {
  std::vector<const std::byte *> result;
  Status status = onAll(devices.size(), [&](size_t i) -> Status {
    std::vector<Bytes> own;
    auto read = devices[i]->readSlots(part, positions, slot, size, readers, i == 0 ? staging : own);
    if (!read)
      return read.status();
    if (i == 0)
      result = std::move(*read);
    return {};
  });
  if (!status.ok())
    return status;
  return result;
}

std::vector<CollectiveStats> DevicesExecutor::stats() const {
  std::vector<CollectiveStats> all = devices.front()->stats();
  for (size_t i = 1; i < devices.size() && !isCounted; ++i) {
    std::vector<CollectiveStats> theirs = devices[i]->stats();
    for (size_t c = 0; c < all.size(); ++c) {
      all[c].executions = std::max(all[c].executions, theirs[c].executions);
      for (size_t d = 0; d < all[c].sentBytes.size(); ++d) {
        all[c].sentBytes[d] += theirs[c].sentBytes[d];
        all[c].receivedBytes[d] += theirs[c].receivedBytes[d];
      }
    }
  }
  return all;
}

std::string DevicesExecutor::traceJson() const {
  std::vector<std::string> texts(devices.size());
  (void)onAll(devices.size(), [&](size_t i) {
    texts[i] = devices[i]->traceJson();
    return Status();
  });
  return texts.front();
}

} // namespace tessera::runtime
