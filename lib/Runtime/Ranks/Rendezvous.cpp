//===- Rendezvous.cpp - Rendezvous of the processes of a job --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "Hmac.h"
#include "tessera/Runtime/Artifact/Bytes.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace tessera::runtime {

/// The first message of a rank: its job and rank.
struct Hello {
  char magic[8];
  int64_t rank, size;
  char nonce[16];
  Digest proof; ///< of the token, for the nonce that rank 0 has sent
};
constexpr char kMagic[9] = "TESSERA2";
constexpr std::chrono::seconds kMostUnknown(3); ///< until a name that does not resolve is an error
constexpr double kHelloSeconds = 5; ///< a silent connection blocks for at most this long
/// The start of a rendezvous file; host and port follow.
constexpr char kFileMark[] = "tessera-rendezvous ";
constexpr uint64_t kMaxBytes = uint64_t(1) << 34;

static bool sendText(const Socket &socket, const std::string &text, Deadline deadline) {
  uint64_t size = text.size();
  return socket.sendAll(&size, sizeof(size), deadline) &&
         socket.sendAll(text.data(), text.size(), deadline);
}
static bool receiveText(const Socket &socket, std::string &text, Deadline deadline,
                        uint64_t most = kMaxBytes) {
  uint64_t size = 0;
  if (!socket.receiveAll(&size, sizeof(size), deadline) || size > most)
    return false;
  text.resize(size);
  return socket.receiveAll(text.data(), size, deadline);
}

Expected<std::string> MeetingPlace::tokenFromEnvironment() {
  std::string token;
  const char *path = std::getenv("TESSERA_JOB_TOKEN_FILE");
  if (const char *text = std::getenv("TESSERA_JOB_TOKEN")) {
    token = text;
  } else if (path) {
    auto bytes = readFile(path);
    if (!bytes)
      return bytes.status().in("TESSERA_JOB_TOKEN_FILE");
    token.assign(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  } else {
    return token;
  }
  constexpr const char *kSpace = " \t\r\n";
  size_t begin = token.find_first_not_of(kSpace), end = token.find_last_not_of(kSpace);
  token = begin == std::string::npos ? "" : token.substr(begin, end - begin + 1);
  if (token.size() < 16)
    return Status::error("the job token has " + std::to_string(token.size()) +
                         " bytes; a token has at least 16, as of: openssl rand -hex 32");
  return token;
}

Expected<MeetingPlace> MeetingPlace::fromEnvironment() {
  MeetingPlace place;
  auto address = jobAddress();
  if (!address)
    return address.status();
  auto token = tokenFromEnvironment();
  if (!token)
    return token.status();
  place.address = *address;
  place.token = *token;
  return place;
}

Expected<std::unique_ptr<Rendezvous>> Rendezvous::open(const LaunchedRank &rank, double seconds) {
  if (rank.size == 1)
    return open(rank, seconds, {});
  auto place = MeetingPlace::fromEnvironment();
  if (!place)
    return place.status();
  return open(rank, seconds, *place);
}

Expected<std::unique_ptr<Rendezvous>> Rendezvous::open(const LaunchedRank &rank, double seconds,
                                                       const MeetingPlace &place) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(rank, seconds, place));
  if (rank.size > 1)
    TESSERA_RETURN_IF_ERROR(rank.rank == 0 ? made->listenAndAccept() : made->connect());
  return made;
}

/// The path of "file:PATH", empty for an address.
static std::string fileOf(const std::string &address) {
  return address.rfind("file:", 0) == 0 ? address.substr(5) : "";
}

/// "host port" from a file; empty until rank 0 has written it.
static std::string placeIn(const std::string &path) {
  auto bytes = readFile(path);
  std::string text =
      bytes ? std::string(reinterpret_cast<const char *>(bytes->data()), bytes->size()) : "";
  size_t mark = std::strlen(kFileMark);
  return text.compare(0, mark, kFileMark) == 0 ? text.substr(mark) : "";
}

/// Rank 0 writes its address; a file with other contents is not overwritten.
static Status writePlace(const std::string &path, const std::string &place,
                         const std::string &name) {
  auto there = readFile(path);
  if (there && !there->empty() && placeIn(path).empty())
    return Status::error(
        name + " names '" + path +
        "', which exists and is not a rendezvous file; name a file that does not exist");
  return writeFile(path, kFileMark + place);
}

Status Rendezvous::listenAndAccept() {
  TESSERA_RETURN_IF_ERROR(listen());
  Status met = acceptAll();
  listener = Socket();
  if (std::string path = fileOf(place.address); !path.empty())
    (void)::unlink(path.c_str()); // all have read it, or none should
  return met;
}

