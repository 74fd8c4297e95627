//===- ExecutorCopies.cpp - Move values between steps ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

namespace tessera::runtime::gpu {

/// The graph of all devices is launched on the stream of the first one.
Stream GpuExecutor::betweenSteps(const Issuer &issuer) const {
  return whole ? issuers.front()->stream(0) : issuer.stream(0);
}

Status GpuExecutor::beginCopies() {
  if (!failure.empty())
    return Status::error("an earlier step failed: " + failure);
  settled = false;
  TESSERA_RETURN_IF_ERROR(driver().enter());
  return driver().finishWrites();
}

Status GpuExecutor::writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                              int64_t size) {
  Issuer *issuer = find(part, position);
  if (!issuer)
    return {}; // another process has this device and writes its part
  TESSERA_RETURN_IF_ERROR(beginCopies());
  return driver().upload({betweenSteps(*issuer), nullptr, "set argument", {}}, issuer->slot(slot),
                         data, size);
}

Expected<std::shared_ptr<DeviceBuffer>> GpuExecutor::keepSlot(int64_t part, int64_t position,
                                                              int64_t slot, int64_t size) {
  Issuer *issuer = find(part, position);
  if (!issuer)
    return Status::error("another process has the device");
  TESSERA_RETURN_IF_ERROR(beginCopies());
  return KeptBuffer::copyOf(options.driver, issuer->device, betweenSteps(*issuer),
                            issuer->slot(slot), size);
}

bool GpuExecutor::takes(int64_t part, int64_t position, const DeviceBuffer &buffer) const {
  return find(part, position) && dynamic_cast<const KeptBuffer *>(&buffer) &&
         buffer.ordinal() == driver().ordinal();
}

Status GpuExecutor::fillSlot(int64_t part, int64_t position, int64_t slot, DeviceBuffer &buffer) {
  Issuer *issuer = find(part, position);
  TESSERA_RETURN_IF_ERROR(beginCopies());
  return static_cast<KeptBuffer &>(buffer).copyTo(driver(), betweenSteps(*issuer),
                                                  issuer->slot(slot));
}

bool GpuExecutor::takesMemory(int64_t part, int64_t position, int64_t ordinal) const {
  return find(part, position) && ordinal >= 0 && ordinal == driver().ordinal();
}

Status GpuExecutor::fillSlotFrom(int64_t part, int64_t position, int64_t slot,
                                 const std::byte *data, int64_t size) {
  constexpr uint64_t kLegacyStream = 1;
  Issuer *issuer = find(part, position);
  TESSERA_RETURN_IF_ERROR(beginCopies());
  GpuDriver &mine = driver();
  Stream stream = betweenSteps(*issuer), others = mine.foreignStream(kLegacyStream);
  auto order = [&](Stream first, Stream then) -> Status {
    if (!others)
      return {};
    TESSERA_RETURN_IF_ERROR(mine.record(issuer->spareEvent(), first));
    return mine.wait(then, issuer->spareEvent());
  };
  TESSERA_RETURN_IF_ERROR(order(others, stream));
  TESSERA_RETURN_IF_ERROR(
      mine.copy({stream, nullptr, "set argument", {}}, issuer->slot(slot), data, size));
  return order(stream, others); // the owner frees the memory after the copy
}

std::vector<std::pair<std::string, int64_t>> GpuExecutor::counters() const {
  const DriverCounts &counts = options.driver->counts();
  return {{"allocations", counts.allocations},
          {"streams", counts.streams},
          {"events", counts.events},
          {"graphs", counts.graphs},
          {"synchronisations", counts.synchronisations},
          {"reads", counts.reads},
          {"launches", counts.launches},
          {"waits", counts.waits},
          {"graph_launches", counts.graphLaunches},
          {"host_to_device_bytes", counts.hostToDevice},
          {"device_to_host_bytes", counts.deviceToHost},
          {"kept_bytes", counts.kept}};
}

} // namespace tessera::runtime::gpu
