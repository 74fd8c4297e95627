//===- TcpTransport.cpp - Ranks connected by sockets ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TcpTransport.h"

#include "TcpMesh.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unordered_map>

namespace tessera::runtime {

namespace {

// Flow control. A message is sent at once if the peer has at most kWindow bytes of unreceived
// messages before it; otherwise it is announced, and sent when its receive is posted. Unexpected
// messages therefore take at most kWindow bytes of memory per peer, and a waiting message does not
// block those on other channels.

/// The content after a head: the message (`data`); nothing, with the `number` of the announced one;
/// nothing, with the number of one whose receive is posted; the announced message; nothing, with
/// the bytes taken since the last credit.
enum class Kind : int32_t { data, announce, grant, granted, credit };
/// Precedes each message.
struct Head {
  int64_t channel, bytes;
  Kind kind = Kind::data;
  int32_t number = 0;

  int64_t payload() const { return kind == Kind::data || kind == Kind::granted ? bytes : 0; }
};
constexpr int64_t kMostBytes = int64_t(1) << 46;
constexpr int64_t kWindow = int64_t(1) << 26, kCredit = kWindow / 4;

struct Sending {
  Transport::Request request;
  Head head;
  const std::byte *data;
  int64_t sent; ///< bytes of both
};
/// A message that arrived before its receive, or is announced.
struct UnexpectedMessage {
  std::vector<std::byte> data;
  int64_t bytes = 0;
  int32_t announced = -1; ///< its number; -1: it has arrived
};
struct Receiving {
  Transport::Request request;
  std::byte *data;
  int64_t bytes;
};
struct Peer {
  Socket socket;
  std::string failure; ///< the connection has failed
  std::deque<Sending> outgoing;
  int64_t untaken = 0, taken = 0; ///< bytes not taken by the peer; taken bytes not credited yet
  int32_t announcements = 0;
  std::map<int32_t, Sending> announced; ///< to the peer
  std::map<int32_t, Receiving> granted; ///< by it: messages that will arrive
  // The incoming message.
  Head head{};
  int64_t read = 0; ///< bytes of it and its head
  std::byte *target = nullptr;
  Transport::Request request = 0; ///< 0: no receive was posted at its start
  std::vector<std::byte> kept;
};

class TcpTransport final : public Transport {
public:
  TcpTransport(int64_t rank, TcpMesh mesh) : self(rank), hosts(std::move(mesh.hosts)) {
    for (Socket &socket : mesh.sockets) {
      peers.emplace_back();
      peers.back().socket = std::move(socket);
    }
  }
  ~TcpTransport() override { abandon(); }

  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(hosts.size()); }
  const std::string &hostOf(int64_t rank) const override { return hosts[rank]; }

  Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) override;
  Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                         int64_t bytes) override;
  Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data, int64_t bytes) override;
  Expected<bool> test(Request request) override;
  void rest(int64_t microseconds) override { wait(microseconds); }
  void abandon() override;

private:
  using Key = std::pair<int64_t, int64_t>; ///< channel, peer
  /// The state of a message, or its error.
  struct State {
    int64_t peer;
    bool isDone = false;
    std::string failure;
  };

  void wait(int64_t microseconds);
  void write(Peer &peer);
  void read(int64_t from);
  bool readSome(int64_t from);
  void begin(int64_t from);
  void finish(int64_t from);
  std::optional<Receiving> takeReceive(int64_t from);
  void deliver(const std::vector<std::byte> &message, int64_t from, const Receiving &receiving);
  void push(Peer &peer, const Sending &sending);
  void tell(int64_t rank, Kind kind, int64_t bytes, int32_t number);
  void take(int64_t from, int64_t bytes);
  void accept(int64_t from, const UnexpectedMessage &announced, const Receiving &receiving);
  void fail(int64_t rank, const std::string &why);
  void mismatch(State &state, int64_t from, int64_t sent, int64_t received) const;

  const int64_t self;
  const std::vector<std::string> hosts;
  std::deque<Peer> peers; ///< by rank; this one has no socket
  std::map<Key, std::deque<Receiving>> receives;
  std::map<Key, std::deque<UnexpectedMessage>> early;
  std::map<std::vector<int64_t>, int64_t> opened;
  std::unordered_map<Request, State> underWay;
  Request last = 0;
};

} // namespace

