//===- Interpreter.h - The reference interpreter ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs programs element by element, favoring clarity over speed. The global view runs
// on one device; the local view on a simulated process grid, where every device of
// every mesh has its own values and collectives move them between devices. It is the
// reference for all other ways of execution, so the implementation is simple.
//
// One thread runs everything: a device runs until it needs others, then the next one.
// Thus the order of events is fixed, and a device that never arrives at a collective is
// an immediate error instead of a hang.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_INTERPRETER_H
#define TESSERA_INTERPRETER_INTERPRETER_H

#include "tessera/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera::interpreter {

/// Options of a run.
struct Options {
  /// Contents of undefined elements: `tensor.empty`, padding of uneven shards, the results of a
  /// rooted collective except at its root.
  Poison poison = Poison::nan;
  /// Limit on executed operations (a whole linalg op counts as one), summed over all devices.
  /// Beyond it the run fails with an error: a loop that does not end must not hang a test.
  uint64_t maxOperations = 1000000000;
};

/// A global argument of a program: its type (a scalar's or a ranked tensor's), and the bounds
/// [low, high) of random integers.
struct Argument {
  std::string name;
  mlir::Type type;
  int64_t low = 0;
  int64_t high = 2;
};

/// Runs a function of the global view on one device. Annotations have no effect:
/// `dist.shard_tensor` and `dist.reshard` are identities. Inputs are the arguments in order,
/// scalars as tensors of rank 0; likewise the results. Fails with a located error at the op that
/// could not be executed: an unknown op, one without a result, a failed check op, an input of
/// another type.
mlir::FailureOr<llvm::SmallVector<Tensor>>
runGlobal(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs, const Options &options = {});

/// Runs the local functions that are parts of the function called `name` (`dist.part_of`, or their
/// own name without it), on all their devices. Inputs and results are global: an input is cut by
/// its argument's sharding (for a partial argument as replicate -> partial), a result is assembled
/// from its valid boxes, a partial one reduced. Fails like `runGlobal`, and if devices with the
/// same part of a result differ in any bit, if a device never arrives at a collective, or if a
/// `dist.recv` has no `dist.send`.
mlir::FailureOr<llvm::SmallVector<Tensor>> runLocal(mlir::ModuleOp module, llvm::StringRef name,
                                                    llvm::ArrayRef<Tensor> inputs,
                                                    const Options &options = {});

/// The global arguments of a function of either view. Fails if no function has that name, or an
/// argument is neither a scalar nor a ranked tensor of static shape.
mlir::FailureOr<llvm::SmallVector<Argument>> globalArguments(mlir::ModuleOp module,
                                                             llvm::StringRef name);

/// The functions of a module that can be run, in order: the public ones of the global view; if
/// there are local functions, the names of the functions that they are parts of.
llvm::SmallVector<std::string> runnableFunctions(mlir::ModuleOp module);
/// Whether the module has functions of the local view.
bool hasLocalView(mlir::ModuleOp module);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_INTERPRETER_H
