//===- PrintRules.cpp - The sharding rule of each op as a remark ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTPRINTRULES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// For each operand the smallest set of operands from which the op forwards a sum.
static std::string forwardsOf(Operation *op) {
  SmallVector<SmallVector<int64_t>> sets;
  for (int64_t i = 0; i < static_cast<int64_t>(op->getNumOperands()); ++i) {
    SmallVector<int64_t> set = operandsToPass(op, sharding::ReduceKind::sum, {i});
    if (!set.empty() && !llvm::is_contained(sets, set))
      sets.push_back(std::move(set));
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  for (ArrayRef<int64_t> set : sets) {
    os << (text.empty() ? "; forwards sums from {" : " {");
    llvm::interleaveComma(set, os);
    os << "}";
  }
  return text;
}

namespace {
struct DistPrintRules : dist::impl::DistPrintRulesBase<DistPrintRules> {
  void runOnOperation() override {
    auto isTensor = llvm::IsaPred<RankedTensorType>;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool hasTensors = llvm::any_of(op->getOperandTypes(), isTensor) ||
                        llvm::any_of(op->getResultTypes(), isTensor);
      std::string why;
      if (hasTensors && !op->hasTrait<OpTrait::IsTerminator>()) {
        if (std::optional<sharding::ShardingRule> rule = getShardingRule(op, &why))
          op->emitRemark() << sharding::toString(*rule) << forwardsOf(op);
        else
          op->emitRemark() << why;
      }
      return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
    });
  }
};
} // namespace
