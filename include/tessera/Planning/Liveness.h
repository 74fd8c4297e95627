//===- Liveness.h - When values take memory -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the code generator will make of a function, as far as its memory goes, in both
// views. Times are those of kernels and other steps in the order in which they run.
//
//   argument                   kept for ever
//   value of an op             from its kernel to the last that reads it; what a loop reads
//                              from outside, to the loop's end
//   reshape, transposition     the operand's bytes (the latter where contractions alone
//   for contractions, slice    read it; a slice that is a part of the bytes or that kernels
//                              cut out themselves)
//   operand of a product that  a copy in rows while the product runs, where the operand is
//   has no layout of a gemm    read later, too
//   fill, constant             nothing
//   handed on within a kernel  nothing: FuseGraph says which ops are one kernel, and that it
//                              runs where the last of them stands
//   operand that dies          its bytes are a result's, where the kernel reads and writes
//                              elements in the same order, and of an accumulator
//   result that replaces an    the argument's bytes, where nothing reads the argument later;
//   argument, what a loop      likewise the carry's
//   carries on
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

class Liveness {
public:
  /// `isSent`: whether a plan that is not in the text yet sends what an operand reads.
  explicit Liveness(mlir::func::FuncOp function, FuseGraph::IsSent isSent = nullptr);

  enum class Kind {
    own,    ///< takes its bytes
    inside, ///< takes no memory while all its readers read it in place
    view,   ///< of another value, whose life covers this one's
    copy,   ///< of a value that others still read, made for an op by the code generator
  };
  struct LiveRange {
    int64_t from = 0, to = -1; ///< inclusive; empty: takes nothing
    Kind kind = Kind::own;
    bool isTaken = false; ///< from then on its bytes are another value's
  };
  /// The ops of a block but for its terminator as kernels, single ops too, in the order in which
  /// they run.
  static std::vector<std::vector<mlir::Operation *>> kernelsOf(mlir::Block &block,
                                                               FuseGraph::IsSent isSent = nullptr);
  /// Whether an op makes no bytes of its own: a reshape, a slice that its readers can take where it
  /// lies, or a transposition that goes into the contractions that read it.
  static bool isView(mlir::Operation *op);
  /// An empty life for what is unknown.
  LiveRange of(mlir::Value value) const { return lives.lookup(value); }
  int64_t timeOf(mlir::Operation *op) const { return timeline.start(op); }
  /// A number of the kernel that an op is in.
  int64_t kernelOf(mlir::Operation *op) const { return timeline.start(op); }
  /// Of a loop or branch, when its last op runs.
  int64_t endOf(mlir::Operation *op) const { return timeline.end(op); }
  int64_t end() const { return timeline.end(); }
  /// An op that was added runs at a time.
  void place(mlir::Operation *op, int64_t time) { timeline.set(op, time, time); }
  /// When an operand is read for the first and the last time: by a view when its readers read that,
  /// in a loop from its head to its end.
  std::pair<int64_t, int64_t> readOf(mlir::OpOperand &operand) const;

private:
  void order(mlir::Block &block, FuseGraph::IsSent isSent);
  bool isHandedOn(mlir::Operation *op, mlir::Value value) const;
  void reuse(llvm::ArrayRef<mlir::Operation *> kernel);
  void reuseStarted(WaitOp wait);
  bool runsInPlace(mlir::Value operand, mlir::Value result) const;
  void replaceArguments(mlir::func::FuncOp function);
  void replaceCarries(mlir::func::FuncOp function);
  void replaceStack(mlir::Value carry, mlir::Value last);
  void reuseInits(mlir::scf::ForOp loop);

  llvm::DenseMap<mlir::Value, LiveRange> lives;
  Timeline timeline;
  std::vector<std::vector<mlir::Operation *>> kernels; ///< in the order in which they run
};

/// The value whose bytes a value is a view of: itself for most.
mlir::Value rootOf(mlir::Value value);

/// Calls `visit` with each value of a function in the local view that takes bytes of its own, and
/// with those that are copied, in order, and how many: those that the arena aligns it to.
void forEachOwn(mlir::func::FuncOp function, const Liveness &lives,
                llvm::function_ref<void(mlir::Value, Liveness::LiveRange, double)> visit);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_LIVENESS_H
