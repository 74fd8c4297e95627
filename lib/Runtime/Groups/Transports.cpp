//===- Transports.cpp - Transports by name --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transports.h"

#include "../Ranks/ThreadTransport.h"

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <map>
#include <mutex>

namespace tessera::runtime {

namespace {
/// Rendezvous of threads of this process under a name. The first thread creates all transports.
struct Meeting {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<bool> hasArrived;
  int64_t arrived = 0;
};
std::mutex rendezvousMutex;
std::condition_variable memberArrived;
std::map<std::string, std::shared_ptr<Meeting>> meetings;
} // namespace

static Expected<std::unique_ptr<Transport>> openThreads(const JobOptions &options) {
  auto [rank, size, local] = options.rank;
  std::unique_lock lock(rendezvousMutex);
  std::shared_ptr<Meeting> &named = meetings[options.place.address];
  if (!named) {
    named = std::make_shared<Meeting>();
    named->transports = makeThreadTransports(size);
    named->hasArrived.resize(static_cast<size_t>(size));
  }
  std::shared_ptr<Meeting> meeting = named;
  if (static_cast<int64_t>(meeting->hasArrived.size()) != size)
    return Status::error("rank " + std::to_string(rank) + " expects " + std::to_string(size) +
                         " ranks, others of the job " + std::to_string(meeting->hasArrived.size()));
  if (meeting->hasArrived[rank])
    return Status::error("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                         " has already joined");
  meeting->hasArrived[rank] = true;
  if (++meeting->arrived == size)
    meetings.erase(options.place.address); // the name can be reused
  memberArrived.notify_all();
  bool haveAllCome = memberArrived.wait_until(lock, after(options.timeout),
                                              [&] { return meeting->arrived == size; });
  if (haveAllCome)
    return std::move(meeting->transports[rank]);
  auto there = meetings.find(options.place.address);
  if (there != meetings.end() && there->second == meeting)
    meetings.erase(there);
  std::string absent;
  for (int64_t other = 0; other < size; ++other)
    if (!meeting->hasArrived[other])
      absent += (absent.empty() ? "" : ", ") + std::to_string(other);
  return Status::error("waited " + std::to_string(static_cast<int>(options.timeout)) +
                       " s for ranks " + absent + " of " + std::to_string(size));
}

static Expected<std::unique_ptr<Transport>> openTcp(const JobOptions &options) {
  return openTcpTransport(options.rank, options.timeout, options.place);
}

namespace {
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<std::string, OpenTransport>> known{{"tcp", openTcp},
                                                           {"threads", openThreads}};
  std::vector<std::pair<std::string, OpenDeviceCalls>> devices;

  const OpenTransport *find(const std::string &name) const {
    for (const auto &[other, open] : known)
      if (other == name)
        return &open;
    return nullptr;
  }
};
} // namespace

static Registry &registry() {
  static Registry instance;
  return instance;
}

static std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return name;
}

Status registerTransport(const std::string &name, OpenTransport open) {
  std::lock_guard lock(registry().mutex);
  if (name.empty() || registry().find(lower(name)))
    return Status::error("backend '" + name + "' is already registered");
  registry().known.emplace_back(lower(name), std::move(open));
  return {};
}

std::vector<std::string> transportNames() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto &[name, open] : registry().known)
    names.push_back(name);
  return names;
}

Status registerDeviceCalls(const std::string &name, OpenDeviceCalls open) {
  std::lock_guard lock(registry().mutex);
  registry().devices.emplace_back(lower(name), std::move(open));
  return {};
}

static std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &each : names)
    text += (text.empty() ? "" : ", ") + each;
  return text;
}

Expected<ChosenBackends> chooseBackends(const std::string &given) {
  std::vector<std::string> hosts = transportNames(), devices;
  std::string text = lower(given), host;
  ChosenBackends chosen;
  std::lock_guard lock(registry().mutex);
  for (const auto &[name, open] : registry().devices)
    devices.push_back(name);
  auto isOneOf = [](const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool isPlain = text.find(':') == std::string::npos && text.find(',') == std::string::npos;
  if (isPlain)
    text = (isOneOf(devices, text) ? "cuda:" : "cpu:") + text;
  for (size_t from = 0; from <= text.size();) {
    size_t to = std::min(text.find(',', from), text.size()), colon = text.find(':', from);
    std::string kind = text.substr(from, std::min(colon, to) - from);
    std::string name = colon < to ? text.substr(colon + 1, to - colon - 1) : "";
    bool isHost = kind == "cpu";
    std::string &place = isHost ? host : chosen.device;
    if ((!isHost && kind != "cuda") || !place.empty())
      return Status::error("backend '" + given +
                           "'; expected a name, or one for each of 'cpu' and 'cuda', as in "
                           "'cpu:tcp,cuda:nccl'");
    const std::vector<std::string> &own = isHost ? hosts : devices;
    if (isOneOf(isHost ? devices : hosts, name))
      return Status::error("backend '" + name + "' does not work on '" + kind + "'; there are " +
                           listed(own));
    if (!isOneOf(own, name))
      return Status::error("no backend '" + name + "'; there are " + listed(hosts) +
                           (devices.empty() ? "" : " of 'cpu', " + listed(devices) + " of 'cuda'"));
    place = name;
    from = to + 1;
  }
  chosen.hasHost = !host.empty();
  chosen.transport = chosen.hasHost ? host : "tcp";
  for (const auto &[name, open] : registry().devices)
    if (name == chosen.device)
      chosen.openDevice = open;
  return chosen;
}

Expected<std::unique_ptr<Transport>> openTransport(const std::string &name,
                                                   const JobOptions &options) {
  OpenTransport open;
  {
    std::lock_guard lock(registry().mutex);
    if (const OpenTransport *found = registry().find(lower(name)))
      open = *found;
  }
  std::string known;
  for (const std::string &each : transportNames())
    known += (known.empty() ? "" : ", ") + each;
  if (!open)
    return Status::error("no backend '" + name + "'; there are " + known);
  auto [rank, size, local] = options.rank;
  if (size < 1 || rank < 0 || rank >= size)
    return Status::error("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                         "; ranks are counted from 0");
  return open(options);
}

} // namespace tessera::runtime
