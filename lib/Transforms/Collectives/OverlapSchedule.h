//===- OverlapSchedule.h - When collectives start and end -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// List scheduling of the steps of one block on the queues of a device (R. L. Graham,
// "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2), 1969). The
// computing queue takes, of all steps whose operands are there, the first in the order of
// the program, so that what waits for a collective lets later steps go first. A step goes
// before its turn when what follows it, communication included, would otherwise end later
// than computing could: so the last collectives find something to hide behind.
//
//   all-reduce, reduce-scatter   start as soon as their operands are there: their results
//   and what else does not grow  take no more memory than those
//   all-gather and what grows    start late enough to end just before they are read, going by
//                                modelled times, and only a few ahead of their readers
//
// Of several that may start, the one with the least slack does, and a queue is filled no further
// than to the end of the next step: what becomes ready meanwhile may have less.
//
// It knows no IR, so that it is tested with tables.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H

#include <cstdint>
#include <vector>

namespace tessera::dist {

/// A kernel, a collective or a loop: what runs as a whole.
struct OverlapStep {
  double seconds = 0;
  int queue = -1;         ///< of a collective that may start and be waited for later; -1: computing
  bool grows = false;     ///< a collective whose result takes more bytes than it frees
  bool isOrdered = false; ///< keeps its order among the ordered steps
  std::vector<unsigned> sources; ///< earlier steps whose results it reads
  std::vector<int> uses; ///< queues of the collectives in a loop: it starts when they are free
};

struct OverlapLimits {
  bool reorders = true; ///< steps may run before steps that stand before them
  bool hurries = true;  ///< they do so where the longest path from them leaves no slack
  int mostAhead = 2;    ///< collectives that grow, of one queue, that are started and not read yet
};

struct OverlapEvent {
  enum class Kind { run, start, wait } kind = Kind::run;
  unsigned step = 0;
  bool operator==(const OverlapEvent &) const = default;
};

struct OverlapSchedule {
  /// In order: a `run` for each step that computes, and for each collective either a `run` or a
  /// `start` and, in front of its first reader, a `wait`.
  std::vector<OverlapEvent> events;
  double seconds = 0; ///< until the last step is done
};

/// Linear in steps and sources, times a logarithm. The same for the same input.
OverlapSchedule scheduleOverlap(const std::vector<OverlapStep> &steps, const OverlapLimits &limits);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_OVERLAPSCHEDULE_H
