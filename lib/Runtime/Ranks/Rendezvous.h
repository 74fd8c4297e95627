//===- Rendezvous.h - Where the processes of a job meet ---------*- C++ -*-===//
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

/// Where ranks meet, and the secret that they prove to each other.
struct MeetingPlace {
  /// "HOST PORT", where rank 0 listens, or "file:PATH", into which it writes where it listens, and
  /// which is removed when all have met.
  std::string address;
  std::string token; ///< empty: all ranks are on one host, and rank 0 listens on loopback
  std::string name = "TESSERA_RENDEZVOUS"; ///< who says `address`, for messages

  Reach reach() const { return token.empty() ? Reach::loopback : Reach::everywhere; }
  /// What jobAddress says; TESSERA_JOB_TOKEN, or the file that TESSERA_JOB_TOKEN_FILE names.
  static Expected<MeetingPlace> fromEnvironment();
  static Expected<std::string> tokenFromEnvironment();
};

/// Processes that give each other bytes, through rank 0, over TCP.
class Rendezvous {
public:
  /// Meets all others. Fails after `seconds`, naming the ranks that did not come.
  static Expected<std::unique_ptr<Rendezvous>> open(const LaunchedRank &rank, double seconds,
                                                    const MeetingPlace &place);
  /// At the place that the environment names.
  static Expected<std::unique_ptr<Rendezvous>> open(const LaunchedRank &rank, double seconds);
  /// How long ranks wait for each other: as long as `open` was told, or, since a step of one may be
  /// any longer than that of another, until one of their processes ends.
  enum class Wait { whileOpening, whileRunning };
  /// What each rank gave, by rank. Called by all ranks in the same order.
  Expected<std::vector<std::string>> allGather(const std::string &mine,
                                               Wait wait = Wait::whileOpening);
  /// What any rank failed at fails all of them, with its message: others would only see that it
  /// does not come.
  Status agree(const Status &mine, Wait wait);
  /// Gives all ranks the `size` bytes at `data` of rank `owner`. Fails where that rank gave another
  /// number of them.
  Status broadcast(int64_t owner, std::byte *data, int64_t size, Wait wait);

  /// This end's address on the way to rank 0; empty at rank 0.
  std::string ownAddress() const { return self.rank > 0 ? peers[0].address() : ""; }
  /// The host and port at which this rank reached rank 0; empty at rank 0.
  const std::string &rootAddress() const { return root; }
  const LaunchedRank &launched() const { return self; }

  /// Whether the processes that this one is connected to still run, or have left; does not wait.
  Status checkPeers() const;
  /// Tells the others that this rank is done: its end is no fault. Nothing may be gathered after it.
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
  /// Since when the name of rank 0's host does not resolve.
  std::optional<std::chrono::steady_clock::time_point> unknownSince;
  int64_t strangers = 0;     ///< that came with another token
  std::vector<Socket> peers; ///< rank 0: by rank; others: the connection to rank 0
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H
