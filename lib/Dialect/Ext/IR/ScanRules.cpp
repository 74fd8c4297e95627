//===- ScanRules.cpp - How scans are distributed ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

std::optional<sharding::ShardingRule> ScanOp::getShardingRule() {
  dist::RuleBuilder builder(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape())) {
    int64_t factor = builder.factor(extent, dim == getDim() ? sharding::FactorKind::replicate
                                                            : sharding::FactorKind::parallel);
    for (unsigned index = 0; index < getNumOperands(); ++index)
      builder.operand(index, dim, factor).result(index, dim, factor);
  }
  return builder.take();
}

bool ScanOp::addToRuleKey(AddressKey &key) {
  key.push_back(getDimensionAttr().getAsOpaquePointer());
  return true;
}

int64_t ScanOp::getOperationsPerIteration() {
  return std::max<int64_t>(1, std::distance(getBody().begin(), getBody().end()) - 1);
}
