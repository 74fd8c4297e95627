//===- LocalRun.h - The local view on a made-up process grid ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_LOCALRUN_H
#define TESSERA_LIB_INTERPRETER_LOCALRUN_H

#include "Collectives.h"
#include "Device.h"

#include <map>

namespace tessera::interpreter {

/// One local function on its devices.
struct LocalFunction {
  mlir::func::FuncOp function;
  std::vector<Device> devices; ///< in the order of dist.mesh_devices

  Device &device(int64_t processId);
};

/// All devices of a program. They run in turn, each until it needs others; then the ops for which
/// all of them wait are executed.
class LocalRun {
public:
  LocalRun(Program &program, llvm::StringRef name) : program(program), name(name) {}
  mlir::FailureOr<llvm::SmallVector<Tensor>> run(llvm::ArrayRef<Tensor> inputs);

private:
  /// The tensors sent under one id: by execution of the send, by position of the source mesh; null
  /// until sent.
  struct Channel {
    std::vector<Buffers> sent;
    std::vector<Buffers> delivered; ///< by position of the target mesh, once all parts are sent
    std::map<int64_t, size_t> sends, receives; ///< executions so far, by process id
  };

  mlir::LogicalResult collectFunctions();
  /// The part of a global input with which every device of a function starts.
  mlir::FailureOr<Buffers> cut(LocalFunction &part, unsigned argument, const Tensor &input);
  mlir::LogicalResult start(LocalFunction &part, llvm::ArrayRef<Tensor> inputs);
  /// Runs every device as far as it can alone, then executes the ops for which they wait.
  /// `progressed` is false if no device could continue.
  mlir::LogicalResult round(bool &progressed);
  mlir::LogicalResult runCollective(LocalFunction &part, bool &progressed);
  mlir::LogicalResult send(Device &device, dist::SendOp op);
  mlir::LogicalResult receive(Device &device, dist::RecvOp op, bool &progressed);
  /// Emits an error that names the waiting devices.
  mlir::LogicalResult reportStuck();
  mlir::LogicalResult assemble(LocalFunction &part, llvm::SmallVector<Tensor> &results);
  mlir::LogicalResult checkReplicas(LocalFunction &part, unsigned result, const Move &move,
                                    const Buffers &buffers);

  Program &program;
  std::string name;
  std::vector<LocalFunction> parts;
  std::map<int64_t, Channel> channels;
};

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_LOCALRUN_H
