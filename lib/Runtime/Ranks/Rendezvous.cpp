//===- Rendezvous.cpp - Where the processes of a job meet -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "tessera/Runtime/Artifact/Bytes.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace tessera::runtime {

/// What a rank says first: that it is one of ours, and which.
struct Hello {
  char magic[8];
  int64_t rank, size;
};
constexpr char kMagic[9] = "TESSERA1";
/// What a file of ours begins with; the host and the port follow.
constexpr char kFileMark[] = "tessera-rendezvous ";
constexpr uint64_t kMaxBytes = uint64_t(1) << 34;

static Expected<std::optional<int64_t>> fromEnvironment(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *text = std::getenv(name)) {
      char *end = nullptr;
      errno = 0;
      int64_t value = std::strtoll(text, &end, 10);
      if (errno || end == text || *end || value < 0 || value > 1 << 20)
        return Status::error(std::string(name) + " is '" + text + "', not a rank or a size");
      return std::optional<int64_t>(value);
    }
  return std::optional<int64_t>();
}

Expected<LaunchedRank> launchedRank() {
  auto rank =
      fromEnvironment({"TESSERA_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"});
  auto size = fromEnvironment(
      {"TESSERA_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"});
  auto local = fromEnvironment({"TESSERA_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"});
  for (auto *each : {&rank, &size, &local})
    if (!*each)
      return each->status();
  if (!rank->has_value() && size->value_or(1) > 1)
    return Status::error("this is one process of " + std::to_string(**size) +
                         ", and nothing says which; set TESSERA_RANK, from 0");
  LaunchedRank result{rank->value_or(0), size->value_or(1), 0};
  result.local = local->value_or(result.rank);
  if (result.rank >= result.size)
    return Status::error("this is rank " + std::to_string(result.rank) + " of " +
                         std::to_string(result.size) + "; ranks are counted from 0");
  return result;
}

using Deadline = std::chrono::steady_clock::time_point;

