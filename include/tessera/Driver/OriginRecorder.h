//===- OriginRecorder.h - Where propagation got every axis from -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_ORIGINRECORDER_H
#define TESSERA_DRIVER_ORIGINRECORDER_H

#include "mlir/IR/MLIRContext.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

/// Records, while it lives, where propagation got every axis from. Register it before the pipeline
/// runs; ask it afterwards.
class OriginRecorder {
public:
  explicit OriginRecorder(mlir::MLIRContext *context);
  ~OriginRecorder();
  /// Where the axes of a named argument or result came from, e.g. `"tp" from w0 (mlp.mlir:3:12)`;
  /// empty when none was propagated to it.
  std::string originOf(const std::string &name) const;
  /// Whether what happens is not recorded.
  void pause(bool isPaused) { paused = isPaused; }

private:
  struct Gain {
    std::string axis;
    int64_t source;
  };
  mlir::MLIRContext *context;
  bool paused = false;
  std::map<int64_t, std::vector<Gain>> gains; ///< by tensor
  std::map<std::string, int64_t> byName;
  std::map<int64_t, std::string> describe; ///< name or location of each tensor seen
};

} // namespace tessera

#endif // TESSERA_DRIVER_ORIGINRECORDER_H
