//===- RuleBuilder.h - Building sharding rules ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_RULEBUILDER_H
#define TESSERA_DIALECT_DIST_RULES_RULEBUILDER_H

#include "tessera/Sharding/ShardingRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Builds the rule of an op dimension by dimension.
///
///   RuleBuilder builder(matmul);                          (m, k) x (k, n) -> (m, n)
///   int64_t m = builder.factor(M), n = builder.factor(N);
///   int64_t k = builder.factor(K, FactorKind::reduction);
///   builder.operand(0, 0, m).operand(0, 1, k).operand(1, 0, k).operand(1, 1, n);
///   return builder.result(0, 0, m).result(0, 1, n).take();
class RuleBuilder {
public:
  /// Starts without factors. A dimension without a factor must have extent 1.
  explicit RuleBuilder(mlir::Operation *op) : op(op) {
    auto addTensors = [](mlir::TypeRange types, std::vector<sharding::TensorRule> &tensors) {
      for (mlir::Type type : types) {
        auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
        tensors.emplace_back(tensor ? tensor.getRank() : 0);
      }
    };
    addTensors(op->getOperandTypes(), rule.operands);
    addTensors(op->getResultTypes(), rule.results);
    rule.accumulatorOf.assign(op->getNumOperands(), -1);
  }

  /// Adds a loop of `size` iterations and returns its number. For a reduction, `combiner` combines
  /// its iterations in every result.
  int64_t factor(int64_t size, sharding::FactorKind kind = sharding::FactorKind::parallel,
                 sharding::ReduceKind combiner = sharding::ReduceKind::sum) {
    rule.factors.push_back({size, kind, combiner});
    return static_cast<int64_t>(rule.factors.size()) - 1;
  }

  /// Adds a factor to dimension `dim` of an operand or result. Several factors of one dimension are
  /// added slowest first.
  RuleBuilder &operand(int64_t index, int64_t dim, int64_t factor) {
    rule.operands[index][dim].factors.push_back(factor);
    return *this;
  }
  RuleBuilder &result(int64_t index, int64_t dim, int64_t factor) {
    rule.results[index][dim].factors.push_back(factor);
    return *this;
  }

  /// Iteration i of a factor reads the `extent` indices of dimension `dim` of an operand from i *
  /// stride + shift on.
  RuleBuilder &window(int64_t index, int64_t dim, int64_t factor, int64_t stride, int64_t shift,
                      int64_t extent = 1) {
    sharding::DimRule &window = rule.operands[index][dim];
    window.operandSize =
        mlir::cast<mlir::RankedTensorType>(op->getOperand(index).getType()).getDimSize(dim);
    window.factors = {factor};
    window.isWindow = true;
    window.stride = stride;
    window.shift = shift;
    window.extent = extent;
    return *this;
  }

  /// A factor reads elements of dimension `dim`, of extent `extent`, of an operand by a segment.
  /// `isNarrow`: the operand holds only these elements, even if the factor is whole.
  RuleBuilder &segment(int64_t index, int64_t dim, int64_t factor, const sharding::Segment &segment,
                       int64_t extent, bool isNarrow = false) {
    sharding::DimRule &rule = this->rule.operands[index][dim];
    rule.factors = {factor};
    rule.segment = segment;
    rule.operandSize = extent;
    rule.isNarrow = isNarrow;
    return *this;
  }

  /// The reductions of a result start from an operand, which becomes partial with the result.
  RuleBuilder &accumulates(int64_t operand, int64_t result) {
    rule.accumulatorOf[operand] = result;
    return *this;
  }
  /// Every element of the result is an element of operand 0.
  RuleBuilder &moves() {
    rule.movesOnly = true;
    return *this;
  }

  sharding::ShardingRule take() { return std::move(rule); }

private:
  mlir::Operation *op;
  sharding::ShardingRule rule;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULEBUILDER_H
