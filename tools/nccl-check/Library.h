//===- Library.h - NCCL and the communicators in use ------------*- C++ -*-===//
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

/// The function pncclX of the library, which is opened at the first call; null, with a message, if
/// there is none.
void *realFunction(const char *name);
#define REAL(function) reinterpret_cast<decltype(&n##function)>(realFunction("pn" #function))

/// Writes "nccl-check: function: why".
Result wrong(const char *function, const std::string &why, Result result = kInvalidUsage);

struct Communicator {
  std::string name;          ///< equal on all ranks; empty: unknown, ranks are not compared
  int rank = -1, ranks = -1; ///< -1: queried at the first use
  bool isFinalized = false;
  std::map<std::string, int> children; ///< number of communicators created from it, by method
  std::set<int> operations;            ///< defined by callers
  std::unique_ptr<Order> order;
  std::unique_ptr<Messages> messages;

  /// The remaining messages when its rank makes no more calls; empty for none.
  std::string end();
};

/// The communicators of this process. Call every member but `mutex` with the mutex held.
class Communicators {
public:
  static Communicators &all();
  std::mutex mutex;

  /// NCCL was asked to set `*address`. It is set at the end of the call, or, within a group or
  /// without blocking, stays null until the group's end or until `parent` is no longer in progress.
  void expect(Comm *address, Comm parent, Communicator communicator);
  /// `parent` is no longer in progress: communicators created from it are set.
  void settle(Comm parent);
  /// This thread's outermost group has ended.
  void settleGroup(Result result);

  /// Empty, or the reason why `comm` cannot be used. Communicators with unobserved creation are
  /// accepted.
  std::string find(Comm comm, Communicator *&found);
  void forget(Comm comm);
  /// The folder for notes of calls: TESSERA_NCCL_CHECK_DIR, or a folder of this process.
  const std::string &folder();
  /// Ends the notes. Reports remaining messages, and removes its own folder.
  void end();
  bool hasEnded() const { return ended; }

private:
  struct Pending {
    Comm parent, *address;
    const void *group; ///< of the thread in whose group it is created
    Communicator communicator;
  };
  void settleIf(bool (*isDone)(const Pending &, const void *), const void *what);

  std::map<Comm, Communicator> communicators; ///< iterated only at the end
  std::set<Comm> destroyed;
  std::vector<Pending> pending;
  std::string notes;
  int process = 0;        ///< that writes the notes; forked processes write none at their end
  bool ownsNotes = false; ///< whether it created their folder
  bool ended = false;
};

/// Groups that this thread has started and not ended.
int &groupDepth();

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_LIBRARY_H
