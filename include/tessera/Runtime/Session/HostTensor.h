//===- HostTensor.h - Global tensors on the host ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_HOSTTENSOR_H
#define TESSERA_RUNTIME_SESSION_HOSTTENSOR_H

#include "tessera/Runtime/Execution/Executor.h"

#include <functional>

namespace tessera::runtime {

/// A whole tensor, dense and row-major.
struct HostTensor {
  DType dtype = DType::f32;
  Shape shape;
  Bytes data; ///< elementCount(shape) * sizeOf(dtype) bytes

  /// Zeros.
  static HostTensor zeros(DType dtype, const Shape &shape);
  int64_t numElements() const { return static_cast<int64_t>(data.size()) / sizeOf(dtype); }
  /// Element i in row-major order as a number (i64 beyond 2^53 rounds; `integer` does not).
  double number(int64_t i) const;
  /// Element i of a tensor of integers.
  int64_t integer(int64_t i) const;
  /// FNV-1a 64 over the bytes.
  uint64_t checksum() const { return fnv1a(data.data(), data.size()); }
};

/// Row-major coordinates of element i: "[2, 5]".
std::string indexText(const Shape &shape, int64_t i);

/// Writes to every device of an argument's homes its part of `value` (valid elements only; in a
/// partial home coordinate 0 gets the value and the others the identity). `value` must have the
/// argument's dtype and shape.
Status scatter(Executor &executor, const Program &program, const Argument &argument,
               const HostTensor &value);
/// Assembles a result from its devices, reducing a partial one.
Expected<HostTensor> gather(Executor &executor, const Program &program, const Result &result);

/// Both with the moves prepared once, for arguments and results that move in every step.
class HostMove {
public:
  HostMove(const Program &program, const Home &home, DType dtype, bool toDevices);
  HostMove(HostMove &&) noexcept;
  HostMove &operator=(HostMove &&) noexcept;
  ~HostMove();
  /// Moves a dense, row-major value of the home's global shape to the devices of this process, or
  /// from the devices; the constructor's `toDevices` says which of the two is possible. A process
  /// that is not a reader gets nothing.
  Status write(Executor &executor, const std::byte *value) const;
  Status read(Executor &executor, std::byte *value,
              Executor::Readers readers = Executor::Readers::all) const;

  /// Writes elements [begin, begin + count) of the global value, in row-major order.
  using MakeElements = std::function<void(int64_t begin, int64_t count, std::byte *at)>;
  /// Generates and writes the parts of a value on the devices of this process. `keeps`: keeps them
  /// for the next call.
  Status make(Executor &executor, const MakeElements &elements, bool keeps);
  /// Whether this process holds all of the home.
  bool isHere(const Executor &executor) const;

  /// The boxes of the global value that the devices of this process hold, one per device; nothing
  /// if a device does not hold a box (a contribution to a sum, a selection of elements).
  std::optional<std::vector<sharding::Box>> heldBoxes(const Executor &executor) const;
  /// Each process has `devices` consecutive ids. If those of each process together hold the whole
  /// value, `run` reads it from them: processes may then have different values.
  void preferOwn(int64_t devices);
  /// Copies the box of the only device of this process in the home. `box` is dense and row-major;
  /// padding of the device's buffer is zero. Does nothing without such a device.
  Status writeBox(Executor &executor, const std::byte *box);
  Status readBox(Executor &executor, std::byte *box);

  /// Whether one process, without the others, reads the whole value of `home`.
  bool isReadHere(const Executor &executor) const;
  /// By position of the home: device copies of the buffers from which a reader reads. Empty if
  /// another process is involved, or the executor keeps none.
  using Buffers = std::vector<std::shared_ptr<DeviceBuffer>>;
  Expected<Buffers> keep(Executor &executor) const;
  /// The value of such copies.
  Status read(const Buffers &buffers, std::byte *value) const;
  /// Whether the home has the layout of `from` and its devices accept the copies; then copies them.
  bool takes(const Executor &executor, const HostMove &from, const Buffers &buffers) const;
  Status fill(Executor &executor, const Buffers &buffers) const;
  /// The same for a whole value in memory of a GPU (Executor::fillSlotFrom).
  bool takesMemory(const Executor &executor, int64_t ordinal) const;
  Status fillFrom(Executor &executor, const std::byte *data) const;
  /// The copy with the whole value, dense; else null.
  DeviceBuffer *wholeOf(const Buffers &buffers) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_HOSTTENSOR_H
