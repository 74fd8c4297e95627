//===- TcpMesh.cpp - Connections between all pairs of ranks ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TcpMesh.h"

#include "Hmac.h"

#include <cstring>
#include <sstream>

namespace tessera::runtime {

namespace {
/// The first message of the connecting end, and the answer, with its own rank, of the other one.
struct Greeting {
  int64_t rank;
  Digest proof;
};
struct Place {
  std::string host, address;
  int64_t port = 0;
};
} // namespace

static Greeting greetingOf(const std::string &key, int64_t rank, int64_t to) {
  return {rank, hmac(key, "mesh " + std::to_string(rank) + " " + std::to_string(to))};
}

static bool greet(const Socket &socket, const std::string &key, int64_t rank, int64_t to,
                  Deadline deadline) {
  Greeting mine = greetingOf(key, rank, to), theirs{};
  return socket.sendAll(&mine, sizeof(mine), deadline) &&
         socket.receiveAll(&theirs, sizeof(theirs), deadline) && theirs.rank == to &&
         areEqual(theirs.proof, greetingOf(key, to, rank).proof);
}

/// "host address port secret" of each rank. The address is the local one of the connection to rank
/// 0; that of rank 0 is the one at which others have reached it.
static Expected<std::vector<Place>> exchangePlaces(Rendezvous &rendezvous, int64_t port,
                                                   std::string &secret) {
  const LaunchedRank &self = rendezvous.launched();
  std::string mine = hostName() + " " + (self.rank > 0 ? rendezvous.ownAddress() : "-") + " " +
                     std::to_string(port) + " ";
  for (char byte : self.rank == 0 ? randomBytes(16) : std::string()) {
    constexpr char kHex[] = "0123456789abcdef";
    mine += kHex[byte >> 4 & 15];
    mine += kHex[byte & 15];
  }
  auto all = rendezvous.allGather(mine);
  if (!all)
    return all.status();
  std::vector<Place> places;
  for (const std::string &text : *all) {
    Place place;
    std::string random;
    std::istringstream(text) >> place.host >> place.address >> place.port >> random;
    if (places.empty()) {
      place.address = rendezvous.rootAddress();
      secret += random;
    }
    places.push_back(place);
  }
  return places;
}

Expected<TcpMesh> connectMesh(const LaunchedRank &rank, double seconds, const MeetingPlace &place) {
  TcpMesh mesh;
  if (rank.size == 1) {
    mesh.hosts = {hostName()};
    mesh.sockets.resize(1);
    return mesh;
  }
  Deadline deadline = after(seconds);
  auto rendezvous = Rendezvous::open(rank, seconds, place);
  if (!rendezvous)
    return rendezvous.status();
  auto listener = listenAt(0, place.reach());
  if (!listener)
    return listener.status().in("rank " + std::to_string(rank.rank) + " cannot listen");
  std::string key = place.token;
  auto places = exchangePlaces(**rendezvous, listener->port(), key);
  if (!places)
    return places.status();
  for (const Place &each : *places)
    mesh.hosts.push_back(each.host);
  mesh.sockets.resize(static_cast<size_t>(rank.size));
  auto notReached = [&](int64_t other, const std::string &why) {
    return Status::error("rank " + std::to_string(rank.rank) + " does not reach rank " +
                         std::to_string(other) + " (" + mesh.hosts[other] + ")" + why);
  };
  for (int64_t other = 0; other < rank.rank; ++other) {
    const Place &there = (*places)[other];
    Connecting reached = connectOnce(there.address, there.port, place.reach());
    if (!reached.socket.isOpen() || !greet(reached.socket, key, rank.rank, other, deadline))
      return notReached(other, " at " + there.address + ": " + reached.failure);
    mesh.sockets[other] = std::move(reached.socket);
  }
  for (int64_t missing = rank.size - 1 - rank.rank; missing > 0;) {
    Socket peer = acceptOne(*listener, deadline);
    Greeting theirs{};
    if (!peer.isOpen() && millisecondsTo(deadline) == 0)
      for (int64_t other = rank.rank + 1; other < rank.size; ++other)
        if (!mesh.sockets[other].isOpen())
          return notReached(other, "");
    // Foreign connections are closed and ignored.
    if (!peer.isOpen() || !peer.receiveAll(&theirs, sizeof(theirs), std::min(deadline, after(5))) ||
        theirs.rank <= rank.rank || theirs.rank >= rank.size ||
        mesh.sockets[theirs.rank].isOpen() ||
        !areEqual(theirs.proof, greetingOf(key, theirs.rank, rank.rank).proof))
      continue;
    Greeting mine = greetingOf(key, rank.rank, theirs.rank);
    if (!peer.sendAll(&mine, sizeof(mine), deadline))
      continue;
    mesh.sockets[theirs.rank] = std::move(peer);
    --missing;
  }
  return mesh;
}

} // namespace tessera::runtime
