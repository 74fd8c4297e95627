//===- LocalPeak.h - Peak memory of the local view --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_LOCALPEAK_H
#define TESSERA_PLANNING_LOCALPEAK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The time in a function of the local view with the most live bytes, estimated before code
/// generation forms kernels.
struct LocalPeak {
  double bytes = 0;
  mlir::Value largest; ///< the first of the largest values at that time; null: no values
  std::string name;    ///< of `largest`: "'w'" of an argument, else "a value of type '...'"
};
LocalPeak localPeakOf(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_LOCALPEAK_H
