//===- ConstantTensors.h - Tensors known at compile time --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTTENSORS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTTENSORS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::dist {

/// Evaluates tensors that are computed only from constants and indices. Each operation is rounded
/// to its type; functions such as exp may differ from the program's in the last bit.
class ConstantTensors {
public:
  using Elements = std::vector<double>;

  /// Row-major; null if the tensor depends on an argument, an unsupported op, or an op with more
  /// than `kMostIterations`. Valid as long as this object.
  const Elements *of(mlir::Value tensor);

private:
  static constexpr int64_t kMostIterations = int64_t(1) << 22;

  std::optional<Elements> compute(mlir::Value tensor);
  std::optional<Elements> computeLoops(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, std::unique_ptr<Elements>> known; ///< looked up only
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CONSTANTTENSORS_H