/// A number equal on all members, and distinct for other groups.
Expected<int64_t> TcpTransport::openChannel(const std::vector<int64_t> &ranks) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&](int64_t value) {
    for (int byte = 0; byte < 64; byte += 8)
      hash = (hash ^ (static_cast<uint64_t>(value) >> byte & 0xff)) * 0x100000001b3u;
  };
  mix(opened[ranks]++);
  for (int64_t rank : ranks)
    mix(rank);
  return static_cast<int64_t>(hash >> 1);
}

Expected<Transport::Request> TcpTransport::send(int64_t channel, int64_t rank,
                                                const std::byte *data, int64_t bytes) {
  Peer &peer = peers[rank];
  if (!peer.failure.empty())
    return Status::error(peer.failure);
  Request request = ++last;
  underWay[request] = {rank, rank == self, {}};
  if (rank != self) {
    if (peer.untaken + bytes <= kWindow) {
      peer.untaken += bytes;
      push(peer, {request, {channel, bytes}, data, 0});
      return request;
    }
    int32_t number = peer.announcements++;
    peer.announced[number] = {request, {channel, bytes, Kind::granted, number}, data, 0};
    push(peer, {0, {channel, bytes, Kind::announce, number}, nullptr, 0});
    return request;
  }
  peer.head = {channel, bytes};
  begin(self);
  if (bytes > 0)
    std::memcpy(peer.target, data, static_cast<size_t>(bytes));
  finish(self);
  return request;
}

Expected<Transport::Request> TcpTransport::receive(int64_t channel, int64_t rank, std::byte *data,
                                                   int64_t bytes) {
  Request request = ++last;
  underWay[request] = {rank, false, {}};
  auto kept = early.find({channel, rank});
  if (kept == early.end()) {
    if (!peers[rank].failure.empty())
      return Status::error(peers[rank].failure);
    receives[{channel, rank}].push_back({request, data, bytes});
    return request;
  }
  UnexpectedMessage first = std::move(kept->second.front());
  kept->second.pop_front();
  if (kept->second.empty())
    early.erase(kept);
  if (first.announced >= 0)
    accept(rank, first, {request, data, bytes});
  else
    deliver(first.data, rank, {request, data, bytes});
  return request;
}

void TcpTransport::push(Peer &peer, const Sending &sending) {
  peer.outgoing.push_back(sending);
  if (peer.outgoing.size() == 1)
    write(peer);
}

void TcpTransport::tell(int64_t rank, Kind kind, int64_t bytes, int32_t number) {
  if (peers[rank].failure.empty())
    push(peers[rank], {0, {0, bytes, kind, number}, nullptr, 0});
}

/// Credits a message that was sent at once and has been received.
void TcpTransport::take(int64_t from, int64_t bytes) {
  Peer &peer = peers[from];
  peer.taken += bytes;
  if (from == self || peer.taken < kCredit)
    return;
  tell(from, Kind::credit, peer.taken, 0);
  peer.taken = 0;
}

/// Grants an announced message whose receive is posted.
void TcpTransport::accept(int64_t from, const UnexpectedMessage &announced,
                          const Receiving &receiving) {
  Receiving target = receiving;
  if (announced.bytes != receiving.bytes) {
    mismatch(underWay.at(receiving.request), from, announced.bytes, receiving.bytes);
    target = {0, nullptr, 0}; // dropped when it arrives
  }
  peers[from].granted[announced.announced] = target;
  tell(from, Kind::grant, 0, announced.announced);
}

Expected<bool> TcpTransport::test(Request request) {
  auto found = underWay.find(request);
  assert(found != underWay.end() && "the message is under way");
  if (!found->second.isDone && found->second.failure.empty())
    wait(0);
  if (!found->second.failure.empty())
    return Status::error(found->second.failure);
  if (!found->second.isDone)
    return false;
  underWay.erase(found);
  return true;
}

