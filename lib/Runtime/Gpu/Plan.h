//===- Plan.h - Steps as operations on streams ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every device of a part issues, decided once. Straight code (and loops
// with known bounds, unrolled) is a segment: operations on streams, with the
// waits that their accesses make necessary and no others. A segment can be
// captured as a graph. Only control flow that depends on data stands between
// segments, and only there does the host wait.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_PLAN_H
#define TESSERA_LIB_RUNTIME_GPU_PLAN_H

#include "../Execution/Code.h"
#include "../Ranks/RankPlan.h"

#include <memory>

namespace tessera::runtime::gpu {

/// Bytes at an address (Address.h).
struct Access {
  int64_t begin = 0, bytes = 0;
  bool write = false;
};

struct Operation {
  enum class Kind { launch, gemm, contract, copy, index, collective, none };
  Kind kind = Kind::none;
  const Step *step = nullptr; ///< of the program
  int64_t index = 0;          ///< of the collective in the plan
  int64_t slot = 0;           ///< that an `index` is written to
  int64_t value = 0;          ///< of an `index`
  int64_t stream = 0;
  std::shared_ptr<const std::vector<Access>> accesses;
  std::vector<int64_t> waits; ///< events, waited for before it
  int64_t record = -1;        ///< event, recorded behind it
  /// Of a `gemm`, products beside `step` that differ from it in where their operands are, each as
  /// far behind the one before; no result is an operand, or a part of another result.
  std::vector<const Step *> group = {};
};

struct Segment {
  std::vector<Operation> operations;
};

/// The code between segments. Targets are places in Plan::code.
struct PlanStep {
  enum class Op {
    segment, ///< `index` in Plan::segments
    send,    ///< a transfer; `index` is its id
    recv,
    loopBegin,  ///< reads the bounds of loop `index`, to `target` when there is no trip
    loopNext,   ///< another trip of loop `index`: to `target`
    jumpIfZero, ///< slot `index`
    jump
  };
  Op op;
  const Step *step;
  int64_t index = 0;
  int64_t target = 0;
  int64_t order = 0;
};

struct PlannedCollective {
  const Step *step;
  RankPlan ranks;
  std::vector<Access> accesses;
};

struct PlanOptions {
  /// Loops with known bounds are unrolled while a segment stays below so many operations.
  int64_t maxOperations = 20000;
  /// Collectives in one process, as kernels over all buffers: they need no communicators.
  bool inProcess = false;
  ReducesExactly reducesExactly = librariesReduceExactly; ///< of the engine
};

/// Streams of a device: 0 computes, the last one copies, between them one for each way in which
/// collectives group the devices (a mesh axis, mostly), and one for transfers.
struct Plan {
  std::vector<PlanStep> code;
  std::vector<Segment> segments;
  std::vector<PlannedCollective> collectives;
  std::vector<std::vector<std::vector<int64_t>>> groupings; ///< of stream 1 + i: groups of ids
  std::vector<std::string> streamNames;
  std::vector<int64_t> stagingBytes; ///< by stream
  int64_t numEvents = 0;
  int64_t numLoops = 0;
  int64_t workspaceBytes = 0;
  bool hasTransfers = false;

  int64_t copyStream() const { return static_cast<int64_t>(streamNames.size()) - 1; }
  int64_t transferStream() const { return copyStream() - 1; }
  /// Whether one segment is all there is: the whole step is one graph.
  bool isOneSegment() const { return code.size() == 1 && code[0].op == PlanStep::Op::segment; }
};

/// Whether a copy reads some of the bytes that it writes, elsewhere: it goes through the staging of
/// the stream that copies.
bool overlaps(const Part &part, const CopyStep &copy);

/// `program` outlives the plan. `workspaceBytes` is what kernels and products need.
Plan planPart(const Program &program, int64_t part, int64_t workspaceBytes,
              const PlanOptions &options);

/// Adds waits, records and events so that operations with conflicting accesses are ordered, and all
/// streams start after, and end before, stream 0. Events are reused within a segment, and by all
/// segments; returns how many there are.
int64_t orderSegment(Segment &segment, int64_t numStreams);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_PLAN_H
