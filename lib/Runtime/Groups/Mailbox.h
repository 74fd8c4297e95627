//===- Mailbox.h - Messages between two ranks of a group --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_MAILBOX_H
#define TESSERA_LIB_RUNTIME_GROUPS_MAILBOX_H

#include "Job.h"

#include <list>
#include <optional>

namespace tessera::runtime {

class Mailbox;

/// A pending receive; `source` is the sender, once it is done.
class ReceiveWork final : public Work {
public:
  /// `then` runs after the message has arrived, in the job's thread.
  using Completion = std::function<Status()>;
  ReceiveWork(std::shared_ptr<Mailbox> mailbox, int64_t peer, int64_t tag, std::byte *data,
              int64_t bytes, std::string type, Deadline deadline, Completion then);
  Expected<bool> advance() override;
  std::string awaited() const override;

  int64_t source = -1;

private:
  friend class Mailbox;
  const std::shared_ptr<Mailbox> mailbox;
  const int64_t peer, tag; ///< peer -1: any
  std::byte *const data;
  const int64_t bytes;
  const std::string type;
  const Completion then;
  bool isKnown = false;  ///< to the mailbox
  int64_t sequence = -1; ///< in the record, or -1
  std::optional<Status> result;
};

/// A head with tag and type precedes each message, to match it with its receive; a receive of
/// another size or type fails with both named. Unexpected messages are kept. Used by the job's
/// thread, except `send` and `receive`.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
public:
  /// `group` is its name in the record.
  Mailbox(Job &job, int64_t channel, std::vector<int64_t> members, std::string group);

  /// `keeps` lives as long as the work.
  WorkPtr send(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
               const std::string &type, Deadline deadline, std::shared_ptr<void> keeps = nullptr);
  std::shared_ptr<ReceiveWork> receive(int64_t peer, int64_t tag, std::byte *data, int64_t bytes,
                                       const std::string &type, Deadline deadline,
                                       ReceiveWork::Completion then = nullptr);

private:
  friend class ReceiveWork;
  class SendWork;
  struct Head {
    int64_t tag = 0, bytes = 0;
    char type[112] = {}; ///< "16 f32"
  };
  struct UnexpectedMessage {
    int64_t from;
    Head head;
    std::vector<std::byte> data;
  };
  /// The current message from a peer: a head, then its data.
  struct Incoming {
    Head head;
    Transport::Request headRequest = 0, dataRequest = 0;
    ReceiveWork *target = nullptr; ///< null: it is kept
    std::vector<std::byte> data;
    std::string ended; ///< why no more messages come
    int64_t count = 0; ///< messages received
  };

  Status checkPeer(int64_t peer, int64_t tag, bool mayBeAny) const;
  void await(ReceiveWork &work);
  void record(ReceiveWork &work);
  std::string streamOf(int64_t from, int64_t to) const;
  Status advance();
  Expected<bool> advance(size_t place);
  Status begin(size_t place);
  void finish(size_t place);
  /// Whether a message fits its receive; otherwise fails the receive.
  static bool fits(ReceiveWork &work, int64_t from, const Head &head);

  Job &job;
  const int64_t channel;
  const std::vector<int64_t> members;
  const std::string group;
  std::list<ReceiveWork *> awaiting; ///< in the order of their calls
  std::list<UnexpectedMessage> kept;
  std::vector<Incoming> incoming; ///< by place
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_MAILBOX_H
