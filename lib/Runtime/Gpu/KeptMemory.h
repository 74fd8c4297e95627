//===- KeptMemory.h - Values that outlive their step ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The next step overwrites a result. Holders of the result then get a copy on the
// device. Blocks of freed copies are reused: in a steady state no memory is
// allocated and no event is created.
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
  Event used = nullptr;    ///< recorded after uses by other drivers
  bool isUsed = false;
};

/// The blocks of an executor. Buffers own it, so it outlives the executor.
class KeptMemory : public std::enable_shared_from_this<KeptMemory> {
public:
  explicit KeptMemory(GpuDriver &driver) : driver(driver) {}
  /// Returns a block of exactly this size, reused or new, with the events that order its next use.
  Expected<KeptBlock> take(int64_t device, int64_t bytes);
  /// Takes a block back, from any thread. `again`: nobody else can access it, so that it may be
  /// reused.
  void giveBack(KeptBlock block, bool again);
  /// Frees free blocks, and from now on blocks that are given back: the executor is destroyed.
  void close();
  bool isOpen() const { return !closed; }

private:
  GpuDriver &driver;
  std::mutex mutex;
  bool closed = false;
  std::vector<KeptBlock> free;
};

/// A driver with its streams and graphs, destroyed with the last value that it keeps. Its other
/// resources are freed with the executor.
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
  /// Copies `bytes` bytes from `from`, after all work issued to the stream.
  static Expected<std::shared_ptr<DeviceBuffer>> copyOf(const OwnedDriver &owner, int64_t device,
                                                        Stream stream, const std::byte *from,
                                                        int64_t bytes);
  ~KeptBuffer() override;
  std::byte *data() const override { return block.data; }
  int64_t size() const override { return block.bytes; }
  int64_t ordinal() const override { return driver->ordinal(); }
  Status read(std::byte *to) override;
  Status handOver(uint64_t stream) override;
  /// Copies it to `to`, memory of `user`, in stream order.
  Status copyTo(GpuDriver &user, Stream stream, std::byte *to);

private:
  KeptBuffer(std::shared_ptr<GpuDriver> driver, std::shared_ptr<KeptMemory> memory, Stream stream,
             KeptBlock block)
      : driver(std::move(driver)), memory(std::move(memory)), stream(stream), block(block) {}

  std::shared_ptr<GpuDriver> driver;
  std::shared_ptr<KeptMemory> memory;
  Stream stream; ///< of the copy
  KeptBlock block;
  bool isShared = false;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_KEPTMEMORY_H