Status Rendezvous::listen() {
  std::string path = fileOf(place.address);
  int64_t port = 0;
  if (path.empty())
    port = std::atoll(place.address.c_str() + place.address.find(' '));
  auto listening = listenAt(port, place.reach());
  if (!listening)
    return listening.status().in("rank 0 cannot listen for the others");
  listener = std::move(*listening);
  if (path.empty())
    return {};
  return writePlace(path, hostName() + " " + std::to_string(listener.port()), place.name);
}

Status Rendezvous::acceptAll() {
  for (int64_t rank = 0; rank < self.size; ++rank)
    peers.emplace_back();
  Deadline deadline = after(seconds);
  while (true) {
    std::string absent;
    for (int64_t rank = 1; rank < self.size; ++rank)
      if (!peers[rank].isOpen())
        absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
    if (absent.empty())
      return {};
    Socket peer = acceptOne(listener, deadline);
    if (peer.isOpen())
      TESSERA_RETURN_IF_ERROR(admit(std::move(peer)));
    else if (millisecondsTo(deadline) == 0)
      return Status::error("waited " + std::to_string(static_cast<int>(seconds)) + " s for ranks " +
                           absent + " of " + std::to_string(self.size) +
                           (strangers == 0 ? ""
                                           : "; processes with another job token were rejected; "
                                             "give all ranks the same TESSERA_JOB_TOKEN"));
  }
}

/// The text that both ends sign.
static std::string signedText(const char *who, const std::string &nonce, const Hello &hello) {
  return who + nonce + std::string(hello.nonce, sizeof(hello.nonce)) + std::to_string(hello.rank) +
         " " + std::to_string(hello.size);
}

/// Rank 0 sends a nonce, the rank signs it and sends its own, rank 0 signs that. Foreign
/// connections are closed and ignored.
Status Rendezvous::admit(Socket peer) {
  Deadline deadline = after(std::min(seconds, kHelloSeconds));
  std::string nonce = randomBytes(sizeof(Hello::nonce));
  Hello hello{};
  if (!peer.sendAll(nonce.data(), nonce.size(), deadline) ||
      !peer.receiveAll(&hello, sizeof(hello), deadline) ||
      std::memcmp(hello.magic, kMagic, 8) != 0 || hello.rank <= 0)
    return {};
  std::string refusal;
  if (!areEqual(hello.proof, hmac(place.token, signedText("rank", nonce, hello))))
    refusal = "it has another job token; give all ranks the same TESSERA_JOB_TOKEN", ++strangers;
  else if (hello.size != self.size)
    refusal = "rank " + std::to_string(hello.rank) + " expects " + std::to_string(hello.size) +
              " ranks, rank 0 " + std::to_string(self.size);
  else if (hello.rank >= self.size || peers[hello.rank].isOpen())
    refusal = "rank " + std::to_string(hello.rank) + " has already joined";
  Digest proof = hmac(place.token, signedText("root", nonce, hello));
  if (!peer.sendAll(proof.data(), proof.size(), deadline) || !sendText(peer, refusal, deadline))
    return {};
  if (refusal.empty())
    peers[hello.rank] = std::move(peer);
  else if (hello.size != self.size && hello.size > 0)
    return Status::error(refusal);
  return {};
}

