//===- TensorModel.h - Models of ops of the tensor dialect -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_RULES_TENSORMODEL_H
#define TESSERA_LIB_DIALECT_DIST_RULES_TENSORMODEL_H

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"

namespace tessera::dist {

/// An op that moves elements and computes nothing.
template <typename Model, typename Op>
struct TensorModel : ShardingRuleOpInterface::ExternalModel<Model, Op> {
  int64_t getOperationsPerIteration(mlir::Operation *) const { return 0; }
};

/// Pads and slices (SliceRules.cpp).
void attachSliceRules(mlir::MLIRContext *context);

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_RULES_TENSORMODEL_H
