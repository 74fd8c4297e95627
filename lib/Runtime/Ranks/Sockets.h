//===- Sockets.h - TCP between the processes of a job -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_SOCKETS_H
#define TESSERA_LIB_RUNTIME_RANKS_SOCKETS_H

#include "tessera/Runtime/Artifact/Status.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::runtime {

using Deadline = std::chrono::steady_clock::time_point;
Deadline after(double seconds);
/// For poll: -1 waits without a limit.
int millisecondsTo(Deadline deadline);

/// A file descriptor of a socket, closed on destruction.
class Socket {
public:
  explicit Socket(int descriptor = -1) : held(descriptor) {}
  Socket(Socket &&other) noexcept : held(other.held) { other.held = -1; }
  Socket &operator=(Socket &&other) noexcept {
    std::swap(held, other.held);
    return *this;
  }
  ~Socket();

  int descriptor() const { return held; }
  bool isOpen() const { return held >= 0; }
  /// Sends or receives everything by the deadline; false otherwise.
  bool sendAll(const void *data, size_t size, Deadline deadline) const;
  bool receiveAll(void *data, size_t size, Deadline deadline) const;
  /// The local port.
  int64_t port() const;
  /// The local address, numeric.
  std::string address() const;

private:
  int held;
};

/// The connections that a job accepts: from its host, or, with a token that all ranks prove, from
/// every host.
enum class Reach { loopback, everywhere };

/// Listens at a port, 0 for any; IPv6 and IPv4.
Expected<Socket> listenAt(int64_t port, Reach reach);
/// Waits for a connection; the socket is not open after the deadline.
Socket acceptOne(const Socket &listener, Deadline deadline);
/// Tries all addresses of a host once. With `loopback`, an address of this host means loopback;
/// fails with `isElsewhere` for another host.
struct Connecting {
  Socket socket;
  std::string failure;
  bool isElsewhere = false;
  bool isUnknown = false; ///< no host has this name
};
/// `seconds`: the limit per address; 0: that of the kernel.
Connecting connectOnce(const std::string &host, int64_t port, Reach reach, double seconds = 0);
/// The name of this host.
std::string hostName();
/// The addresses at which other hosts may reach this one, at most eight.
std::vector<std::string> ownAddresses();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_SOCKETS_H
