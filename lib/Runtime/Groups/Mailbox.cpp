//===- Mailbox.cpp - Messages between two ranks of a group ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mailbox.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

ReceiveWork::ReceiveWork(std::shared_ptr<Mailbox> mailbox, int64_t peer, int64_t tag,
                         std::byte *data, int64_t bytes, std::string type, Deadline deadline,
                         Completion then)
    : Work("receive of " + type + " from " +
               (peer < 0 ? std::string("any rank") : "rank " + std::to_string(peer)),
           deadline),
      mailbox(std::move(mailbox)), peer(peer), tag(tag), data(data), bytes(bytes),
      type(std::move(type)), then(std::move(then)) {}

Expected<bool> ReceiveWork::advance() {
  CallLog &log = mailbox->job.log();
  if (!isKnown)
    mailbox->await(*this);
  isKnown = true;
  if (!result)
    TESSERA_RETURN_IF_ERROR(mailbox->advance());
  if (!result) {
    log.waits();
    return false;
  }
  log.progressed();
  if (result->ok() && then)
    TESSERA_RETURN_IF_ERROR(then());
  if (sequence >= 0)
    log.end(sequence);
  complete(*result);
  return true;
}

std::string ReceiveWork::awaited() const {
  return (peer < 0 ? std::string("no rank") : "rank " + std::to_string(peer)) +
         (peer < 0 ? " has sent it, with tag " : " has not sent it, with tag ") +
         std::to_string(tag);
}

class Mailbox::SendWork final : public Work {
public:
  SendWork(Mailbox &mailbox, int64_t peer, const Head &head, const std::byte *data,
           Deadline deadline, std::shared_ptr<void> keeps)
      : Work("send of " + std::string(head.type) + " to rank " + std::to_string(peer), deadline),
        mailbox(mailbox.shared_from_this()), peer(peer), head(head), data(data),
        keeps(std::move(keeps)) {}

  Expected<bool> advance() override {
    Transport &transport = mailbox->job.transport();
    if (!isPosted) {
      std::pair<const std::byte *, int64_t> parts[] = {
          {reinterpret_cast<const std::byte *>(&head), sizeof(head)}, {data, head.bytes}};
      for (auto [bytes, count] : parts) {
        auto request = transport.send(mailbox->channel, peer, bytes, count);
        if (!request)
          return request.status();
        requests.push_back(*request);
      }
      isPosted = true;
      mailbox->job.log().sent(mailbox->streamOf(transport.rank(), peer));
    }
    while (!requests.empty()) {
      auto isDone = transport.test(requests.front());
      if (!isDone || !*isDone)
        return isDone;
      requests.pop_front();
    }
    complete({});
    return true;
  }
  std::string awaited() const override {
    return "rank " + std::to_string(peer) + " has not received it";
  }

private:
  const std::shared_ptr<Mailbox> mailbox;
  const int64_t peer;
  const Head head;
  const std::byte *const data;
  const std::shared_ptr<void> keeps;
  bool isPosted = false;
  std::list<Transport::Request> requests;
};

Mailbox::Mailbox(Job &job, int64_t channel, std::vector<int64_t> members, std::string group)
    : job(job), channel(channel), members(std::move(members)), group(std::move(group)),
      incoming(this->members.size()) {}

std::string Mailbox::streamOf(int64_t from, int64_t to) const {
  return group + " from " + std::to_string(from) + " to " + std::to_string(to);
}

Status Mailbox::checkPeer(int64_t peer, int64_t tag, bool mayBeAny) const {
  if ((peer != -1 || !mayBeAny) && std::find(members.begin(), members.end(), peer) == members.end())
    return Status::error("rank " + std::to_string(peer) + " is not in the group");
  if (tag < 0)
    return Status::error("tag " + std::to_string(tag) + "; tags are 0 or more");
  return {};
}

WorkPtr Mailbox::send(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
                      const std::string &type, Deadline deadline, std::shared_ptr<void> keeps) {
  Head head{tag, bytes, {}};
  std::memcpy(head.type, type.data(), std::min(type.size(), sizeof(head.type) - 1));
  auto work = std::make_shared<SendWork>(*this, peer, head, data, deadline, std::move(keeps));
  if (Status status = checkPeer(peer, tag, false); !status.ok())
    work->complete(status.in("send"));
  else
    job.submit(Job::kIndependent, work);
  return work;
}

std::shared_ptr<ReceiveWork> Mailbox::receive(int64_t peer, int64_t tag, std::byte *data,
                                              int64_t bytes, const std::string &type,
                                              Deadline deadline, ReceiveWork::Completion then) {
  auto work = std::make_shared<ReceiveWork>(shared_from_this(), peer, tag, data, bytes, type,
                                            deadline, std::move(then));
  if (Status status = checkPeer(peer, tag, true); !status.ok())
    work->complete(status.in("receive"));
  else
    job.submit(Job::kIndependent, work);
  return work;
}

