//===- Code.h - A part's steps as a flat list with jumps --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device must be able to stop anywhere and release its worker, so its state is a
// program counter and a table of loop states, not a call stack.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_CODE_H
#define TESSERA_LIB_RUNTIME_EXECUTION_CODE_H

#include "tessera/Runtime/Artifact/Program.h"

namespace tessera::runtime {

struct Instruction {
  enum class Op {
    launch,
    gemm,
    collective,
    wait,
    send,
    recv,
    copy,
    contract,
    loopBegin,  ///< evaluates the bounds of loop `index`; no trip: to `target`
    loopNext,   ///< another trip: to `target`
    jumpIfZero, ///< slot `index` is 0: to `target`
    jump
  };
  Op op;
  const Step *step; ///< owned by the program, which outlives the code
  int64_t order;
  /// Collective or transfer in order of appearance; for a wait, the collective that it ends.
  int64_t index = 0;
  int64_t target = 0;
  const Step *joined = nullptr; ///< of a product: the launch by blocks that joins it
};

/// The code of one part.
struct Code {
  std::vector<Instruction> instructions;
  std::vector<const Step *> collectives;
  int64_t numLoops = 0;
};

Code flatten(const Part &part);

/// How often a loop runs; `step` is positive.
int64_t tripsOf(int64_t lower, int64_t upper, int64_t step);

/// A counted loop of one device.
class LoopState {
public:
  /// Begins; false without trips. Fails, naming device and loop, unless `step` is positive.
  Expected<bool> begin(int64_t lower, int64_t upper, int64_t step, const Step &loop,
                       int64_t device);
  /// Begins the next trip; false after the last.
  bool next();
  /// The induction variable in the current trip.
  int64_t value() const { return now; }

private:
  int64_t now = 0, step = 0, left = 0;
};

/// The integer in a slot that controls execution: a bound or a condition.
int64_t readInteger(DType dtype, const void *at);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_CODE_H
