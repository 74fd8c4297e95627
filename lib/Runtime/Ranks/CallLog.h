//===- CallLog.h - The last calls of a rank ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_CALLLOG_H
#define TESSERA_LIB_RUNTIME_RANKS_CALLLOG_H

#include "../Execution/Clock.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tessera::runtime {

/// The constant part of all executions of a call.
struct CallShape {
  int64_t id = -1;            ///< of the step; -1: a call of a process group
  std::string kind, dtype;    ///< "all_reduce", "f32"
  int64_t count = 0;          ///< elements of all operands
  std::string text;           ///< "all_reduce 3 of 16 f32"
  std::string loc;            ///< of the source, may be empty
  std::string stream;         ///< calls of one stream have the same order on all members
  std::vector<int64_t> group; ///< ranks; for a receive the source
  bool isReceive = false;     ///< of a single message: fails only if its sender ends
};
using CallShapePtr = std::shared_ptr<const CallShape>;

/// A call of this rank; times are nanoseconds since the creation of the log, 0 before the event.
struct CallRecord {
  CallShapePtr shape;
  int64_t sequence = 0; ///< of this rank, from 0
  int64_t place = 0;    ///< in its stream, from 0
  int64_t issuedNs = 0, begunNs = 0, endedNs = 0;
};

/// The state of a rank, as reported to others.
struct RankState {
  bool isWaiting = false; ///< for a message
  int64_t counter = 0;    ///< changes with any progress
  int64_t place = 0;      ///< of `call`, in its stream
  CallShapePtr call;      ///< the oldest that has not ended, a receive only if there is no
                          ///< other; else the last; null: none yet
  bool isOpen = false;    ///< `call` has not ended
  int64_t open = 0;       ///< number of calls that have not ended
  std::map<std::string, int64_t> issued; ///< calls by stream
};

/// A ring buffer of the last calls of a rank, and its state. One thread issues and ends calls, any
/// thread may query.
class CallLog {
public:
  static constexpr int64_t kCapacity = 1024; ///< as of the Recorder
  explicit CallLog(int64_t rank);

  /// The number of a new call.
  int64_t issue(CallShapePtr shape);
  void begin(int64_t sequence);
  void end(int64_t sequence);

  /// Records that a message of a stream from this rank to another one has been sent.
  void sent(const std::string &stream);
  /// The number of a new receive of a message of such a stream, of which `place` have arrived.
  int64_t receive(CallShapePtr shape, int64_t place);
  /// Sets the number of messages that have arrived without the awaited one.
  void setPlace(int64_t sequence, int64_t place);

  /// Records progress.
  void progressed() {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    waiting.store(false, std::memory_order_relaxed);
  }
  void waits() { waiting.store(true, std::memory_order_relaxed); }
  void rests() { waiting.store(false, std::memory_order_relaxed); }

  RankState state() const;
  std::vector<CallRecord> last() const; ///< oldest first
  /// The same with the reason of the dump, as JSON.
  std::string dumpText(const std::string &reason) const;
  /// Writes it to `rank-R.N.json` in the folder, where N counts the jobs of this process;
  /// overwrites earlier dumps. Does nothing if `folder` is empty. Errors are printed, since the job
  /// has already failed.
  void dump(const std::string &reason);

  std::string folder;      ///< of dumps
  std::string host, about; ///< for dumps: host and program

private:
  int64_t record(CallShapePtr shape, int64_t place);
  CallRecord &at(int64_t sequence) { return ring[sequence % kCapacity]; }

  const int64_t rank, number;
  const Clock clock;
  mutable std::mutex mutex;
  std::mutex dumping;
  std::vector<CallRecord> ring;
  int64_t issued = 0;
  std::vector<int64_t> open; ///< ascending
  std::map<std::string, int64_t> streams;
  std::atomic<int64_t> counter = 0;
  std::atomic<bool> waiting = false;
};

/// The folder of options; else that of TESSERA_DUMP_DIR; else none.
std::string dumpFolderOf(const std::string &given);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_CALLLOG_H
