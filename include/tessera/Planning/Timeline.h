//===- Timeline.h - Times of ops and of reads -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_TIMELINE_H
#define TESSERA_PLANNING_TIMELINE_H

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// Times of a function's ops and last uses of its values. A loop or branch spans from its head to
/// its end. Time 0 is before the first op.
class Timeline {
public:
  /// Whether an op is a view: readers of its result read its operands.
  using IsView = bool (*)(mlir::Operation *);
  /// Without times; see `next` and `set`.
  explicit Timeline(IsView isView) : isView(isView) {}
  /// Each op of the function is a step, in program order.
  Timeline(mlir::func::FuncOp function, IsView isView);

  /// Starts the next step and returns its time.
  int64_t next() { return ++last; }
  void set(mlir::Operation *op, int64_t start, int64_t end) { times[op] = {start, end}; }
  bool knows(mlir::Operation *op) const { return times.count(op); }

  int64_t start(mlir::Operation *op) const { return times.lookup(op).first; }
  /// The time of the last op inside `op`, or of `op` itself.
  int64_t end(mlir::Operation *op) const { return times.lookup(op).second; }
  /// The time of the last step.
  int64_t end() const { return last; }

  /// The time of the last read of the content of `value`, also through views; 0 if there is none.
  /// Values from outside of a loop are read until the loop's end. The operand of an asynchronous
  /// collective is read until its wait. A loop or branch reads the values that it forwards at its
  /// head; its results are separate values. The arguments of a while's body are views of the values
  /// that its condition forwards.
  int64_t lastUse(mlir::Value value);

  /// Whether the collective in `start` is the only reader of `value` from its start on.
  bool diesInStart(mlir::Value value, StartOp start);

  /// The outermost loop around `user` that does not contain `value`, else `user`: the value is read
  /// while this op runs.
  static mlir::Operation *readerOf(mlir::Value value, mlir::Operation *user);

private:
  int64_t lastUseUncached(mlir::Value value);
  int64_t lastUseOf(mlir::OpOperand &use);

  IsView isView;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> times; ///< never iterated
  llvm::DenseMap<mlir::Value, int64_t> known;                           ///< never iterated
  int64_t last = 0;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_TIMELINE_H
