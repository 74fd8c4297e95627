//===- Transport.h - Messages between the processes of a job ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages of bytes between ranks. Collectives are plans of such messages, so that
// every algorithm runs over every transport: MPI, queues of threads in one process,
// sockets.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_TRANSPORT_H
#define TESSERA_LIB_RUNTIME_RANKS_TRANSPORT_H

#include "tessera/Runtime/Artifact/Status.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tessera::runtime {

/// Sends and receives bytes in host memory. No call except `rest` waits. Used by one thread at a
/// time.
///
/// A channel orders messages: from one rank to another, the n-th receive on a channel matches the
/// n-th send on it, with the same number of bytes (possibly beyond 2^31). Channels are independent.
///
/// Errors are one line with the peer and the library's message. After one, only `abandon` is
/// called.
class Transport {
public:
  /// A message in flight; 0 for none.
  using Request = uint64_t;

  virtual ~Transport() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// The host of a rank, for messages and for algorithms that use hosts.
  virtual const std::string &hostOf(int64_t rank) const = 0;

  /// A new channel between `ranks`, ascending, one of which is this one. Called by all of them, in
  /// the same order of their common channels.
  virtual Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) = 0;

  /// `data` belongs to the transport until the message is done. `peer` is a rank of the job,
  /// possibly this one.
  virtual Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                                 int64_t bytes) = 0;
  virtual Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data,
                                    int64_t bytes) = 0;
  /// Whether a message is done; its request is then invalid. Advances all messages.
  virtual Expected<bool> test(Request request) = 0;
  /// Waits until a message may be done, or about `microseconds`, whichever comes first. For idle
  /// callers.
  virtual void rest(int64_t microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  /// Aborts messages in flight, in bounded time, even with lost peers.
  virtual void abandon() = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_TRANSPORT_H
