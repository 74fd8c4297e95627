//===- ShardingActions.h - Actions of propagation ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation wraps each change that it makes in an action. A handler registered
// with the context records the origin of every axis; without a handler there is no
// overhead.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_SHARDINGACTIONS_H
#define TESSERA_TRANSFORMS_SHARDINGACTIONS_H

#include "mlir/IR/Action.h"
#include "mlir/IR/Location.h"

#include <map>
#include <string>

namespace tessera::dist {

/// One tensor gains one axis in one dimension from another tensor.
struct ShardingAction : mlir::tracing::ActionImpl<ShardingAction> {
  static constexpr llvm::StringLiteral tag = "dist-sharding";

  ShardingAction(llvm::ArrayRef<mlir::IRUnit> units, mlir::Location loc, std::string name,
                 int64_t tensor, int64_t dim, std::string axis, int64_t source,
                 std::string sourceDescription)
      : ActionImpl(units), loc(loc), name(std::move(name)), tensor(tensor), dim(dim),
        axis(std::move(axis)), source(source), sourceDescription(std::move(sourceDescription)) {}

  void print(llvm::raw_ostream &os) const override {
    os << "axis " << axis << " cuts dimension " << dim << " of "
       << (name.empty() ? "a value" : name) << " at " << loc;
  }

  mlir::Location loc; ///< where the tensor that gains the axis is defined
  std::string name;   ///< its name when it is an argument or result
  int64_t tensor;     ///< number of the tensor within the run
  int64_t dim;
  std::string axis;
  int64_t source;                ///< number of the tensor that had it, -1 when unknown
  std::string sourceDescription; ///< its name, or where it is defined
};

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_SHARDINGACTIONS_H
