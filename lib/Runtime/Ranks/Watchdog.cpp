//===- Watchdog.cpp - Detects jobs without progress -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Watchdog.h"

#include "Hmac.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace tessera::runtime {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kInterval(200);
constexpr double kMeetSeconds = 10, kConnectSeconds = 3;
/// Time from the verdict to the end of a process that has not reacted to it.
constexpr std::chrono::milliseconds kGrace(600);
constexpr double kExplainSeconds = 0.7;
constexpr double kLeastWarning = 2; ///< seconds; shorter waits are not reported
constexpr uint32_t kMostBytes = 1 << 20;

// Types of messages.
constexpr char kState = 'S', kLeave = 'L', kVerdict = 'V', kFailure = 'F';

static double secondsFrom(std::chrono::steady_clock::time_point begin,
                          std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

static std::string stateText(const RankState &state) {
  Json json{{"waits", state.isWaiting}, {"counter", state.counter}, {"issued", state.issued}};
  if (state.call) {
    json["open"] = state.open;
    json["place"] = state.place;
    json["text"] = state.call->text;
    json["loc"] = state.call->loc;
    json["stream"] = state.call->stream;
    json["group"] = state.call->group;
    json["receives"] = state.call->isReceive;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Nothing for malformed text.
static std::optional<RankState> stateIn(const std::string &text, int64_t ranks) {
  try {
    Json json = Json::parse(text);
    RankState state;
    state.isWaiting = json.at("waits").get<bool>();
    state.counter = json.at("counter").get<int64_t>();
    state.issued = json.at("issued").get<std::map<std::string, int64_t>>();
    if (!json.contains("text"))
      return state;
    auto call = std::make_shared<CallShape>();
    call->text = json.at("text").get<std::string>();
    call->loc = json.at("loc").get<std::string>();
    call->stream = json.at("stream").get<std::string>();
    call->group = json.at("group").get<std::vector<int64_t>>();
    call->isReceive = json.at("receives").get<bool>();
    for (int64_t rank : call->group)
      if (rank < 0 || rank >= ranks)
        return std::nullopt;
    state.call = call;
    state.open = json.at("open").get<int64_t>();
    state.isOpen = state.open > 0;
    state.place = json.at("place").get<int64_t>();
    return state;
  } catch (const Json::exception &) {
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// End of the process, and SIGUSR1
//===----------------------------------------------------------------------===//

namespace {
struct WatchdogRegistry {
  std::mutex mutex;
  std::vector<Watchdog *> watchdogs;
  std::chrono::steady_clock::time_point settled; ///< of the last verdict
};
} // namespace

static WatchdogRegistry &watchdogRegistry() {
  static auto *instance = new WatchdogRegistry; // never destroyed: used at exit
  return *instance;
}

/// After a verdict, the end of this process is delayed until the others have printed it: a launcher
/// may end them as soon as the first of them has ended.
constexpr std::chrono::milliseconds kSettling(300);

/// A process that exits has left the job; a killed one does not run this.
static void leaveAll() {
  std::lock_guard lock(watchdogRegistry().mutex);
  for (Watchdog *each : watchdogRegistry().watchdogs)
    each->leave();
  std::this_thread::sleep_until(watchdogRegistry().settled);
}

static std::atomic<int> dumpsAsked = 0;

static void askForDumps() {
  static const bool once = [] {
    struct sigaction now{};
    if (::sigaction(SIGUSR1, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      now.sa_handler = [](int) { ++dumpsAsked; };
      now.sa_flags = SA_RESTART;
      (void)::sigaction(SIGUSR1, &now, nullptr);
    }
    return true;
  }();
  (void)once;
}

//===----------------------------------------------------------------------===//
// Meeting.
//===----------------------------------------------------------------------===//

namespace {
struct Greeting {
  int64_t rank;
  Digest proof;
};
} // namespace

static Digest proofOf(const std::string &secret, int64_t rank) {
  return hmac(secret, "watchdog " + std::to_string(rank));
}

Watchdog::Watchdog(int64_t rank, std::vector<std::string> names, CallLog &log,
                   WatchdogOptions options)
    : self(rank), hosts(std::move(names)), log(log), options(std::move(options)),
      process(::getpid()) {
  peers = std::vector<Peer>(hosts.size());
}

/// Accepts all ranks that connect by the deadline.
bool Watchdog::accept(const Socket &listener, const std::string &secret) {
  Deadline deadline = after(kMeetSeconds);
  for (size_t missing = peers.size() - 1; missing > 0;) {
    Socket peer = acceptOne(listener, deadline);
    if (!peer.isOpen() && millisecondsTo(deadline) == 0)
      return false;
    Greeting greeting{};
    if (!peer.isOpen() ||
        !peer.receiveAll(&greeting, sizeof(greeting), std::min(deadline, after(2))) ||
        greeting.rank <= 0 || greeting.rank >= static_cast<int64_t>(peers.size()) ||
        peers[greeting.rank].socket.isOpen() ||
        !areEqual(greeting.proof, proofOf(secret, greeting.rank)))
      continue; // of others
    peers[greeting.rank].socket = std::move(peer);
    --missing;
  }
  return true;
}

Status Watchdog::connect(Transport &transport, ControlChannel &conversation, bool &isThere) {
  isThere = false;
  bool isOneHost = std::all_of(hosts.begin(), hosts.end(),
                               [&](const std::string &host) { return host == hosts.front(); });
  Reach reach = isOneHost ? Reach::loopback : Reach::everywhere;
  std::string mine = hosts[self] + " " + std::to_string(::getpid());
  Socket listener;
  if (self == 0)
    if (auto listening = listenAt(0, reach)) {
      listener = std::move(*listening);
      std::string secret = " " + std::to_string(listener.port()) + " ";
      for (char byte : randomBytes(16)) {
        secret += "0123456789abcdef"[byte >> 4 & 15];
        secret += "0123456789abcdef"[byte & 15];
      }
      mine += secret;
      for (const std::string &address : isOneHost ? std::vector<std::string>() : ownAddresses())
        mine += " " + address;
    }
  auto all = conversation.allGather(mine, "to load the program");
  if (!all)
    return all.status();
  std::vector<std::pair<std::string, std::string>> processes;
  std::vector<int64_t> processOf; ///< by rank
  std::string host, process, secret;
  // The name of rank 0's host may resolve only on that host.
  std::vector<std::string> places{isOneHost ? "127.0.0.1" : hosts.front()};
  int64_t port = 0;
  for (const std::string &each : *all) {
    std::istringstream words(each);
    words >> host >> process;
    auto known = std::find(processes.begin(), processes.end(), std::pair(host, process));
    processOf.push_back(known - processes.begin());
    if (known == processes.end())
      processes.emplace_back(host, process);
    if (processes.size() == 1 && secret.empty())
      words >> port >> secret;
    for (std::string address; words >> address;)
      places.push_back(address);
  }
  if (processes.size() == 1 || secret.empty())
    return {};
  bool isConnected = false;
  if (self == 0) {
    isConnected = accept(listener, secret);
  } else {
    Greeting greeting{self, proofOf(secret, self)};
    Deadline deadline = after(kMeetSeconds * 0.8);
    std::vector<std::string> localAddresses =
        isOneHost ? std::vector<std::string>() : ownAddresses();
    for (size_t i = 0; i < places.size() && !isConnected && millisecondsTo(deadline) > 0; ++i) {
      // Hosts may have equal local addresses, for instance of bridges.
      if (hosts[self] != hosts[0] && std::find(localAddresses.begin(), localAddresses.end(),
                                               places[i]) != localAddresses.end())
        continue;
      Connecting reached = connectOnce(places[i], port, reach, kConnectSeconds);
      isConnected = reached.socket.isOpen() &&
                    reached.socket.sendAll(&greeting, sizeof(greeting), after(kConnectSeconds));
      if (isConnected)
        peers[0].socket = std::move(reached.socket);
    }
  }
  auto met = conversation.allGather(isConnected ? "yes" : "no", "to load the program");
  if (!met)
    return met.status();
  isThere = std::all_of(met->begin(), met->end(),
                        [](const std::string &answer) { return answer == "yes"; });
  if (!isThere && self == 0)
    std::fprintf(stderr,
                 "tessera: warning: ranks do not reach rank 0 (%s) by TCP; a job "
                 "without progress gets no diagnosis\n",
                 hosts.front().c_str());
  for (size_t rank = 0; rank < hosts.size() && processes.size() < hosts.size(); ++rank)
    hosts[rank] += ", process " + std::to_string(processOf[rank]);
  (void)transport;
  return {};
}

Expected<std::unique_ptr<Watchdog>> Watchdog::start(Transport &transport,
                                                    ControlChannel &conversation, CallLog &log,
                                                    WatchdogOptions options) {
  std::vector<std::string> hosts;
  for (int64_t rank = 0; rank < transport.size(); ++rank)
    hosts.push_back(transport.hostOf(rank));
  if (hosts.size() == 1)
    return std::unique_ptr<Watchdog>();
  std::unique_ptr<Watchdog> made(
      new Watchdog(transport.rank(), std::move(hosts), log, std::move(options)));
  bool isThere = false;
  TESSERA_RETURN_IF_ERROR(made->connect(transport, conversation, isThere));
  if (!isThere || ::pipe2(made->wake, O_CLOEXEC | O_NONBLOCK) != 0)
    return std::unique_ptr<Watchdog>();
  if (!log.folder.empty())
    askForDumps();
  {
    static const int once = std::atexit(leaveAll);
    (void)once;
    std::lock_guard lock(watchdogRegistry().mutex);
    watchdogRegistry().watchdogs.push_back(made.get());
  }
  made->thread = std::thread([watchdog = made.get()] { watchdog->run(); });
  return made;
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(watchdogRegistry().mutex);
    std::erase(watchdogRegistry().watchdogs, this);
  }
  if (thread.joinable()) {
    isStopping = true;
    (void)!::write(wake[1], "", 1);
    thread.join();
    reportDeparture();
  }
  for (int descriptor : wake)
    if (descriptor >= 0)
      ::close(descriptor);
}

void Watchdog::leave() {
  if (::getpid() != process)
    return; // a forked process does not have the thread
  isStopping = true;
  (void)!::write(wake[1], "", 1);
  if (thread.joinable())
    thread.join();
  reportDeparture();
}

/// With the calls of this rank: a wait for a further one cannot end.
void Watchdog::reportDeparture() {
  std::string state = stateText(log.state());
  for (Peer &peer : peers)
    send(peer, kLeave, state);
}

//===----------------------------------------------------------------------===//
// Queries of the rank
//===----------------------------------------------------------------------===//

Status Watchdog::verdict() const {
  std::lock_guard lock(mutex);
  isSeen = isOver.load();
  return verdictText.empty() ? Status() : Status::error(verdictText);
}

Status Watchdog::explain(const Status &mine) {
  std::unique_lock lock(mutex);
  if (verdictText.empty()) {
    failure = mine.message();
    (void)!::write(wake[1], "", 1);
    decided.wait_for(lock, std::chrono::duration<double>(kExplainSeconds),
                     [&] { return !verdictText.empty(); });
  }
  isSeen = true;
  return verdictText.empty() ? mine : Status::error(verdictText);
}

//===----------------------------------------------------------------------===//
// The thread.
//===----------------------------------------------------------------------===//

void Watchdog::send(Peer &peer, char kind, const std::string &text) {
  if (!peer.socket.isOpen() || peer.hasEnded || peer.isStuck)
    return;
  auto size = static_cast<uint32_t>(text.size());
  std::string message(reinterpret_cast<const char *>(&size), sizeof(size));
  message += kind;
  message += text;
  // A rank that does not read before the kernel's buffer is full gets no more messages.
  peer.isStuck = !peer.socket.sendAll(message.data(), message.size(), after(0.02));
}

void Watchdog::read(size_t number) {
  Peer &peer = peers[number];
  char piece[4096];
  while (true) {
    ssize_t count = ::recv(peer.socket.descriptor(), piece, sizeof(piece), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    if (count <= 0) {
      peer.hasEnded = true;
      break;
    }
    peer.input.append(piece, static_cast<size_t>(count));
  }
  constexpr size_t kHead = sizeof(uint32_t) + 1;
  uint32_t size;
  while (peer.input.size() >= kHead) {
    std::memcpy(&size, peer.input.data(), sizeof(size));
    if (size > kMostBytes) {
      peer.hasEnded = true;
      break;
    }
    if (peer.input.size() < kHead + size)
      break;
    char kind = peer.input[sizeof(size)];
    std::string text = peer.input.substr(kHead, size);
    peer.input.erase(0, kHead + size);
    take(number, kind, text);
  }
}

void Watchdog::note(Peer &peer, RankState state, Time now) {
  if (state.counter != peer.state.counter || !state.isWaiting || !peer.state.isWaiting)
    peer.changed = now;
  peer.state = std::move(state);
}

void Watchdog::take(size_t number, char kind, const std::string &text) {
  Peer &peer = peers[number];
  Time now = std::chrono::steady_clock::now();
  peer.heard = now;
  if (kind == kLeave) {
    peer.hasLeft = true;
    if (auto state = stateIn(text, static_cast<int64_t>(hosts.size())))
      peer.state = std::move(*state);
  } else if (kind == kVerdict && self != 0) {
    decide(text);
  } else if (kind == kFailure && self == 0 && !isOver) {
    // It has reached a timeout, or a connection has failed: the common state gives a better
    // message.
    judge(now, options.deadline * 0.8);
    if (!isOver)
      decide(text);
  } else if (kind == kState && !text.empty()) {
    if (auto state = stateIn(text, static_cast<int64_t>(hosts.size())))
      note(peer, std::move(*state), now);
  }
}

void Watchdog::decide(const std::string &text) {
  if (isOver)
    return;
  {
    std::lock_guard lock(mutex);
    verdictText = text;
    decidedAt = std::chrono::steady_clock::now();
    isOver = true;
  }
  decided.notify_all();
  {
    std::lock_guard lock(watchdogRegistry().mutex);
    watchdogRegistry().settled = std::chrono::steady_clock::now() + kSettling;
  }
  for (size_t other = 1; self == 0 && other < peers.size(); ++other)
    send(peers[other], kVerdict, text);
  log.dump(text);
  if (options.onVerdict)
    options.onVerdict(text);
}

std::vector<RankReport> Watchdog::reports(Time now) const {
  std::vector<RankReport> reports;
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    bool isHere = rank == 0;
    reports.push_back({hosts[rank], peer.hasEnded && !peer.hasLeft, peer.hasLeft,
                       isHere ? 0 : secondsFrom(peer.heard, now), secondsFrom(peer.changed, now),
                       peer.state});
  }
  return reports;
}

void Watchdog::judge(Time now, double deadline) {
  if (auto text = verdictOf(reports(now), deadline, options.calls))
    decide(*text);
}

/// Warns about missing ranks long before the deadline, once per call.
void Watchdog::warn(Time now) {
  const double seconds = options.deadline / 4;
  if (seconds < kLeastWarning)
    return;
  auto late = findLateCall(reports(now), seconds);
  if (!late || late->call == warned)
    return;
  warned = late->call;
  std::fprintf(stderr, "tessera: warning: %s; the job ends when that has taken %lld s\n",
               late->text.c_str(), static_cast<long long>(options.deadline));
  std::fflush(stderr);
}

/// Rank 0 has left properly: this rank may wait for it. The state of the others is unknown; assumes
/// that they have made the same calls.
void Watchdog::checkDepartedRoot() {
  RankState others = peers[self].state;
  others.isWaiting = false;
  std::vector<RankReport> reports;
  for (const std::string &host : hosts)
    reports.push_back({host, false, false, 0, 0, others});
  reports[0].hasLeft = true;
  reports[0].state = peers[0].state;
  reports[self].state = peers[self].state;
  if (auto text = verdictOf(reports, options.deadline))
    decide(*text);
}

/// Each rank judges rank 0, whose reports all receive.
void Watchdog::checkRoot(Time now, double deadline) {
  const Peer &root = peers[0], &mine = peers[self];
  if (root.hasLeft)
    return checkDepartedRoot();
  double silent = secondsFrom(root.heard, now), stalled = secondsFrom(mine.changed, now);
  if (root.hasEnded)
    decide(lostRankText(0, hosts[0]));
  else if (silent >= silenceOf(options.deadline) &&
           ((mine.state.isWaiting && stalled >= deadline) || silent >= deadline))
    decide(silentText(0, hosts[0]));
}

void Watchdog::tick(Time now) {
  RankState state = log.state();
  if (self == 0) {
    for (size_t other = 1; other < peers.size(); ++other)
      send(peers[other], kState, "");
  } else {
    send(peers[0], kState, stateText(state));
  }
  note(peers[self], std::move(state), now);
  std::string failed;
  {
    std::lock_guard lock(mutex);
    failed.swap(failure);
  }
  if (!failed.empty() && !isOver) {
    if (self != 0) {
      checkRoot(now, options.deadline * 0.8);
      if (!isOver)
        send(peers[0], kFailure, failed);
    } else if (self == 0) {
      judge(now, options.deadline * 0.8);
      if (!isOver)
        decide(failed);
    }
  }
  if (isOver) {
    if (options.endsProcess && !isSeen && now - decidedAt >= kGrace) {
      std::fprintf(stderr, "tessera: error: %s\n", verdictText.c_str());
      std::fflush(stderr);
      ::_exit(1);
    }
  } else if (self == 0) {
    judge(now, options.deadline);
    if (!isOver)
      warn(now);
  } else {
    checkRoot(now, options.deadline);
  }
}

void Watchdog::run() {
  sigset_t all; // signals are for the threads of the program
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  Time now = std::chrono::steady_clock::now(), next = now;
  for (Peer &peer : peers)
    peer.heard = peer.changed = now;
  int dumpsDone = dumpsAsked;
  while (!isStopping) {
    std::vector<pollfd> polled{{wake[0], POLLIN, 0}};
    std::vector<size_t> numbers;
    for (size_t i = 0; i < peers.size(); ++i)
      if (peers[i].socket.isOpen() && !peers[i].hasEnded) {
        polled.push_back({peers[i].socket.descriptor(), POLLIN, 0});
        numbers.push_back(i);
      }
    int ready = ::poll(polled.data(), polled.size(), std::max(millisecondsTo(next), 1));
    now = std::chrono::steady_clock::now();
    bool wasSuspended = now - next > std::chrono::seconds(1);
    if (wasSuspended) // this process was stopped itself, so its reports are old
      for (Peer &peer : peers)
        peer.heard = peer.changed = now;
    bool isAsked = ready > 0 && polled[0].revents != 0, hasEnded = false;
    if (isAsked) {
      char bytes[64];
      (void)!::read(wake[0], bytes, sizeof(bytes));
    }
    for (size_t i = 0; ready > 0 && i < numbers.size(); ++i)
      if (polled[i + 1].revents != 0) {
        read(numbers[i]);
        hasEnded |= peers[numbers[i]].hasEnded;
      }
    if (now >= next || isAsked || hasEnded) {
      tick(now);
      next = now + kInterval;
    }
    if (int asked = dumpsAsked; asked != dumpsDone) {
      dumpsDone = asked;
      log.dump("SIGUSR1");
    }
  }
}

} // namespace tessera::runtime
