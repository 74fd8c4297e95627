//===- MpiTransport.h - Messages through MPI --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_MPITRANSPORT_H
#define TESSERA_LIB_RUNTIME_MPI_MPITRANSPORT_H

#include "../Ranks/Transport.h"
#include "MpiLibrary.h"

#include <memory>

namespace tessera::runtime {

/// Messages through the MPI library of the launcher. A channel is a communicator; messages longer
/// than MPI's counts are sent in pieces.
class MpiTransport final : public Transport {
public:
  /// Initializes MPI if necessary, and exchanges the hosts of the ranks. All ranks must start
  /// within `seconds`.
  static Expected<std::unique_ptr<MpiTransport>> open(double seconds);
  /// The same for a process that expects to be rank `rank` of `size`.
  static Expected<std::unique_ptr<Transport>> openAs(int64_t rank, int64_t size, double seconds);
  ~MpiTransport() override;

  int64_t rank() const override { return library.rank; }
  int64_t size() const override { return library.size; }
  const std::string &hostOf(int64_t rank) const override { return hosts[rank]; }
  Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) override;
  Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                         int64_t bytes) override;
  Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data, int64_t bytes) override;
  Expected<bool> test(Request request) override;
  void abandon() override;

  /// The longest piece of a message; tests make it small.
  void setPiece(int64_t bytes) { piece = bytes; }

private:
  struct Channel {
    uint64_t communicator;
    std::vector<int64_t> ranks;
  };
  struct Message {
    bool send = false, used = false;
    int64_t peer = 0;
    struct Piece {
      uint64_t request;
      int bytes;
    };
    std::vector<Piece> pieces; ///< those in flight, the last one first
  };
  MpiTransport(MpiLibrary &library, double seconds) : library(library), seconds(seconds) {}
  Status learnHosts();
  Expected<Request> start(bool send, int64_t channel, int64_t peer, std::byte *data, int64_t bytes);
  std::string peerText(int64_t peer) const;

  MpiLibrary &library;
  const double seconds;
  int64_t piece = int64_t(1) << 30;
  std::vector<std::string> hosts;
  std::vector<Channel> channels;
  std::vector<Message> messages; ///< of request i + 1
  std::vector<size_t> unused;    ///< of `messages`
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_MPITRANSPORT_H