/// Waits for readable sockets, and writable ones with pending data, and processes them.
void TcpTransport::wait(int64_t microseconds) {
  std::vector<pollfd> polled;
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < size(); ++rank)
    if (peers[rank].socket.isOpen() && peers[rank].failure.empty()) {
      short events = static_cast<short>(POLLIN | (peers[rank].outgoing.empty() ? 0 : POLLOUT));
      polled.push_back({peers[rank].socket.descriptor(), events, 0});
      ranks.push_back(rank);
    }
  timespec time{microseconds / 1000000, microseconds % 1000000 * 1000};
  if (::ppoll(polled.data(), polled.size(), &time, nullptr) <= 0)
    return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents & POLLOUT)
      write(peers[ranks[i]]);
    if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
      read(ranks[i]);
  }
}

void TcpTransport::write(Peer &peer) {
  while (!peer.outgoing.empty()) {
    Sending &now = peer.outgoing.front();
    constexpr auto kHead = static_cast<int64_t>(sizeof(Head));
    iovec parts[2];
    int count = 0;
    if (now.sent < kHead)
      parts[count++] = {reinterpret_cast<char *>(&now.head) + now.sent,
                        static_cast<size_t>(kHead - now.sent)};
    int64_t done = std::max<int64_t>(now.sent - kHead, 0);
    if (done < now.head.payload())
      parts[count++] = {const_cast<std::byte *>(now.data) + done,
                        static_cast<size_t>(now.head.payload() - done)};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    ssize_t sent = ::sendmsg(peer.socket.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
      return; // full; reading detects the end
    now.sent += sent;
    if (now.sent < kHead + now.head.payload())
      return;
    if (now.request != 0)
      underWay.at(now.request).isDone = true;
    peer.outgoing.pop_front();
  }
}

void TcpTransport::read(int64_t from) {
  // Others get their turns.
  for (int piece = 0; piece < 16 && peers[from].failure.empty(); ++piece)
    if (!readSome(from))
      return;
}

bool TcpTransport::readSome(int64_t from) {
  Peer &peer = peers[from];
  constexpr auto kHead = static_cast<int64_t>(sizeof(Head));
  bool inHead = peer.read < kHead;
  char *at = inHead ? reinterpret_cast<char *>(&peer.head) + peer.read
                    : reinterpret_cast<char *>(peer.target) + (peer.read - kHead);
  int64_t left = inHead ? kHead - peer.read : peer.head.payload() + kHead - peer.read;
  ssize_t count = ::recv(peer.socket.descriptor(), at, static_cast<size_t>(left), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (count <= 0) {
    // The connection of a process that ends with unread messages is reset.
    bool hasEnded = count == 0 || errno == ECONNRESET;
    fail(from, hasEnded ? "has ended" : std::string("is lost: ") + std::strerror(errno));
    return false;
  }
  peer.read += count;
  if (inHead && peer.read == kHead) {
    if (peer.head.bytes < 0 || peer.head.bytes > kMostBytes || peer.head.kind < Kind::data ||
        peer.head.kind > Kind::credit) {
      fail(from, "sent an invalid message");
      return false;
    }
    begin(from);
  }
  if (peer.read == kHead + peer.head.payload() && peer.failure.empty())
    finish(from);
  return true;
}

/// Chooses the destination of the message after its head has arrived.
void TcpTransport::begin(int64_t from) {
  Peer &peer = peers[from];
  peer.request = 0;
  std::optional<Receiving> receiving;
  if (peer.head.kind == Kind::granted) {
    auto found = peer.granted.find(peer.head.number);
    if (found == peer.granted.end())
      return fail(from, "sent an invalid message");
    receiving = found->second;
    peer.granted.erase(found);
    if (receiving->request == 0)
      receiving.reset();
  } else if (peer.head.kind == Kind::data) {
    receiving = takeReceive(from);
  } else {
    return;
  }
  if (receiving) {
    peer.request = receiving->request;
    peer.target = receiving->data;
    if (receiving->bytes == peer.head.bytes)
      return;
    mismatch(underWay.at(receiving->request), from, peer.head.bytes, receiving->bytes);
  }
  peer.kept.resize(static_cast<size_t>(peer.head.bytes));
  peer.target = peer.kept.data();
}

void TcpTransport::finish(int64_t from) {
  Peer &peer = peers[from];
  peer.read = 0;
  Request request = peer.request;
  std::vector<std::byte> kept = std::move(peer.kept);
  peer.request = 0;
  peer.kept = {};
  switch (peer.head.kind) {
  case Kind::data:
    break;
  case Kind::granted:
    if (request != 0)
      underWay.at(request).isDone = true;
    return;
  case Kind::announce: {
    UnexpectedMessage announced{{}, peer.head.bytes, peer.head.number};
    if (std::optional<Receiving> receiving = takeReceive(from))
      accept(from, announced, *receiving);
    else
      early[{peer.head.channel, from}].push_back(std::move(announced));
    return;
  }
  case Kind::grant: {
    auto found = peer.announced.find(peer.head.number);
    if (found == peer.announced.end())
      return fail(from, "sent an invalid message");
    Sending sending = found->second;
    peer.announced.erase(found);
    return push(peer, sending);
  }
  case Kind::credit:
    peer.untaken -= peer.head.bytes;
    return;
  }
  if (request != 0) {
    underWay.at(request).isDone = true;
    return take(from, peer.head.bytes);
  }
  // Its receive may have been posted after its head.
  std::optional<Receiving> receiving = takeReceive(from);
  if (!receiving)
    early[{peer.head.channel, from}].push_back({std::move(kept), peer.head.bytes, -1});
  else
    deliver(kept, from, *receiving);
}

std::optional<Receiving> TcpTransport::takeReceive(int64_t from) {
  auto found = receives.find({peers[from].head.channel, from});
  if (found == receives.end())
    return std::nullopt;
  Receiving receiving = found->second.front();
  found->second.pop_front();
  if (found->second.empty())
    receives.erase(found);
  return receiving;
}

void TcpTransport::deliver(const std::vector<std::byte> &message, int64_t from,
                           const Receiving &receiving) {
  State &state = underWay.at(receiving.request);
  auto bytes = static_cast<int64_t>(message.size());
  if (bytes != receiving.bytes)
    mismatch(state, from, bytes, receiving.bytes);
  else if (bytes > 0)
    std::memcpy(receiving.data, message.data(), message.size());
  state.isDone = true;
  take(from, bytes);
}

void TcpTransport::mismatch(State &state, int64_t from, int64_t sent, int64_t received) const {
  state.failure = "rank " + std::to_string(from) + " sends " + std::to_string(sent) +
                  " bytes, rank " + std::to_string(self) + " receives " + std::to_string(received);
}

void TcpTransport::fail(int64_t rank, const std::string &why) {
  Peer &peer = peers[rank];
  peer.failure = "rank " + std::to_string(rank) + " (" + hosts[rank] + ") " + why;
  for (auto &[request, state] : underWay)
    if (state.peer == rank && !state.isDone && state.failure.empty())
      state.failure = peer.failure;
}

void TcpTransport::abandon() {
  for (Peer &peer : peers) {
    if (!peer.socket.isOpen())
      continue;
    // With unread data the kernel would drop data that peers have not read yet.
    ::shutdown(peer.socket.descriptor(), SHUT_WR);
    char rest[4096];
    while (::recv(peer.socket.descriptor(), rest, sizeof(rest), MSG_DONTWAIT) > 0)
      ;
    peer.socket = Socket();
    peer.failure = "this rank has left the job";
  }
  underWay.clear();
  receives.clear();
}

Expected<std::unique_ptr<Transport>> openTcpTransport(const LaunchedRank &rank, double seconds,
                                                      const MeetingPlace &place) {
  auto mesh = connectMesh(rank, seconds, place);
  if (!mesh)
    return mesh.status();
  return std::unique_ptr<Transport>(new TcpTransport(rank.rank, std::move(*mesh)));
}

} // namespace tessera::runtime
