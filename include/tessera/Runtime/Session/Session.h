//===- Session.h - Execute a program step by step ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_SESSION_H
#define TESSERA_RUNTIME_SESSION_SESSION_H

#include "tessera/Runtime/Session/Backend.h"
#include "tessera/Runtime/Session/HostTensor.h"

namespace tessera::runtime {

/// The backend of a session and its devices. Opening fails for an unknown backend.
struct SessionOptions {
  std::string backend = "threads";
  BackendOptions devices;
  uint64_t seed = 0; ///< of arguments that are never set
};

/// A result that outlives its step, and its session, on the devices.
class KeptValue {
public:
  /// Waits for the devices. The class is not thread-safe.
  Expected<HostTensor> read() const;
  /// Null unless one device has the whole value, dense.
  DeviceBuffer *whole() const { return move->wholeOf(buffers); }
  DType dtype() const { return type; }
  const Shape &shape() const { return extents; }

private:
  friend class Session;
  std::shared_ptr<const HostMove> move;
  HostMove::Buffers buffers;
  DType type = DType::f32;
  Shape extents;
};

/// An artifact on a backend. Arguments and results are whole tensors on the host. Not thread-safe.
class Session {
public:
  /// Fails when the backend is unknown, offers too few devices, or cannot load the program.
  static Expected<std::unique_ptr<Session>> open(std::shared_ptr<const Artifact> artifact,
                                                 const SessionOptions &options);
  ~Session();

  const Program &program() const { return artifact->program; }
  Executor &executor() { return *backend; }
  int64_t stepsDone() const { return steps; }

  /// Sets an argument from the next step on; the dtype and shape must be the program's. Arguments
  /// that are never set are random at the first step (RandomInput.h). Setting a fed argument again
  /// discards the result of the last step.
  Status setArgument(int64_t argument, HostTensor value);
  /// The same for a dense, row-major value, which is copied before this returns.
  Status setArgument(int64_t argument, const std::byte *value);
  /// Runs the program once.
  Status step();
  /// The global value of a result after the last step. With several processes, all of them call
  /// this in the same order; one that is not a reader gets an empty tensor.
  Expected<HostTensor> result(int64_t result, Executor::Readers readers = Executor::Readers::all);
  /// The same, written to `value`, dense and row-major; with Readers::reporter it may be null in the
  /// other processes.
  Status readResult(int64_t result, std::byte *value,
                    Executor::Readers readers = Executor::Readers::all);

  /// Whether this process can read a result without the others.
  bool isReadHere(int64_t result) const { return resultMoves[result]->isReadHere(*backend); }
  /// An asynchronous copy of a result on its devices; null if the backend keeps none, or other
  /// processes have a part of it.
  Expected<std::shared_ptr<KeptValue>> keepResult(int64_t result);
  /// Like the other one, without a copy to the host. Returns false, without an effect, if the
  /// argument has another layout than the value.
  bool setArgument(int64_t argument, std::shared_ptr<KeptValue> value);
  /// The same for a whole value, dense, in foreign memory of a GPU; the next step reads `data`
  /// (Executor::fillSlotFrom has the order), which must not be freed before the step is issued.
  bool setArgument(int64_t argument, const std::byte *data, int64_t ordinal);

  /// The part of an argument or a result in this process: one box, or none. Nothing if only whole
  /// values can be set and read: the process has all devices, or several, an argument has several
  /// homes, or a device does not hold a box (HostMove::heldBoxes); the same on all processes.
  using Held = std::optional<std::vector<sharding::Box>>;
  Held heldOfArgument(int64_t argument) const;
  Held heldOfResult(int64_t result) const;
  /// Like setArgument for only the box, whose elements are dense and row-major.
  Status setArgumentBox(int64_t argument, Bytes box);
  /// The box of a result, without the other processes.
  Status readResultBox(int64_t result, std::byte *box);

private:
  Session(std::shared_ptr<const Artifact> artifact, std::unique_ptr<Executor> executor,
          uint64_t seed);
  Status placeArgument(int64_t index);
  Status placeArguments();

  struct ArgumentState {
    std::optional<HostTensor> value;
    std::optional<Bytes> box;           ///< instead of `value`, its part in this process
    std::shared_ptr<KeptValue> kept;    ///< the value, on the devices
    const std::byte *foreign = nullptr; ///< the value, in foreign device memory
    bool changed = true;                ///< must be written before the next step
    bool fed = false;                   ///< a result of the last step is its value
    bool overwritten = false;           ///< the steps reuse its memory: write it before every step
    bool sharesResults = false;         ///< memory; a new value waits for the next step
    std::vector<HostMove> moves;

    /// Drops the value before a new one is set.
    void clear();
  };

  std::shared_ptr<const Artifact> artifact;
  std::unique_ptr<Executor> backend;
  uint64_t seed;
  bool isAlone = true; ///< all devices are in this process
  int64_t steps = 0;
  std::vector<ArgumentState> arguments;
  std::vector<std::shared_ptr<HostMove>> resultMoves; ///< shared with kept values
};

/// Checks that 1 + the largest process id of a program is at most `devices`, the number requested
/// by the user; 0 is no request. The error names the mesh and both numbers.
Status checkDevices(const Program &program, int64_t devices);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_SESSION_H
