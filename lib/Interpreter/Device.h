//===- Device.h - One device executing one function -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_DEVICE_H
#define TESSERA_LIB_INTERPRETER_DEVICE_H

#include "Evaluator.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera::interpreter {

/// One device: its values, its current op, and its frames. Control flow is a stack of frames kept
/// here rather than on the C++ stack, so that a device can stop in the middle of a loop, wait for
/// others, and resume.
class Device : public Evaluator {
public:
  enum class Status { running, waiting, finished, failed };

  /// A device about to call `function`. `processId` is its id in the meshes of the local view, -1
  /// for the global view on one device.
  Device(Program &program, mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
         int64_t processId = -1);

  /// Runs until it finishes, fails (after an error), or reaches an op in which other devices
  /// participate.
  Status run();
  Status getStatus() const { return status; }
  /// The op at which it waits: a collective, a send, a receive, a start. Null unless it waits.
  mlir::Operation *waitingAt() const;
  /// The collective at which it waits, started or not.
  mlir::Operation *collective() const;
  /// Gives a waiting device the results of its op and resumes it.
  void resume(llvm::ArrayRef<Tensor> results);
  /// The values that the function returned, once finished.
  llvm::ArrayRef<Tensor> getResults() const { return results; }
  int64_t getProcessId() const { return processId; }

private:
  /// A block being executed.
  struct Frame {
    mlir::Block *block;
    mlir::Block::iterator next;
    int64_t induction = 0, upper = 0, step = 0; ///< of scf.for
  };

  void enter(mlir::Block &block, llvm::ArrayRef<Tensor> arguments);
  void enterLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult enterCall(mlir::func::CallOp call);
  /// Executes an op of another dialect in terms of simpler ops.
  mlir::LogicalResult enterDecomposed(mlir::linalg::AggregatedOpInterface op);
  /// Executes one operation of the topmost frame.
  void step();
  void leave(mlir::Operation *terminator);
  /// Ends the topmost frame, passes its values to its parent op, and continues after that op.
  void popFrame(llvm::ArrayRef<Tensor> values);
  void leaveLoop(mlir::scf::ForOp loop, llvm::ArrayRef<Tensor> yielded);
  /// Continues after the current op, and frees values that have no more readers.
  void advance();
  Outcome executeHere(mlir::Operation *op);
  Outcome executeCheck(mlir::Operation *op);
  Outcome executeDist(mlir::Operation *op);
  mlir::Operation *current() const { return &*frames.back().next; }

  mlir::func::FuncOp function;
  int64_t processId;
  Status status = Status::running;
  llvm::SmallVector<Frame> frames;
  llvm::SmallVector<Tensor> results;
};

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_DEVICE_H
