//===- InterpreterCheck.h - The interpreter as a reference ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_INTERPRETERCHECK_H
#define TESSERA_DRIVER_INTERPRETERCHECK_H

#include "tessera/Driver/Commands.h"
#include "tessera/Interpreter/Tensor.h"

namespace tessera {

/// Interprets the program as it was written, on one device, with the inputs and steps of a run, and
/// returns what that run should have given. Errors say which argument or op.
runtime::Expected<runtime::RunReport> interpretReference(const RunOptions &options,
                                                         const runtime::Program &program,
                                                         const runtime::RunReport &report);

/// About how many operations on single elements the interpreter executes for one step: iterations
/// times the ops of a body. Nothing when loops without constant bounds decide it.
std::optional<double> interpreterWork(mlir::func::FuncOp function);
/// A run of at most as many is small: `--check` then asks the interpreter, too. That takes 0.03 to
/// 0.2 s (bench/interpreter/rate).
constexpr double kSmallInterpreterWork = 2e6;

/// Compares a run with the interpreter if that is a small matter: adds differences to
/// `report.checks`, sets `note` to what was done and why, as a line to print. Returns whether all
/// agree; what the interpreter cannot run agrees.
bool checkIfSmall(const RunOptions &options, const runtime::Program &program,
                  runtime::RunReport &report, std::string &note);

/// A tensor of the runtime as one of the interpreter, and back; element types and shapes must
/// match. Both keep elements row-major; a boolean is a byte of 0 or 1 on the host, a sign-extended
/// bit in the interpreter.
interpreter::Tensor toInterpreter(const runtime::HostTensor &host, mlir::Type elementType,
                                  llvm::ArrayRef<int64_t> shape);
runtime::HostTensor toHost(const interpreter::Tensor &tensor, runtime::DType dtype);

} // namespace tessera

#endif // TESSERA_DRIVER_INTERPRETERCHECK_H
