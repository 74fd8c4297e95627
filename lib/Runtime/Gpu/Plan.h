//===- Plan.h - Lower steps to operations on streams ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work that every device of a part issues, planned once. Straight-line code
// (and unrolled loops with known bounds) is a segment: operations on streams, with
// exactly the waits that their accesses require. A segment can be captured as a
// graph. Only data-dependent control flow separates segments, and only there does
// the host wait.
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
  int64_t index = 0;          ///< of the collective, in the plan
  int64_t slot = 0;           ///< of the result of an `index`
  int64_t value = 0;          ///< of an `index`
  int64_t stream = 0;
  std::shared_ptr<const std::vector<Access>> accesses;
  std::vector<int64_t> waits; ///< events to wait for before it
  int64_t record = -1;        ///< event recorded after it
  /// Further products of a `gemm`, which differ from `step` only in the places of their operands,
  /// each at the same distance from the one before; no result overlaps an operand or another
  /// result.
  std::vector<const Step *> group = {};
};

struct Segment {
  std::vector<Operation> operations;
};

/// The code between segments. Targets are places in Plan::code.
struct PlanStep {
  enum class Op {
    segment, ///< `index` in Plan::segments
    send,    ///< of a transfer; `index` is its id
    recv,
    loopBegin,  ///< reads the bounds of loop `index`; to `target` without a trip
    loopNext,   ///< to `target` for another trip of loop `index`
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
  /// Loops with known bounds are unrolled as long as a segment has fewer operations.
  int64_t maxOperations = 20000;
  /// Collectives are kernels over all buffers in one process, without communicators.
  bool inProcess = false;
  ReducesExactly reducesExactly = librariesReduceExactly; ///< of the engine
};

/// Streams of a device: 0 computes and the last one copies. Between them are one stream for each
/// grouping of the devices by collectives (mostly a mesh axis), and one for transfers.
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
  /// Whether the plan is a single segment, so that the whole step is one graph.
  bool isOneSegment() const { return code.size() == 1 && code[0].op == PlanStep::Op::segment; }
};

/// Whether a copy writes bytes that it also reads, at other positions: it then uses the staging
/// memory of its stream.
bool overlaps(const Part &part, const CopyStep &copy);

/// `program` must outlive the plan. `workspaceBytes` is the workspace of kernels and products.
Plan planPart(const Program &program, int64_t part, int64_t workspaceBytes,
              const PlanOptions &options);

/// Adds waits, records and events so that operations with conflicting accesses are ordered, and all
/// streams start after, and end before, stream 0. Events are reused within a segment and across
/// segments; returns their number.
int64_t orderSegment(Segment &segment, int64_t numStreams);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_PLAN_H