bool Mailbox::fits(ReceiveWork &work, int64_t from, const Head &head) {
  work.source = from;
  if (work.type == head.type && work.bytes == head.bytes)
    return true;
  work.result = Status::error("rank " + std::to_string(from) + " sends " + head.type +
                              ", and this rank receives " + work.type);
  return false;
}

/// Matches an early message, or waits for a later one.
void Mailbox::await(ReceiveWork &work) {
  for (auto each = kept.begin(); each != kept.end(); ++each)
    if (each->head.tag == work.tag && (work.peer < 0 || work.peer == each->from)) {
      if (fits(work, each->from, each->head)) {
        if (work.bytes > 0)
          std::memcpy(work.data, each->data.data(), each->data.size());
        work.result = Status();
      }
      kept.erase(each);
      return;
    }
  awaiting.push_back(&work);
  record(work);
}

/// Records the receive, so that it fails if its sender leaves without sending. Receives from any
/// rank are not recorded.
void Mailbox::record(ReceiveWork &work) {
  if (work.peer < 0)
    return;
  auto shape = std::make_shared<CallShape>();
  shape->kind = "receive";
  shape->text = work.what;
  shape->stream = streamOf(work.peer, job.transport().rank());
  shape->group = {work.peer};
  shape->isReceive = true;
  auto place = std::find(members.begin(), members.end(), work.peer) - members.begin();
  work.sequence = job.log().receive(shape, incoming[place].count);
}

Status Mailbox::advance() {
  for (size_t place = 0; place < members.size(); ++place) {
    bool goesOn = true;
    while (goesOn) {
      auto is = [&](int64_t peer) {
        return std::any_of(awaiting.begin(), awaiting.end(),
                           [&](ReceiveWork *work) { return work->peer == peer; });
      };
      bool isBusy = incoming[place].dataRequest != 0;
      if (!isBusy && !is(members[place]) && !is(-1))
        break;
      auto moved = advance(place);
      if (!moved && (isBusy || is(members[place])))
        return moved.status();
      if (!moved)
        incoming[place].ended = moved.message(); // others may still send to receives from any rank
      goesOn = moved && *moved;
    }
  }
  bool areAllGone = true;
  for (size_t place = 0; place < members.size(); ++place)
    areAllGone = areAllGone && !incoming[place].ended.empty();
  if (areAllGone && !awaiting.empty())
    return Status::error(incoming.back().ended);
  return {};
}

/// Advances messages of a rank; returns whether any progress was made.
Expected<bool> Mailbox::advance(size_t place) {
  Incoming &now = incoming[place];
  Transport &transport = job.transport();
  if (!now.ended.empty())
    return Status::error(now.ended);
  if (now.dataRequest != 0) {
    auto isDone = transport.test(now.dataRequest);
    if (isDone && *isDone)
      finish(place);
    return isDone;
  }
  if (now.headRequest == 0) {
    auto posted = transport.receive(channel, members[place],
                                    reinterpret_cast<std::byte *>(&now.head), sizeof(Head));
    if (!posted)
      return posted.status();
    now.headRequest = *posted;
  }
  auto isDone = transport.test(now.headRequest);
  if (!isDone || !*isDone)
    return isDone;
  now.headRequest = 0;
  TESSERA_RETURN_IF_ERROR(begin(place));
  return true;
}

/// Receives the message of a head: into its receive, or into memory.
Status Mailbox::begin(size_t place) {
  Incoming &now = incoming[place];
  auto found = std::find_if(awaiting.begin(), awaiting.end(), [&](ReceiveWork *work) {
    return work->tag == now.head.tag && (work->peer < 0 || work->peer == members[place]);
  });
  now.target = nullptr;
  bool isAwaited = found != awaiting.end();
  if (isAwaited) {
    if (fits(**found, members[place], now.head))
      now.target = *found;
    awaiting.erase(found);
  }
  std::byte *data = now.target ? now.target->data : nullptr;
  if (!now.target) {
    now.data.resize(static_cast<size_t>(now.head.bytes));
    data = now.data.data();
    now.head.tag = isAwaited ? -1 : now.head.tag; // one that failed its receive is dropped
  }
  auto posted = job.transport().receive(channel, members[place], data, now.head.bytes);
  if (!posted)
    return posted.status();
  now.dataRequest = *posted;
  return {};
}

void Mailbox::finish(size_t place) {
  Incoming &now = incoming[place];
  now.dataRequest = 0;
  if (now.target)
    now.target->result = Status();
  else if (now.head.tag >= 0)
    kept.push_back({members[place], now.head, std::move(now.data)});
  now.target = nullptr;
  now.data = {};
  ++now.count;
  for (ReceiveWork *work : awaiting)
    if (work->sequence >= 0 && work->peer == members[place])
      job.log().setPlace(work->sequence, now.count);
}

} // namespace tessera::runtime
