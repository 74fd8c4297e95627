//===- Library.h - NCCL itself, and the communicators in use ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_NCCL_CHECK_LIBRARY_H
#define TESSERA_TOOLS_NCCL_CHECK_LIBRARY_H

#include "Messages.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace tessera::nccl_check {

using Result = int;
using Comm = void *;
using Stream = void *;
constexpr Result kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7;

/// The function pncclX of the library, opened at the first call; null, with a message, when there
/// is none.
void *realFunction(const char *name);
#define REAL(function) reinterpret_cast<decltype(&n##function)>(realFunction("pn" #function))

/// Writes "nccl-check: function: why".
Result wrong(const char *function, const std::string &why, Result result = kInvalidUsage);

struct Communicator {
  std::string name;          ///< equal on all ranks; empty: unknown, ranks are not compared
  int rank = -1, ranks = -1; ///< -1: asked for at the first use
  bool isFinalized = false;
  std::map<std::string, int> children; ///< how many were made of it, by how
  std::set<int> operations;            ///< made by callers
  std::unique_ptr<Order> order;
  std::unique_ptr<Messages> messages;

  /// What is left of its messages when its rank makes no more calls; empty for nothing.
  std::string end();
};

/// The communicators of this process. Every member but `mutex` is called with it held.
class Communicators {
public:
  static Communicators &all();
  std::mutex mutex;

  /// NCCL was asked to set `*address`. It has when the call ends, or, within a group or without
  /// blocking, leaves it null until the group's end or until `parent` is no longer in progress.
  void expect(Comm *address, Comm parent, Communicator communicator);
  /// `parent` is no longer in progress: what was made of it is there.
  void settle(Comm parent);
  /// This thread's outermost group has ended.
  void settleGroup(Result result);

  /// Empty, or why `comm` cannot be used. One that was not seen being made is taken as it is.
  std::string find(Comm comm, Communicator *&found);
  void forget(Comm comm);
  /// Where ranks note their calls: TESSERA_NCCL_CHECK_DIR, or a folder of this process.
  const std::string &folder();
  /// No notes are made after this. Says what is left of messages, and removes its own folder.
  void end();
  bool hasEnded() const { return ended; }

private:
  struct Pending {
    Comm parent, *address;
    const void *group; ///< of the thread in whose group it is made
    Communicator communicator;
  };
  void settleIf(bool (*isDone)(const Pending &, const void *), const void *what);

  std::map<Comm, Communicator> communicators; ///< iterated at the end alone
  std::set<Comm> destroyed;
  std::vector<Pending> pending;
  std::string notes;
  int process = 0;        ///< that makes the notes; those that it forks make none at their end
  bool ownsNotes = false; ///< it made their folder
  bool ended = false;
};

/// Groups that this thread has started and not ended.
int &groupDepth();

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_LIBRARY_H
