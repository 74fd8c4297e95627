//===- MpiTransport.cpp - Messages through MPI ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiTransport.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace tessera::runtime {

constexpr size_t kHostBytes = 64;

Expected<std::unique_ptr<MpiTransport>> MpiTransport::open(double seconds) {
  auto library = MpiLibrary::get(seconds);
  if (!library)
    return library.status();
  std::unique_ptr<MpiTransport> made(new MpiTransport(**library, seconds));
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < made->size(); ++rank)
    all.push_back(rank);
  made->hosts.assign(all.size(), "");
  made->channels.push_back({made->library.world, std::move(all)});
  TESSERA_RETURN_IF_ERROR(made->learnHosts());
  return made;
}

Expected<std::unique_ptr<Transport>> MpiTransport::openAs(int64_t rank, int64_t size,
                                                          double seconds) {
  auto made = open(seconds);
  if (!made)
    return made.status();
  if ((*made)->rank() != rank || (*made)->size() != size)
    return Status::error("this is rank " + std::to_string(rank) + " of " + std::to_string(size) +
                         ", and for MPI rank " + std::to_string((*made)->rank()) + " of " +
                         std::to_string((*made)->size()) +
                         "; start the processes with MPI's launcher, and leave rank and size out");
  return std::unique_ptr<Transport>(std::move(*made));
}

MpiTransport::~MpiTransport() = default;

/// Every rank sends its host to every other, by messages, so that errors name missing ranks.
Status MpiTransport::learnHosts() {
  std::string names(kHostBytes * hosts.size(), '\0');
  char mine[kHostBytes] = {};
  (void)::gethostname(mine, kHostBytes - 1);
  std::vector<std::pair<int64_t, Request>> open;
  for (int64_t other = 0; other < size(); ++other) {
    auto *data = reinterpret_cast<std::byte *>(&names[kHostBytes * other]);
    auto received = receive(0, other, data, kHostBytes);
    if (!received)
      return received.status();
    open.emplace_back(other, *received);
    auto sent = send(0, other, reinterpret_cast<const std::byte *>(mine), kHostBytes);
    if (!sent)
      return sent.status();
    open.emplace_back(other, *sent);
  }
  auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!open.empty()) {
    auto [other, request] = open.back();
    auto done = test(request);
    if (!done)
      return done.status();
    if (*done) {
      open.pop_back();
      continue;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      abandon();
      return Status::error("rank " + std::to_string(rank()) + " waited " +
                           std::to_string(static_cast<int64_t>(seconds)) + " s for rank " +
                           std::to_string(other) + " to come");
    }
    std::this_thread::yield();
  }
  for (size_t i = 0; i < hosts.size(); ++i)
    hosts[i] = &names[kHostBytes * i];
  return {};
}

std::string MpiTransport::peerText(int64_t peer) const {
  const std::string &host = hosts[peer];
  return "rank " + std::to_string(peer) + (host.empty() ? "" : " (" + host + ")");
}

Expected<int64_t> MpiTransport::openChannel(const std::vector<int64_t> &ranks) {
  std::vector<int> members(ranks.begin(), ranks.end());
  Channel channel{0, ranks};
  // MPI has no limit here, and no other way to create a communicator.
  AlarmTimer alarm(seconds, "rank " + std::to_string(rank()) + " waited " +
                                std::to_string(static_cast<int64_t>(seconds)) +
                                " s for others to open a channel of " +
                                std::to_string(ranks.size()) + " ranks, from " +
                                peerText(ranks.front()) + " to " + peerText(ranks.back()));
  TESSERA_RETURN_IF_ERROR(
      library.error(library.shim->makeCommunicator(members.data(), static_cast<int>(members.size()),
                                                   &channel.communicator),
                    "a communicator of " + std::to_string(ranks.size()) + " ranks"));
  channels.push_back(std::move(channel));
  return static_cast<int64_t>(channels.size()) - 1;
}

Expected<Transport::Request> MpiTransport::start(bool send, int64_t channel, int64_t peer,
                                                 std::byte *data, int64_t bytes) {
  const Channel &on = channels[channel];
  auto member = std::lower_bound(on.ranks.begin(), on.ranks.end(), peer);
  if (member == on.ranks.end() || *member != peer)
    return Status::error(peerText(peer) + " is not on channel " + std::to_string(channel));
  int at = static_cast<int>(member - on.ranks.begin());
  size_t index = messages.size();
  if (unused.empty()) {
    messages.emplace_back();
  } else {
    index = unused.back();
    unused.pop_back();
  }
  Message &message = messages[index];
  message.send = send;
  message.used = true;
  message.peer = peer;
  message.pieces.clear();
  // Empty messages are not sent, on both sides.
  for (int64_t begin = 0; begin < bytes; begin += piece) {
    int count = static_cast<int>(std::min(piece, bytes - begin));
    Message::Piece made{0, count};
    int code = send
                   ? library.shim->send(on.communicator, at, data + begin, count, &made.request)
                   : library.shim->receive(on.communicator, at, data + begin, count, &made.request);
    TESSERA_RETURN_IF_ERROR(
        library.error(code, (send ? "a message to " : "a message from ") + peerText(peer)));
    message.pieces.push_back(made);
  }
  std::reverse(message.pieces.begin(), message.pieces.end());
  return static_cast<Request>(index + 1);
}

Expected<Transport::Request> MpiTransport::send(int64_t channel, int64_t peer,
                                                const std::byte *data, int64_t bytes) {
  return start(true, channel, peer, const_cast<std::byte *>(data), bytes);
}
Expected<Transport::Request> MpiTransport::receive(int64_t channel, int64_t peer, std::byte *data,
                                                   int64_t bytes) {
  return start(false, channel, peer, data, bytes);
}

Expected<bool> MpiTransport::test(Request request) {
  Message &message = messages[request - 1];
  while (!message.pieces.empty()) {
    Message::Piece &next = message.pieces.back();
    int done = 0, bytes = 0;
    TESSERA_RETURN_IF_ERROR(library.error(library.shim->test(&next.request, &done, &bytes),
                                          (message.send ? "a message to " : "a message from ") +
                                              peerText(message.peer)));
    if (!done)
      return false;
    if (!message.send && bytes != next.bytes)
      return Status::error(peerText(message.peer) + " has sent " + std::to_string(bytes) +
                           " bytes where " + std::to_string(next.bytes) + " were expected");
    message.pieces.pop_back();
  }
  message.used = false;
  unused.push_back(request - 1);
  return true;
}

void MpiTransport::abandon() {
  library.giveUp();
  for (Message &message : messages) {
    if (message.used && !message.send)
      for (Message::Piece &each : message.pieces)
        library.shim->cancel(&each.request);
    message.pieces.clear();
  }
}

} // namespace tessera::runtime
