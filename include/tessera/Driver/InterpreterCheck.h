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

/// Interprets the program as written, on one device, with the inputs and steps of a run, and
/// returns the expected results. Errors name the argument or op.
runtime::Expected<runtime::RunReport> interpretReference(const RunOptions &options,
                                                         const runtime::Program &program,
                                                         const runtime::RunReport &report);

/// Estimates the operations on single elements that the interpreter executes for one step:
/// iterations times the ops of a body. Empty if loops without constant bounds determine the number.
std::optional<double> interpreterWork(mlir::func::FuncOp function);
/// Limit on the operations of a small run, for which `--check` also runs the interpreter. That
/// takes 0.03 to 0.2 s (bench/interpreter/rate).
constexpr double kSmallInterpreterWork = 2e6;

/// Compares a run with the interpreter if the run is small: adds differences to `report.checks`,
/// sets `note` to a line on what was compared and why. Returns whether all results agree; programs
/// that the interpreter cannot run agree.
bool checkIfSmall(const RunOptions &options, const runtime::Program &program,
                  runtime::RunReport &report, std::string &note);

/// Converts a tensor of the runtime to one of the interpreter, and back; element types and shapes
/// must match. Both keep elements row-major; a boolean is a byte of 0 or 1 on the host, a
/// sign-extended bit in the interpreter.
interpreter::Tensor toInterpreter(const runtime::HostTensor &host, mlir::Type elementType,
                                  llvm::ArrayRef<int64_t> shape);
runtime::HostTensor toHost(const interpreter::Tensor &tensor, runtime::DType dtype);

} // namespace tessera

#endif // TESSERA_DRIVER_INTERPRETERCHECK_H
