//===- OriginRecorder.h - Origins of propagated axes ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REPORT_ORIGINRECORDER_H
#define TESSERA_REPORT_ORIGINRECORDER_H

#include "mlir/IR/MLIRContext.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

/// Records the origins of all axes during propagation, as long as it lives. Register it before the
/// pipeline runs; query it afterwards.
class OriginRecorder {
public:
  explicit OriginRecorder(mlir::MLIRContext *context);
  ~OriginRecorder();
  /// The origin of the axes of a named argument or result, e.g. `"tp" from w0 (mlp.mlir:3:12)`;
  /// empty if no axis was propagated to it.
  std::string originOf(const std::string &name) const;
  /// Whether nothing was propagated, as in a program in the local view.
  bool isEmpty() const { return gains.empty(); }
  /// Begins or ends a pause of recording; pauses may nest.
  void pause(bool begins) { paused += begins ? 1 : -1; }

private:
  struct Gain {
    std::string axis;
    int64_t source;
  };
  mlir::MLIRContext *context;
  int paused = 0; ///< pauses that have not ended
  std::map<int64_t, std::vector<Gain>> gains; ///< by tensor
  std::map<std::string, int64_t> byName;
  std::map<int64_t, std::string> describe; ///< name or location of each tensor seen
};

} // namespace tessera

#endif // TESSERA_REPORT_ORIGINRECORDER_H
