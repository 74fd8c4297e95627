//===- Messages.cpp - Sends and their receives ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Messages.h"

#include <fcntl.h>
#include <unistd.h>

namespace tessera::nccl_check {

static std::string text(uint64_t value) {
  return std::to_string(value);
}

static off_t placeOf(uint64_t sequence) {
  return static_cast<off_t>(sequence % Order::kKept * sizeof(Note));
}

Messages::Messages(std::string folder, std::string name, int rank, int ranks)
    : folder(std::move(folder)), name(std::move(name)), rank(rank), ranks(ranks) {}

Messages::~Messages() {
  for (auto &[key, side] : sides)
    for (int each : {side.mine, side.theirs})
      if (each >= 0)
        ::close(each); // the file remains: the peer may still have to read it
}

std::string Messages::pathOf(int from, int to, bool sends) const {
  return folder + "/" + name + "." + std::to_string(from) + "-" + std::to_string(to) +
         (sends ? ".send" : ".recv");
}

std::string Messages::pathOfEnd(int of) const {
  return folder + "/" + name + "." + std::to_string(of) + ".end";
}

Messages::Side &Messages::sideOf(int peer, bool sends) {
  auto [it, isNew] = sides.try_emplace({peer, sends});
  if (isNew)
    it->second.mine = ::open(pathOf(sends ? rank : peer, sends ? peer : rank, sends).c_str(),
                             O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  return it->second;
}

/// The note of the other side of a message; false if there is none (any more).
bool Messages::read(Side &side, int peer, bool sends, uint64_t sequence, Note &note) {
  if (side.theirs < 0)
    side.theirs = ::open(pathOf(sends ? rank : peer, sends ? peer : rank, !sends).c_str(),
                         O_RDONLY | O_CLOEXEC);
  return side.theirs >= 0 &&
         ::pread(side.theirs, &note, sizeof(note), placeOf(sequence)) == sizeof(note) &&
         note.sequence == sequence && sizeOfType(note.type) > 0;
}

static std::string amount(uint64_t count, int type) {
  Call call;
  call.kind = Kind::send;
  call.count = count;
  call.type = type;
  std::string all = describe(call);
  return all.substr(all.find(" of ") + 4);
}

std::string Messages::add(const Call &call) {
  bool sends = call.kind == Kind::send;
  Side &side = sideOf(call.peer, sends);
  if (side.mine < 0)
    return "the folder '" + folder +
           "' cannot be written; set TESSERA_NCCL_CHECK_DIR to a folder that all ranks share";
  Note note{++side.sequence, call.count, static_cast<uint32_t>(call.kind), call.type, 0, call.peer};
  if (::pwrite(side.mine, &note, sizeof(note), placeOf(note.sequence)) != sizeof(note))
    return "the folder '" + folder + "' is full";
  Note theirs;
  std::string message = "message " + text(note.sequence) + (sends ? " to" : " from") + " rank " +
                        std::to_string(call.peer) + " is " + amount(call.count, call.type);
  if (read(side, call.peer, sends, note.sequence, theirs)) {
    if (theirs.count == note.count && theirs.type == note.type)
      return "";
    return message + ", that rank " + (sends ? "receives " : "sends ") +
           amount(theirs.count, theirs.type);
  }
  // No note yet: it may still come, unless that rank makes no more calls.
  if (::access(pathOfEnd(call.peer).c_str(), F_OK) == 0 &&
      !read(side, call.peer, sends, note.sequence, theirs))
    return message + ", and that rank has ended the communicator without " +
           (sends ? "receiving it" : "sending it");
  return "";
}

std::string Messages::close() {
  int end = ::open(pathOfEnd(rank).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (end >= 0)
    ::close(end);
  for (int peer = 0; peer < ranks; ++peer)
    for (bool sends : {false, true}) {
      std::string theirs = pathOf(sends ? rank : peer, sends ? peer : rank, !sends);
      if (peer == rank || ::access(theirs.c_str(), F_OK) != 0)
        continue;
      Side &side = sideOf(peer, sends);
      Note note;
      if (read(side, peer, sends, side.sequence + 1, note))
        return "message " + text(note.sequence) +
               (sends ? " is never sent: rank " : " is never received: rank ") +
               std::to_string(peer) + (sends ? " waits for " : " sent ") +
               amount(note.count, note.type);
    }
  return "";
}

} // namespace tessera::nccl_check