/// True when connected, false if rank 0 is not listening yet; an error if it never will be.
Expected<bool> Rendezvous::tryToConnect(const std::string &where, std::string &said) {
  size_t space = where.find(' ');
  if (space == std::string::npos)
    return false;
  std::string host = where.substr(0, space);
  Connecting reached = connectOnce(host, std::atoll(&where[space + 1]), place.reach());
  if (reached.isElsewhere)
    return Status::error("rank 0 is at '" + host + "', which is another host than '" + hostName() +
                         "'; ranks of several hosts need a job token: TESSERA_JOB_TOKEN or "
                         "TESSERA_JOB_TOKEN_FILE, the same on all of them");
  said = reached.failure;
  // A new host name, such as that of a pod, may take a moment to resolve.
  if (!reached.isUnknown)
    unknownSince = {};
  else if (!unknownSince)
    unknownSince = std::chrono::steady_clock::now();
  else if (std::chrono::steady_clock::now() - *unknownSince > kMostUnknown)
    return Status::error("rank " + std::to_string(self.rank) + " (" + hostName() +
                         ") does not find rank 0: " + said +
                         "; name a host of this network or its address");
  if (!reached.socket.isOpen())
    return false;
  Deadline deadline = after(std::min(seconds, kHelloSeconds));
  std::string nonce(sizeof(Hello::nonce), ' '), mine = randomBytes(sizeof(Hello::nonce)), refusal;
  Hello hello{{}, self.rank, self.size, {}, {}};
  std::memcpy(hello.magic, kMagic, 8);
  std::memcpy(hello.nonce, mine.data(), mine.size());
  Digest proof;
  said = "it did not answer";
  if (!reached.socket.receiveAll(nonce.data(), nonce.size(), deadline))
    return false;
  hello.proof = hmac(place.token, signedText("rank", nonce, hello));
  if (!reached.socket.sendAll(&hello, sizeof(hello), deadline) ||
      !reached.socket.receiveAll(proof.data(), proof.size(), deadline) ||
      !receiveText(reached.socket, refusal, deadline, 1 << 10))
    return false;
  if (!refusal.empty())
    return Status::error("rank 0 refuses rank " + std::to_string(self.rank) + ": " + refusal);
  if (!areEqual(proof, hmac(place.token, signedText("root", nonce, hello))))
    return Status::error("rank 0 at " + where + " has another job token");
  root = host;
  peers.push_back(std::move(reached.socket));
  return true;
}

Status Rendezvous::connect() {
  std::string path = fileOf(place.address);
  Deadline deadline = after(seconds);
  std::string said = "the file does not exist";
  do {
    auto met = tryToConnect(path.empty() ? place.address : placeIn(path), said);
    if (!met)
      return met.status();
    if (*met)
      return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (millisecondsTo(deadline) > 0);
  return Status::error("rank " + std::to_string(self.rank) + " waited " +
                       std::to_string(static_cast<int>(seconds)) + " s for rank 0 at " +
                       place.address + ": " + said);
}

Status Rendezvous::checkPeers() const {
  for (size_t i = 0; i < peers.size(); ++i) {
    char byte;
    if (peers[i].isOpen() && ::recv(peers[i].descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
      return Status::error("rank " + std::to_string(self.rank > 0 ? 0 : i) + " of " +
                           std::to_string(self.size) + " has ended");
  }
  return {};
}

/// A byte that is never read: checkPeers finds it instead of the end, and no text is as short.
void Rendezvous::leave() {
  for (const Socket &peer : peers)
    if (peer.isOpen())
      (void)::send(peer.descriptor(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Expected<std::vector<std::string>> Rendezvous::allGather(const std::string &mine, Wait wait) {
  std::vector<std::string> all(static_cast<size_t>(self.size));
  all[self.rank] = mine;
  Deadline deadline = wait == Wait::whileOpening ? after(seconds) : Deadline::max();
  auto lost = [&](int64_t rank) {
    return Status::error("rank " + std::to_string(rank) + " does not answer rank " +
                         std::to_string(self.rank) + "; it has ended" +
                         (wait == Wait::whileOpening ? ", or is stuck" : ""));
  };
  if (self.rank > 0) {
    if (!sendText(peers[0], mine, deadline))
      return lost(0);
    for (std::string &each : all)
      if (!receiveText(peers[0], each, deadline))
        return lost(0);
    return all;
  }
  for (int64_t rank = 1; rank < self.size; ++rank)
    if (!receiveText(peers[rank], all[rank], deadline))
      return lost(rank);
  for (int64_t rank = 1; rank < self.size; ++rank)
    for (const std::string &each : all)
      if (!sendText(peers[rank], each, deadline))
        return lost(rank);
  return all;
}

Status Rendezvous::agree(const Status &mine, Wait wait) {
  auto said = allGather(mine.message(), wait);
  if (!mine.ok())
    return mine;
  if (!said)
    return said.status();
  for (size_t other = 0; other < said->size(); ++other)
    if (!(*said)[other].empty())
      return Status::error("rank " + std::to_string(other) + ": " + (*said)[other]);
  return {};
}

Status Rendezvous::broadcast(int64_t owner, std::byte *data, int64_t size, Wait wait) {
  auto all = allGather(self.rank == owner ? std::string(reinterpret_cast<const char *>(data),
                                                        static_cast<size_t>(size))
                                          : "",
                       wait);
  if (!all)
    return all.status();
  const std::string &given = (*all)[owner];
  if (static_cast<int64_t>(given.size()) != size)
    return Status::error("rank " + std::to_string(owner) + " reads another result");
  std::memcpy(data, given.data(), given.size());
  return {};
}

} // namespace tessera::runtime