/// For poll: -1 waits without an end.
static int millisecondsTo(Deadline deadline) {
  if (deadline == Deadline::max())
    return -1;
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

static bool transfer(int socket, void *data, size_t size, bool sends, Deadline deadline) {
  auto *at = static_cast<char *>(data);
  while (size > 0) {
    pollfd wait{socket, static_cast<short>(sends ? POLLOUT : POLLIN), 0};
    int ready = ::poll(&wait, 1, millisecondsTo(deadline));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return false;
    ssize_t count = sends ? ::send(socket, at, size, MSG_NOSIGNAL) : ::recv(socket, at, size, 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (count <= 0)
      return false;
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

static bool sendText(int socket, const std::string &text, Deadline deadline) {
  uint64_t size = text.size();
  return transfer(socket, &size, sizeof(size), true, deadline) &&
         transfer(socket, const_cast<char *>(text.data()), text.size(), true, deadline);
}
static bool receiveText(int socket, std::string &text, Deadline deadline) {
  uint64_t size = 0;
  if (!transfer(socket, &size, sizeof(size), false, deadline) || size > kMaxBytes)
    return false;
  text.resize(size);
  return transfer(socket, text.data(), size, false, deadline);
}

static Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Rendezvous::~Rendezvous() {
  for (int peer : peers)
    if (peer >= 0)
      ::close(peer);
  if (listener >= 0)
    ::close(listener);
}

/// "host", "port" of MASTER_ADDR and MASTER_PORT, or the file of TESSERA_RENDEZVOUS.
static Expected<std::string> addressOfJob() {
  if (const char *text = std::getenv("TESSERA_RENDEZVOUS")) {
    if (std::strncmp(text, "file:", 5) == 0 && text[5])
      return std::string(text);
    return Status::error("TESSERA_RENDEZVOUS is '" + std::string(text) + "', not file:PATH");
  }
  const char *host = std::getenv("MASTER_ADDR"), *port = std::getenv("MASTER_PORT");
  if (host && port) {
    char *end = nullptr;
    long number = std::strtol(port, &end, 10);
    if (end == port || *end || number < 1 || number > 65535)
      return Status::error("MASTER_PORT is '" + std::string(port) +
                           "', not a port from 1 to 65535");
    if (!*host || std::strpbrk(host, " \t\n"))
      return Status::error("MASTER_ADDR is '" + std::string(host) + "', not a host");
    return std::string(host) + " " + std::to_string(number);
  }
  return Status::error("ranks need a place to meet: set TESSERA_RENDEZVOUS=file:PATH, a file that "
                       "all see and none has yet, or MASTER_ADDR and MASTER_PORT");
}

Expected<std::unique_ptr<Rendezvous>> Rendezvous::open(const LaunchedRank &rank, double seconds) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(rank, seconds));
  if (rank.size == 1)
    return made;
  auto address = addressOfJob();
  if (!address)
    return address.status();
  TESSERA_RETURN_IF_ERROR(rank.rank == 0 ? made->listenAndAccept(*address)
                                         : made->connectTo(*address));
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

/// Rank 0 writes where it is; a file of something else stays what it is.
static Status writePlace(const std::string &path, const std::string &place) {
  auto there = readFile(path);
  if (there && !there->empty() && placeIn(path).empty())
    return Status::error("TESSERA_RENDEZVOUS names '" + path +
                         "', which is there and is no rendezvous file; name one that is not");
  return writeFile(path, kFileMark + place);
}

Status Rendezvous::listenAndAccept(const std::string &address) {
  std::string path = fileOf(address);
  TESSERA_RETURN_IF_ERROR(listenAt(address));
  Status met = acceptAll();
  if (!path.empty())
    (void)::unlink(path.c_str()); // all have read it, or nobody shall
  return met;
}

Status Rendezvous::listenAt(const std::string &address) {
  bool throughFile = !fileOf(address).empty();
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = INADDR_ANY;
  if (!throughFile)
    place.sin_port = htons(static_cast<uint16_t>(std::atoi(&address[address.find(' ') + 1])));
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr *>(&place), sizeof(place)) ||
      ::listen(listener, 1024))
    return Status::error("rank 0 cannot listen for the others: " +
                         std::string(std::strerror(errno)));
  if (throughFile) {
    socklen_t length = sizeof(place);
    char host[256] = "localhost";
    (void)::getsockname(listener, reinterpret_cast<sockaddr *>(&place), &length);
    (void)::gethostname(host, sizeof(host) - 1);
    return writePlace(fileOf(address),
                      std::string(host) + " " + std::to_string(ntohs(place.sin_port)));
  }
  return {};
}

Status Rendezvous::acceptAll() {
  peers.assign(static_cast<size_t>(self.size), -1);
  Deadline deadline = after(seconds);
  for (int64_t missing = self.size - 1; missing > 0;) {
    pollfd wait{listener, POLLIN, 0};
    if (::poll(&wait, 1, millisecondsTo(deadline)) <= 0) {
      std::string absent;
      for (int64_t rank = 1; rank < self.size; ++rank)
        if (peers[rank] < 0)
          absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
      return Status::error("waited " + std::to_string(static_cast<int>(seconds)) + " s for ranks " +
                           absent + " of " + std::to_string(self.size));
    }
    int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    Hello hello{};
    if (peer < 0 || !transfer(peer, &hello, sizeof(hello), false, deadline) ||
        std::memcmp(hello.magic, kMagic, 8) != 0 || hello.rank <= 0 || hello.rank >= self.size ||
        peers[hello.rank] >= 0) {
      if (peer >= 0)
        ::close(peer); // not one of ours
      continue;
    }
    if (hello.size != self.size)
      return Status::error("rank " + std::to_string(hello.rank) + " is one of " +
                           std::to_string(hello.size) + ", this one of " +
                           std::to_string(self.size));
    peers[hello.rank] = peer;
    --missing;
  }
  return {};
}

Status Rendezvous::connectTo(const std::string &address) {
  std::string path = fileOf(address);
  Deadline deadline = after(seconds);
  std::string said = "there is no file";
  do {
    std::string where = path.empty() ? address : placeIn(path);
    size_t space = where.find(' ');
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    int resolved = EAI_NONAME;
    if (space != std::string::npos) {
      std::string host = where.substr(0, space);
      resolved = ::getaddrinfo(host.c_str(), &where[space + 1], &hints, &found);
      if (resolved != 0)
        said = "host '" + host + "': " + ::gai_strerror(resolved);
    }
    if (resolved == 0) {
      int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      Hello hello{{}, self.rank, self.size};
      std::memcpy(hello.magic, kMagic, 8);
      bool connected = ::connect(peer, found->ai_addr, found->ai_addrlen) == 0;
      said = connected ? "it said nothing" : std::strerror(errno);
      ::freeaddrinfo(found);
      if (connected && transfer(peer, &hello, sizeof(hello), true, deadline)) {
        peers = {peer};
        return {};
      }
      ::close(peer);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (millisecondsTo(deadline) > 0);
  return Status::error("rank " + std::to_string(self.rank) + " waited " +
                       std::to_string(static_cast<int>(seconds)) + " s for rank 0 at " + address +
                       ": " + said);
}

Status Rendezvous::checkPeers() const {
  for (size_t i = 0; i < peers.size(); ++i) {
    char byte;
    if (peers[i] >= 0 && ::recv(peers[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
      return Status::error("rank " + std::to_string(self.rank > 0 ? 0 : i) + " of " +
                           std::to_string(self.size) + " has ended");
  }
  return {};
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
