//===- Guard.cpp - Compare the calls of ranks -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Guard.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace tessera::runtime {

struct Guard::Head {
  uint64_t hash = 0; ///< of the whole text
  uint8_t isRefused = 0, hasNumbers = 0;
  char text[246] = {};
  char where[128] = {}; ///< not compared
};

static uint64_t hashOf(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char byte : text)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return hash;
}

Guard::Guard(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
             const CallDescription &mine)
    : transport(transport), channel(channel), members(members),
      bytes(sizeof(Head) + 16 * members.size()), heads(bytes * members.size()),
      receives(members.size()) {
  self = static_cast<size_t>(std::find(members.begin(), members.end(), transport.rank()) -
                             members.begin());
  Head head;
  head.hash = hashOf(mine.text);
  head.isRefused = !mine.isRefused.empty();
  head.hasNumbers = !mine.sends.empty();
  const std::string &text = head.isRefused ? mine.isRefused : mine.text;
  std::memcpy(head.text, text.data(), std::min(text.size(), sizeof(head.text) - 1));
  // The end of a long path is more specific.
  size_t kept = std::min(mine.where.size(), sizeof(head.where) - 1);
  std::memcpy(head.where, mine.where.data() + mine.where.size() - kept, kept);
  std::byte *at = heads.data() + self * bytes;
  std::memcpy(at, &head, sizeof(head));
  if (head.hasNumbers) {
    size_t size = members.size() * 8;
    std::memcpy(at + sizeof(head), mine.sends.data(), size);
    std::memcpy(at + sizeof(head) + size, mine.receives.data(), size);
  }
}

const Guard::Head &Guard::at(size_t place) const {
  return *reinterpret_cast<const Head *>(headOf(place));
}

int64_t Guard::numberOf(size_t place, size_t index) const {
  int64_t number;
  std::memcpy(&number, headOf(place) + sizeof(Head) + 8 * index, 8);
  return number;
}

Expected<bool> Guard::advance() {
  auto size = static_cast<int64_t>(bytes);
  for (size_t place = 0; place < members.size() && !isPosted; ++place) {
    if (place == self)
      continue;
    auto receive = transport.receive(channel, members[place], &heads[place * bytes], size);
    if (!receive)
      return receive.status();
    receives[place] = *receive;
    auto send = transport.send(channel, members[place], headOf(self), size);
    if (!send)
      return send.status();
    sends.push_back(*send);
  }
  isPosted = true;
  bool haveAllCome = true;
  for (Transport::Request &request : receives) {
    if (request == 0)
      continue;
    auto isDone = transport.test(request);
    if (!isDone)
      return isDone.status();
    request = *isDone ? 0 : request;
    haveAllCome = haveAllCome && *isDone;
  }
  for (auto each = sends.begin(); each != sends.end();) {
    auto isDone = transport.test(*each);
    if (!isDone)
      return isDone.status();
    each = *isDone ? sends.erase(each) : std::next(each);
  }
  return haveAllCome && sends.empty();
}

std::vector<int64_t> Guard::missing() const {
  std::vector<int64_t> result;
  for (size_t place = 0; place < members.size(); ++place)
    if (receives[place] != 0)
      result.push_back(members[place]);
  return result;
}

std::string callAt(const std::string &text, const std::string &where) {
  return where.empty() ? text : text + ", at " + where;
}

std::string ranksText(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

Status Guard::verdict() const {
  // Ranks by call, in the order of the first rank with each call.
  std::vector<std::pair<const Head *, std::vector<int64_t>>> calls;
  for (size_t place = 0; place < members.size(); ++place) {
    const Head &head = at(place);
    if (head.isRefused)
      return Status::error("rank " + std::to_string(members[place]) + ": " +
                           callAt(head.text, head.where));
    auto same = std::find_if(calls.begin(), calls.end(),
                             [&](auto &call) { return call.first->hash == head.hash; });
    if (same == calls.end())
      same = calls.insert(calls.end(), {&head, {}});
    same->second.push_back(members[place]);
  }
  if (calls.size() > 1) {
    std::string text = "the ranks of the group make different calls";
    for (size_t i = 0; i < calls.size(); ++i)
      text += (i ? "; " : ": ") + ranksText(calls[i].second) + ": " +
              callAt(calls[i].first->text, calls[i].first->where);
    return Status::error(text);
  }
  if (!at(self).hasNumbers)
    return {};
  for (size_t from = 0; from < members.size(); ++from)
    for (size_t to = 0; to < members.size(); ++to) {
      int64_t sent = numberOf(from, to), expected = numberOf(to, members.size() + from);
      if (sent != expected)
        return Status::error("rank " + std::to_string(members[from]) + " sends " +
                             std::to_string(sent) + " elements to rank " +
                             std::to_string(members[to]) + ", which expects " +
                             callAt(std::to_string(expected), at(to).where));
    }
  return {};
}

} // namespace tessera::runtime
