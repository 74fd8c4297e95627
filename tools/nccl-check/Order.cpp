//===- Order.cpp - Comparison of the calls of ranks -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace tessera::nccl_check {

Order::Order(std::string folder, std::string name, int rank, int ranks)
    : folder(std::move(folder)), name(std::move(name)), rank(rank), ranks(ranks),
      others(static_cast<size_t>(ranks), -1) {
  mine = ::open(pathOf(rank).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

Order::~Order() {
  for (int each : others)
    if (each >= 0)
      ::close(each);
  if (mine >= 0)
    ::close(mine); // the file remains: others may still have to read it
}

std::string Order::pathOf(int of) const {
  return folder + "/" + name + "." + std::to_string(of);
}

static Call callOf(const Note &note, int ranks) {
  Call call;
  call.kind = static_cast<Kind>(note.kind);
  call.count = note.count;
  call.type = note.type;
  call.operation = note.operation;
  call.peer = note.peer;
  call.ranks = ranks;
  return call;
}

std::string Order::add(const Call &call) {
  if (mine < 0)
    return "the folder '" + folder +
           "' cannot be written; set TESSERA_NCCL_CHECK_DIR to a folder that all ranks share";
  // Handles of operations defined by callers differ between ranks.
  Note note{++sequence,
            call.count,
            static_cast<uint32_t>(call.kind),
            call.type,
            std::min(call.operation, kNumOperations),
            call.peer};
  auto place = static_cast<off_t>(sequence % kKept * sizeof(Note));
  if (::pwrite(mine, &note, sizeof(note), place) != sizeof(note))
    return "the folder '" + folder + "' is full";
  for (int other = 0; other < ranks; ++other) {
    if (other == rank)
      continue;
    if (others[other] < 0)
      others[other] = ::open(pathOf(other).c_str(), O_RDONLY | O_CLOEXEC);
    Note theirs;
    if (others[other] < 0 ||
        ::pread(others[other], &theirs, sizeof(theirs), place) != sizeof(theirs) ||
        theirs.sequence != sequence || theirs.kind >= kNumKinds)
      continue; // not written yet, or overwritten
    if (theirs.kind != note.kind || theirs.count != note.count || theirs.type != note.type ||
        theirs.operation != note.operation || theirs.peer != note.peer)
      return "call " + std::to_string(sequence) + " of the communicator is " + describe(call) +
             ", on rank " + std::to_string(other) + " it is " + describe(callOf(theirs, ranks));
  }
  return "";
}

} // namespace tessera::nccl_check
