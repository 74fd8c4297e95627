//===- Interpreter.h - The reference interpreter ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs programs slowly and obviously, element by element. The global view runs
// on one device; the local view on a made-up process grid, where every device of
// every mesh has its own values and collectives move them between devices. It is
// what all other ways of execution are compared with, so nothing here is clever.
//
// One thread runs everything: a device runs until it needs others, then the next
// one. So the order of events is fixed, and a device that never arrives at a
// collective is found at once instead of waited for.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_INTERPRETER_H
#define TESSERA_INTERPRETER_INTERPRETER_H

#include "tessera/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera::interpreter {

struct Options {
  /// What undefined elements hold: `tensor.empty`, padding of uneven shards, the results of a
  /// rooted collective elsewhere than at its root.
  Poison poison = Poison::nan;
  /// Executed operations (a whole linalg op is one) after which a run is given up with an error: a
  /// loop that does not end must not hang a test. Counted over all devices.
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

/// Runs a function of the global view on one device. Annotations change nothing:
/// `dist.shard_tensor` and `dist.reshard` are identities. Inputs are the arguments in order,
/// scalars as tensors of rank 0; so are the results. Fails with a located error at the op that
/// could not be executed: unknown, without a result, a check op
/// that does not hold, an input of another type.
mlir::FailureOr<llvm::SmallVector<Tensor>>
runGlobal(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs, const Options &options = {});

/// Runs the local functions that are parts of the function called `name` (`dist.part_of`, or their
/// own name where that is absent), on all their devices. Inputs and results are global: an input is
/// cut by its argument's sharding (to a partial argument as replicate -> partial), a result is put
/// together from its valid boxes, a partial one reduced. Fails as `runGlobal` does, and when
/// devices that hold the same part of a result differ in any bit, when some device never arrives at
/// a collective, or when a `dist.recv` has no `dist.send`.
mlir::FailureOr<llvm::SmallVector<Tensor>> runLocal(mlir::ModuleOp module, llvm::StringRef name,
                                                    llvm::ArrayRef<Tensor> inputs,
                                                    const Options &options = {});

/// The global arguments of a function of either view. Fails when no function has that name, or an
/// argument is neither a scalar nor a ranked tensor of static shape.
mlir::FailureOr<llvm::SmallVector<Argument>> globalArguments(mlir::ModuleOp module,
                                                             llvm::StringRef name);

/// The functions of a module that can be run, in order: the public ones of the global view, or the
/// names that its local functions are parts of when it has any.
llvm::SmallVector<std::string> runnableFunctions(mlir::ModuleOp module);
/// Whether the module has functions of the local view.
bool hasLocalView(mlir::ModuleOp module);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_INTERPRETER_H
