//===- Executor.cpp - Reports of executors --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/Executor.h"

#include <algorithm>

namespace tessera::runtime {

int64_t CollectiveStats::countedWireBytes() const {
  int64_t most = 0;
  for (int64_t bytes : sentBytes)
    most = std::max(most, bytes);
  for (int64_t bytes : receivedBytes)
    most = std::max(most, bytes);
  return most;
}

int64_t CollectiveStats::totalBytes() const {
  int64_t sum = 0;
  for (int64_t bytes : receivedBytes)
    sum += bytes;
  return sum;
}

Status Executor::readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                          int64_t size) {
  if (const std::byte *held = slotData(part, position, slot)) {
    parallelFor((size + kPartBytes - 1) / kPartBytes, [&](int64_t part) {
      int64_t begin = part * kPartBytes;
      std::copy_n(held + begin, std::min(kPartBytes, size - begin), data + begin);
    });
    return {};
  }
  return readSlot(part, position, slot, data, size);
}

void Executor::parallelFor(int64_t count, const std::function<void(int64_t)> &body) {
  for (int64_t i = 0; i < count; ++i)
    body(i);
}

Expected<std::shared_ptr<DeviceBuffer>> Executor::keepSlot(int64_t, int64_t, int64_t, int64_t) {
  return Status::error("this backend cannot keep values on its devices");
}

Status Executor::fillSlot(int64_t, int64_t, int64_t, DeviceBuffer &) {
  return Status::error("this backend cannot keep values on its devices");
}

Status Executor::fillSlotFrom(int64_t, int64_t, int64_t, const std::byte *, int64_t) {
  return Status::error("this backend does not accept device memory");
}

Expected<std::vector<const std::byte *>> Executor::readSlots(int64_t part,
                                                             const std::vector<int64_t> &positions,
                                                             int64_t slot, int64_t size, Readers,
                                                             std::vector<Bytes> &staging) {
  std::vector<const std::byte *> result;
  for (int64_t position : positions) {
    std::byte *data = keepsOnDevices() ? nullptr : slotData(part, position, slot);
    if (!data) {
      data = staging.emplace_back(static_cast<size_t>(size)).data();
      TESSERA_RETURN_IF_ERROR(readSlot(part, position, slot, data, size));
    }
    result.push_back(data);
  }
  return result;
}

} // namespace tessera::runtime
