//===- Recorder.h - The last collectives, and a trace -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_RECORDER_H
#define TESSERA_LIB_RUNTIME_EXECUTION_RECORDER_H

#include "Clock.h"
#include "tessera/Runtime/Execution/Executor.h"

#include <mutex>

namespace tessera::runtime {

/// A ring buffer of the last collectives, for diagnosis after an error.
class Recorder {
public:
  static constexpr size_t kCapacity = 1024;
  void add(const CollectiveRecord &record);
  std::vector<CollectiveRecord> last() const; ///< oldest first

private:
  mutable std::mutex mutex;
  std::vector<CollectiveRecord> ring;
  size_t next = 0;
};

/// One span on a device's track.
struct TraceEvent {
  const Step *step;
  const char *what; ///< "launch", "gemm", "collective", …
  int64_t beginNs, endNs;
};

/// A device's spans. Written by the worker that runs the device, read while no worker runs.
class Track {
public:
  static constexpr size_t kMaxEvents = 1 << 20; ///< then it stops, and says so
  void add(const TraceEvent &event) {
    if (events.size() < kMaxEvents)
      events.push_back(event);
    else
      full = true;
  }
  std::vector<TraceEvent> events;
  bool full = false;
};

/// Chrome's JSON of several tracks; `names[i]` is the title of track i.
std::string traceJson(const std::vector<const Track *> &tracks,
                      const std::vector<std::string> &names, const Program &program);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_RECORDER_H
