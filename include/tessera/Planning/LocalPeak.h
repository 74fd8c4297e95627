//===- LocalPeak.h - What takes most of a device's memory -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_LOCALPEAK_H
#define TESSERA_PLANNING_LOCALPEAK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The time of a function in the local view at which its values take most bytes, as estimated
/// before kernels are made of it.
struct LocalPeak {
  double bytes = 0;
  mlir::Value largest; ///< the first of the largest values then; null: there are none
  std::string name;    ///< of that: "'w'" of an argument, else "a value of type '...'"
};
LocalPeak localPeakOf(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_LOCALPEAK_H
