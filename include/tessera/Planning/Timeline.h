//===- Timeline.h - When ops run and values are read ------------*- C++ -*-===//
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
  /// Whether reading what an op makes is reading its operands: of views.
  using IsView = bool (*)(mlir::Operation *);
  /// Without times; see `next` and `set`.
  explicit Timeline(IsView isView) : isView(isView) {}
  /// Each op of the function is a step, in the order of the text.
  Timeline(mlir::func::FuncOp function, IsView isView);

  /// Begins the next step, and returns its time.
  int64_t next() { return ++last; }
  void set(mlir::Operation *op, int64_t start, int64_t end) { times[op] = {start, end}; }
  bool knows(mlir::Operation *op) const { return times.count(op); }

  int64_t start(mlir::Operation *op) const { return times.lookup(op).first; }
  /// The time of the last op within `op`, or behind it.
  int64_t end(mlir::Operation *op) const { return times.lookup(op).second; }
  /// After the last step.
  int64_t end() const { return last; }

  /// When the content of `value` is read for the last time, through views too; 0 when never. What
  /// a loop reads that is made outside is read until the loop's end. What an asynchronous
  /// collective reads is read until its wait. A loop or branch that takes a value over reads it at
  /// its head; its results are values of their own. The arguments of a while's body are views of
  /// what its condition passes on.
  int64_t lastUse(mlir::Value value);

  /// Whether nothing but the collective in `start` reads `value` when that starts or later.
  bool diesInStart(mlir::Value value, StartOp start);

  /// The outermost loop around `user` that does not contain `value`, else `user`: while it runs,
  /// the value is read.
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
