//===- Liveness.h - Live ranges of values in memory -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models the memory of the code that the code generator emits for a function, in both
// views. Times count kernels and other steps in execution order.
//
//   argument                   always live
//   value of an op             from its kernel to its last reader; values from outside of a
//                              loop, to the loop's end
//   reshape, transposition     the operand's bytes (transpositions only if all readers are
//   for contractions, slice    contractions; slices if they are contiguous or if the
//                              reading kernels extract them)
//   operand of a product       a copy in rows while the product runs, if the operand has
//   without a gemm layout      later readers
//   fill, constant             none
//   value inside a kernel      none: FuseGraph assigns ops to kernels, and a kernel runs at
//                              the position of its last op
//   operand that dies          its bytes become a result's, if the kernel reads and writes
//                              elements in the same order; also those of an accumulator
//   product added to an        none; one of its operands has a scaled copy
//   argument
//   result that replaces an    the argument's bytes, if the argument has no later reader;
//   argument, loop-carried     likewise the carry's
//   value
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_LIVENESS_H
#define TESSERA_PLANNING_LIVENESS_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Fusion/FuseGraph.h"
#include "tessera/Planning/Timeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// The live ranges of all values of a function, in bytes per device.
class Liveness {
public:
  /// `isSent`: whether a plan that is not yet in the IR sends the value of an operand.
  explicit Liveness(mlir::func::FuncOp function, FuseGraph::IsSent isSent = nullptr);

  enum class Kind {
    own,    ///< has its own bytes
    inside, ///< takes no memory as long as all its readers read it in place
    view,   ///< of another value, whose live range covers this one's
    copy,   ///< made by the code generator for an op, of a value with other readers
  };
  struct LiveRange {
    int64_t from = 0, to = -1; ///< inclusive; empty: takes no memory
    Kind kind = Kind::own;
    bool isTaken = false; ///< after `to` another value reuses its bytes
  };
  /// The ops of a block except its terminator as kernels, including single ops, in execution order.
  static std::vector<std::vector<mlir::Operation *>> kernelsOf(mlir::Block &block,
                                                               FuseGraph::IsSent isSent = nullptr);
  /// Whether an op has no bytes of its own: a reshape, a slice that its readers can read in place,
  /// or a transposition that becomes part of the contractions that read it.
  static bool isView(mlir::Operation *op);
  /// The live range of a value; empty if the value is unknown.
  LiveRange of(mlir::Value value) const { return lives.lookup(value); }
  int64_t timeOf(mlir::Operation *op) const { return timeline.start(op); }
  /// The number of the kernel of an op.
  int64_t kernelOf(mlir::Operation *op) const { return timeline.start(op); }
  /// The time of the last op of a loop or branch.
  int64_t endOf(mlir::Operation *op) const { return timeline.end(op); }
  int64_t end() const { return timeline.end(); }
  /// Sets the time of an op that was added.
  void place(mlir::Operation *op, int64_t time) { timeline.set(op, time, time); }
  /// The times of the first and the last read of an operand: for a view those of its readers, for a
  /// loop its begin and end.
  std::pair<int64_t, int64_t> readOf(mlir::OpOperand &operand) const;

private:
  void order(mlir::Block &block, FuseGraph::IsSent isSent);
  bool isHandedOn(mlir::Operation *op, mlir::Value value) const;
  void reuse(llvm::ArrayRef<mlir::Operation *> kernel);
  void reuseStarted(WaitOp wait);
  bool runsInPlace(mlir::Value operand, mlir::Value result) const;
  void addUpdates(mlir::func::FuncOp function, FuseGraph::IsSent isSent);
  void replaceArguments(mlir::func::FuncOp function);
  void replaceCarries(mlir::func::FuncOp function);
  void replaceStack(mlir::Value carry, mlir::Value last);
  void reuseInits(mlir::scf::ForOp loop);

  llvm::DenseMap<mlir::Value, LiveRange> lives;
  Timeline timeline;
  std::vector<std::vector<mlir::Operation *>> kernels; ///< in execution order
};

/// The value whose bytes `value` views; for most values the value itself.
mlir::Value rootOf(mlir::Value value);
/// The tensor of which an op changes some elements: an insertion's or a scatter's; null for others.
mlir::Value updatedBy(mlir::Operation *op);

/// Calls `visit` for each value of a function in the local view that has bytes of its own, and for
/// each copy of a value, in program order, with its bytes in the arena.
void forEachOwn(mlir::func::FuncOp function, const Liveness &lives,
                llvm::function_ref<void(mlir::Value, Liveness::LiveRange, double)> visit);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_LIVENESS_H
