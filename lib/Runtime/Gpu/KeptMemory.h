//===- KeptMemory.h - Values that outlive their step ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result is where the next step writes. Who still has it then gets a copy, on
// the device. Blocks of copies that are gone serve again: in a steady state
// nothing is allocated and no event is made.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_KEPTMEMORY_H
#define TESSERA_LIB_RUNTIME_GPU_KEPTMEMORY_H

#include "Driver.h"
#include "tessera/Runtime/Execution/Executor.h"

#include <mutex>

namespace tessera::runtime::gpu {

/// Memory of a device with the events that order its uses.
struct KeptBlock {
  std::byte *data = nullptr;
  int64_t device = 0, bytes = 0;
  Event written = nullptr; ///< recorded when the copy was issued
  Event used = nullptr;    ///< recorded behind uses by other drivers
  bool isUsed = false;
};

/// The blocks of an executor. Buffers hold it: it outlives the executor.
class KeptMemory : public std::enable_shared_from_this<KeptMemory> {
public:
  explicit KeptMemory(GpuDriver &driver) : driver(driver) {}
  /// A block of exactly that size, one given back or a new one, and what orders its next use.
  Expected<KeptBlock> take(int64_t device, int64_t bytes);
  /// From any thread. `again`: others have no access to it.
  void giveBack(KeptBlock block, bool again);
  /// The executor goes: what is free is freed, and later what is given back.
  void close();
  bool isOpen() const { return !closed; }

private:
  GpuDriver &driver;
  std::mutex mutex;
  bool closed = false;
  std::vector<KeptBlock> free;
};

/// A driver, its streams and graphs, that goes when the last value goes which it keeps. What else
/// it has goes with the executor.
class OwnedDriver {
public:
  OwnedDriver() = default;
  OwnedDriver(OwnedDriver &&) = default;
  OwnedDriver &operator=(std::unique_ptr<GpuDriver> given);
  ~OwnedDriver();
  GpuDriver &operator*() const { return *driver; }
  GpuDriver *operator->() const { return driver.get(); }
  const std::shared_ptr<GpuDriver> &shared() const { return driver; }
  const std::shared_ptr<KeptMemory> &keptMemory() const { return kept; }

private:
  std::shared_ptr<GpuDriver> driver;
  std::shared_ptr<KeptMemory> kept;
};

class KeptBuffer final : public DeviceBuffer {
public:
  /// Copies `bytes` bytes at `from` behind what the stream has been given.
  static Expected<std::shared_ptr<DeviceBuffer>> copyOf(const OwnedDriver &owner, int64_t device,
                                                        Stream stream, const std::byte *from,
                                                        int64_t bytes);
  ~KeptBuffer() override;
  std::byte *data() const override { return block.data; }
  int64_t size() const override { return block.bytes; }
  int64_t ordinal() const override { return driver->ordinal(); }
  Status read(std::byte *to) override;
  Status handOver(uint64_t stream) override;
  /// Copies it to `to`, memory that `user` has, in the order of its stream.
  Status copyTo(GpuDriver &user, Stream stream, std::byte *to);

private:
  KeptBuffer(std::shared_ptr<GpuDriver> driver, std::shared_ptr<KeptMemory> memory, Stream stream,
             KeptBlock block)
      : driver(std::move(driver)), memory(std::move(memory)), stream(stream), block(block) {}

  std::shared_ptr<GpuDriver> driver;
  std::shared_ptr<KeptMemory> memory;
  Stream stream; ///< that it was copied on
  KeptBlock block;
  bool isShared = false;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_KEPTMEMORY_H
