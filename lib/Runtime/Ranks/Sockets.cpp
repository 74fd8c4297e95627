//===- Sockets.cpp - TCP between the processes of a job -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sockets.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tessera::runtime {

Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

int millisecondsTo(Deadline deadline) {
  if (deadline == Deadline::max())
    return -1;
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

Socket::~Socket() {
  if (held >= 0)
    ::close(held);
}

static bool transfer(int socket, char *at, size_t size, bool sends, Deadline deadline) {
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

bool Socket::sendAll(const void *data, size_t size, Deadline deadline) const {
  return transfer(held, static_cast<char *>(const_cast<void *>(data)), size, true, deadline);
}

bool Socket::receiveAll(void *data, size_t size, Deadline deadline) const {
  return transfer(held, static_cast<char *>(data), size, false, deadline);
}

/// "address", "port" of this end.
static std::pair<std::string, std::string> nameOf(int socket) {
  sockaddr_storage place{};
  socklen_t length = sizeof(place);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  if (::getsockname(socket, reinterpret_cast<sockaddr *>(&place), &length) == 0)
    (void)::getnameinfo(reinterpret_cast<sockaddr *>(&place), length, host, sizeof(host), port,
                        sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, port};
}

int64_t Socket::port() const {
  return std::atoll(nameOf(held).second.c_str());
}

std::string Socket::address() const {
  std::string text = nameOf(held).first;
  return text.rfind("::ffff:", 0) == 0 ? text.substr(7) : text; // IPv4 through a socket of both
}

Expected<Socket> listenAt(int64_t port, Reach reach) {
  // Loopback is 127.0.0.1, which every host has.
  int family = reach == Reach::loopback ? AF_INET : AF_INET6, yes = 1, no = 0;
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.isOpen() && family == AF_INET6) {
    family = AF_INET; // a kernel without IPv6
    socket = Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  four.sin_addr.s_addr = htonl(reach == Reach::loopback ? INADDR_LOOPBACK : INADDR_ANY);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  six.sin6_addr = in6addr_any;
  auto *place =
      family == AF_INET ? reinterpret_cast<sockaddr *>(&four) : reinterpret_cast<sockaddr *>(&six);
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (family == AF_INET6)
    ::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (::bind(socket.descriptor(), place, family == AF_INET ? sizeof(four) : sizeof(six)) != 0 ||
      ::listen(socket.descriptor(), 1024) != 0)
    return Status::error((port ? "port " + std::to_string(port) + ": " : "") +
                         std::strerror(errno));
  return socket;
}

static void quicken(int socket) {
  int yes = 1, idle = 10, interval = 5, count = 4;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes,
               sizeof(yes)); // detects lost hosts
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

Socket acceptOne(const Socket &listener, Deadline deadline) {
  pollfd wait{listener.descriptor(), POLLIN, 0};
  int ready;
  do
    ready = ::poll(&wait, 1, millisecondsTo(deadline));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0)
    return Socket();
  Socket peer(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.isOpen())
    quicken(peer.descriptor());
  return peer;
}

static bool isLoopback(const sockaddr *place) {
  if (place->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in *>(place)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(place)->sin6_addr);
}

/// Only addresses of this host can be bound.
static bool isHere(const addrinfo &place) {
  if (isLoopback(place.ai_addr))
    return true;
  Socket probe(::socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage copy{};
  std::memcpy(&copy, place.ai_addr, place.ai_addrlen);
  reinterpret_cast<sockaddr_in *>(&copy)->sin_port = 0; // at the same place of both families
  return ::bind(probe.descriptor(), reinterpret_cast<sockaddr *>(&copy), place.ai_addrlen) == 0;
}

Connecting connectOnce(const std::string &host, int64_t port, Reach reach, double seconds) {
  Connecting result;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int resolved = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (resolved != 0) {
    result.failure = "host '" + host + "': " + ::gai_strerror(resolved);
    result.isUnknown = resolved == EAI_NONAME;
    return result;
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> found(list, ::freeaddrinfo);
  if (reach == Reach::loopback && host != "127.0.0.1") {
    for (addrinfo *each = list; each; each = each->ai_next)
      if (isHere(*each))
        return connectOnce("127.0.0.1", port, reach, seconds);
    result.isElsewhere = true;
    return result;
  }
  for (addrinfo *each = list; each && !result.socket.isOpen(); each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    timeval limit{static_cast<time_t>(seconds), 0}; // 0 means none
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (socket.isOpen() && ::connect(socket.descriptor(), each->ai_addr, each->ai_addrlen) == 0) {
      quicken(socket.descriptor());
      result.socket = std::move(socket);
    } else {
      result.failure = std::strerror(errno);
    }
  }
  return result;
}

std::string hostName() {
  char name[256] = "localhost";
  (void)::gethostname(name, sizeof(name) - 1);
  return name;
}

std::vector<std::string> ownAddresses() {
  constexpr size_t kMost = 8;
  std::vector<std::string> found;
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    return found;
  for (ifaddrs *each = list; each && found.size() < kMost; each = each->ifa_next) {
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP) || (each->ifa_flags & IFF_LOOPBACK))
      continue;
    int family = each->ifa_addr->sa_family;
    auto size =
        static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    char text[NI_MAXHOST];
    if ((family == AF_INET || family == AF_INET6) &&
        ::getnameinfo(each->ifa_addr, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      found.emplace_back(text);
  }
  ::freeifaddrs(list);
  return found;
}

} // namespace tessera::runtime
