//===- OverlapSchedule.h - Times of collectives -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// List scheduling of the steps of one block on the queues of a device (R. L. Graham,
// "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2), 1969). Among
// the steps whose operands are available, the computing queue takes the first in
// program order, so that later steps overtake those that wait for a collective. A step
// also runs early if the steps that depend on it, including communication, would
// otherwise end later than the computation could: thus computation hides the last
// collectives, too.
//
//   all-reduce, reduce-scatter   start as soon as their operands are available: their
//   and others that do not grow  results take no more memory than the operands
//   all-gather and others that   start late enough to end just before their readers, by
//   grow                         modelled times, and only a few ahead of their readers
//
// Of several collectives that may start, the one with the least slack does, and a queue
// is filled only up to the end of the next step: collectives that become ready
// meanwhile may have less slack.
//
// The scheduler is independent of the IR, so that tests can use tables.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H

#include <cstdint>
#include <vector>

namespace tessera::dist {

/// A unit of execution: a kernel, a collective or a loop.
struct OverlapStep {
  double seconds = 0;
  int queue = -1;                ///< of an asynchronous collective; -1: computation
  bool grows = false;            ///< a collective whose result takes more bytes than it frees
  bool isOrdered = false;        ///< keeps its order among the ordered steps
  std::vector<unsigned> sources; ///< earlier steps whose results it reads
  std::vector<int> uses; ///< queues of the collectives in a loop: it starts when they are free
};

struct OverlapLimits {
  bool reorders = true;            ///< steps may run before earlier steps of the program
  bool prioritizesCritical = true; ///< they do so if their longest path to the end has no slack
  int mostAhead = 2; ///< growing collectives per queue that are started and not yet read
};

struct OverlapEvent {
  enum class Kind { run, start, wait } kind = Kind::run;
  unsigned step = 0;
  bool operator==(const OverlapEvent &) const = default;
};

struct OverlapSchedule {
  /// In order: a `run` for each computing step, and for each collective either a `run`, or a
  /// `start` and a `wait` before its first reader.
  std::vector<OverlapEvent> events;
  double seconds = 0; ///< end of the last step
};

/// Time: linear in steps and sources, times a logarithm. Deterministic.
OverlapSchedule scheduleOverlap(const std::vector<OverlapStep> &steps, const OverlapLimits &limits);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H
