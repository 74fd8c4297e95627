//===- Rendezvous.h - Rendezvous of the processes of a job ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H
#define TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H

#include "LaunchedRank.h"
#include "Sockets.h"

#include <memory>
#include <vector>

namespace tessera::runtime {

/// The address of the rendezvous, and the secret that ranks prove to each other.
struct MeetingPlace {
  /// "HOST PORT", where rank 0 listens, or "file:PATH", into which it writes its address, and which
  /// is removed after the rendezvous.
  std::string address;
  std::string token; ///< empty: all ranks are on one host, and rank 0 listens on loopback
  std::string name = "TESSERA_RENDEZVOUS"; ///< the source of `address`, for messages

  Reach reach() const { return token.empty() ? Reach::loopback : Reach::everywhere; }
  /// From jobAddress, and TESSERA_JOB_TOKEN or the file TESSERA_JOB_TOKEN_FILE.
  static Expected<MeetingPlace> fromEnvironment();
  static Expected<std::string> tokenFromEnvironment();
};

/// Exchanges bytes between processes, through rank 0, over TCP.
class Rendezvous {
public:
  /// Meets all others. Fails after `seconds`, naming the missing ranks.
  static Expected<std::unique_ptr<Rendezvous>> open(const LaunchedRank &rank, double seconds,
                                                    const MeetingPlace &place);
  /// At the place of the environment.
  static Expected<std::unique_ptr<Rendezvous>> open(const LaunchedRank &rank, double seconds);
  /// How long ranks wait for each other: the limit of `open`, or, since steps of ranks may differ
  /// in length, until one of their processes ends.
  enum class Wait { whileOpening, whileRunning };
  /// The texts of all ranks, by rank. Called by all ranks in the same order.
  Expected<std::vector<std::string>> allGather(const std::string &mine,
                                               Wait wait = Wait::whileOpening);
  /// The failure of any rank fails all of them, with its message: otherwise others would only
  /// notice its absence.
  Status agree(const Status &mine, Wait wait);
  /// Broadcasts the `size` bytes at `data` of rank `owner`. Fails if that rank has another size.
  Status broadcast(int64_t owner, std::byte *data, int64_t size, Wait wait);

  /// The local address of the connection to rank 0; empty at rank 0.
  std::string ownAddress() const { return self.rank > 0 ? peers[0].address() : ""; }
  /// The host and port at which this rank reached rank 0; empty at rank 0.
  const std::string &rootAddress() const { return root; }
  const LaunchedRank &launched() const { return self; }

  /// Checks without waiting that connected processes are running, or have left.
  Status checkPeers() const;
  /// Tells the others that this rank is done, so that its end is not an error. No calls may follow.
  void leave();

private:
  Rendezvous(const LaunchedRank &rank, double seconds, const MeetingPlace &place)
      : self(rank), seconds(seconds), place(place) {}
  Status listenAndAccept();
  Status listen();
  Status acceptAll();
  Status admit(Socket peer);
  Status connect();
  Expected<bool> tryToConnect(const std::string &where, std::string &said);

  LaunchedRank self;
  double seconds;
  MeetingPlace place;
  std::string root;
  Socket listener;
  /// The time of the first failure to resolve the name of rank 0's host.
  std::optional<std::chrono::steady_clock::time_point> unknownSince;
  int64_t strangers = 0;     ///< connections with another token
  std::vector<Socket> peers; ///< rank 0: by rank; others: the connection to rank 0
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H
