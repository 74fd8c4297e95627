//===- KeptMemory.cpp - Values that outlive their step --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeptMemory.h"

#include <algorithm>

namespace tessera::runtime::gpu {

Expected<KeptBlock> KeptMemory::take(int64_t device, int64_t bytes) {
  {
    std::lock_guard lock(mutex);
    auto found = std::find_if(free.begin(), free.end(), [&](const KeptBlock &each) {
      return each.device == device && each.bytes == bytes;
    });
    if (found != free.end()) {
      KeptBlock block = *found;
      free.erase(found);
      return block;
    }
  }
  KeptBlock block;
  block.device = device;
  block.bytes = bytes;
  auto written = driver.createEvent(device);
  if (!written)
    return written.status();
  auto used = driver.createEvent(device);
  if (!used)
    return used.status();
  auto data = driver.allocateKept(device, bytes);
  if (!data) { // free blocks of other sizes may occupy the memory
    std::vector<KeptBlock> unused;
    {
      std::lock_guard lock(mutex);
      unused.swap(free);
    }
    if (unused.empty())
      return data.status();
    for (const KeptBlock &each : unused)
      driver.freeKept(each.data);
    data = driver.allocateKept(device, bytes);
    if (!data)
      return data.status();
  }
  block.data = *data;
  block.written = *written;
  block.used = *used;
  return block;
}

void KeptMemory::giveBack(KeptBlock block, bool again) {
  {
    std::lock_guard lock(mutex);
    if (!closed && again) {
      free.push_back(block);
      return;
    }
  }
  driver.freeKept(block.data);
}

void KeptMemory::close() {
  std::vector<KeptBlock> unused;
  {
    std::lock_guard lock(mutex);
    closed = true;
    unused.swap(free);
  }
  for (const KeptBlock &block : unused)
    driver.freeKept(block.data);
}

OwnedDriver &OwnedDriver::operator=(std::unique_ptr<GpuDriver> given) {
  driver = std::move(given);
  kept = std::make_shared<KeptMemory>(*driver);
  return *this;
}

OwnedDriver::~OwnedDriver() {
  if (!driver)
    return;
  kept->close();
  driver->release();
}

Expected<std::shared_ptr<DeviceBuffer>> KeptBuffer::copyOf(const OwnedDriver &owner, int64_t device,
                                                           Stream stream, const std::byte *from,
                                                           int64_t bytes) {
  auto block = owner.keptMemory()->take(device, bytes);
  if (!block)
    return block.status();
  std::shared_ptr<KeptBuffer> made(
      new KeptBuffer(owner.shared(), owner.keptMemory(), stream, *block));
  GpuDriver &driver = *owner;
  if (made->block.isUsed)
    TESSERA_RETURN_IF_ERROR(driver.wait(stream, made->block.used));
  made->block.isUsed = false;
  TESSERA_RETURN_IF_ERROR(
      driver.copy({stream, nullptr, "keep result", {}}, made->block.data, from, bytes));
  driver.countKept(bytes);
  TESSERA_RETURN_IF_ERROR(driver.record(made->block.written, stream));
  return std::shared_ptr<DeviceBuffer>(std::move(made));
}

KeptBuffer::~KeptBuffer() {
  memory->giveBack(block, !isShared);
}

Status KeptBuffer::read(std::byte *to) {
  TESSERA_RETURN_IF_ERROR(driver->enter());
  if (memory->isOpen()) {
    auto done = driver->synchronize(stream, /*forStep=*/false);
    if (!done)
      return done.status();
    if (!*done)
      return Status::error("cannot read a kept value: an earlier step does not end");
  }
  return driver->read(block.device, to, block.data, block.bytes);
}

Status KeptBuffer::handOver(uint64_t handle) {
  isShared = true;
  Stream other = driver->foreignStream(handle);
  if (!other || !memory->isOpen())
    return {};
  TESSERA_RETURN_IF_ERROR(driver->enter());
  return driver->waitElsewhere(*driver, other, block.written);
}

Status KeptBuffer::copyTo(GpuDriver &user, Stream onto, std::byte *to) {
  bool isOwn = &user == driver.get() && onto == stream;
  if (!isOwn && memory->isOpen())
    TESSERA_RETURN_IF_ERROR(driver->waitElsewhere(user, onto, block.written));
  TESSERA_RETURN_IF_ERROR(
      user.copy({onto, nullptr, "set argument", {}}, to, block.data, block.bytes));
  user.countKept(block.bytes);
  if (isOwn || !memory->isOpen())
    return {};
  block.isUsed = true;
  return driver->recordElsewhere(user, block.used, onto);
}

} // namespace tessera::runtime::gpu
