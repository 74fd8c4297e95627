//===- LinalgRules.cpp - Rules from indexing maps and bodies --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"
#include "tessera/Dialect/Dist/Rules/LinearExpr.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

//===----------------------------------------------------------------------===//
// Reductions in a body
//===----------------------------------------------------------------------===//

Operation *dist::matchCombiner(linalg::LinalgOp op, unsigned index) {
  BlockArgument accumulator = op.getRegionOutputArgs()[index];
  Operation *yield = op.getBlock()->getTerminator();
  Operation *combiner = yield->getOperand(index).getDefiningOp();
  if (!combiner || combiner->getNumResults() != 1 || combiner->getNumOperands() != 2 ||
      !combiner->getResult(0).hasOneUse() || !accumulator.hasOneUse() ||
      *accumulator.user_begin() != combiner)
    return nullptr;
  return combiner;
}

std::optional<ReduceKind> dist::matchReductionKind(linalg::LinalgOp op, unsigned index) {
  Operation *combiner = matchCombiner(op, index);
  if (!combiner)
    return std::nullopt;
  bool isBool = combiner->getResult(0).getType().isInteger(1);
  return llvm::TypeSwitch<Operation *, std::optional<ReduceKind>>(combiner)
      .Case<arith::AddFOp>([](auto) { return ReduceKind::sum; })
      .Case<arith::MulFOp>([](auto) { return ReduceKind::prod; })
      .Case<arith::AddIOp>([&](auto) -> std::optional<ReduceKind> {
        if (isBool)
          return std::nullopt; // exclusive or
        return ReduceKind::sum;
      })
      .Case<arith::MulIOp>([](auto) { return ReduceKind::prod; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([](auto) { return ReduceKind::max; })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([](auto) { return ReduceKind::min; })
      .Case<arith::MaxSIOp, arith::MinSIOp>([&](Operation *o) -> std::optional<ReduceKind> {
        if (isBool)
          return std::nullopt; // true is -1 there
        return isa<arith::MaxSIOp>(o) ? ReduceKind::max : ReduceKind::min;
      })
      .Case<arith::OrIOp>([&](auto) -> std::optional<ReduceKind> {
        return isBool ? std::optional(ReduceKind::max) : std::nullopt;
      })
      .Case<arith::AndIOp>([&](auto) -> std::optional<ReduceKind> {
        return isBool ? std::optional(ReduceKind::min) : std::nullopt;
      })
      .Default([](auto) { return std::nullopt; });
}

/// Whether the body only yields the first input.
static bool yieldsFirstInput(linalg::LinalgOp op) {
  Block *block = op.getBlock();
  return &block->front() == block->getTerminator() &&
         block->getTerminator()->getOperand(0) == block->getArgument(0);
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

/// `addToKey` must add everything that this reads of an op to the key by which rules are shared.
static std::optional<ShardingRule> getLinalgRule(linalg::LinalgOp op) {
  ShardingRule rule;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [size, iterator] : llvm::zip(ranges, iterators)) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    FactorKind kind =
        iterator == utils::IteratorType::parallel ? FactorKind::parallel : FactorKind::reduction;
    rule.factors.push_back({size, kind, ReduceKind::sum});
  }

  // Only a loop that is a dimension of every result is parallel, whatever its iterator type.
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    bool inAll = true, inAny = false, alone = true;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      bool found = false;
      for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults()) {
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          found = found || dim.getPosition() == loop;
        else if (expr.isFunctionOfDim(loop))
          alone = false;
      }
      inAll = inAll && found;
      inAny = inAny || found;
    }
    Factor &factor = rule.factors[loop];
    if (!alone || (inAny && !inAll)) {
      factor.kind = FactorKind::replicate;
    } else if (!inAny) {
      factor.kind = FactorKind::reduction;
    }
  }
  // Reductions are cut only if the body determines one reduction of all results.
  std::optional<ReduceKind> common;
  bool reducible = true;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    std::optional<ReduceKind> kind = matchReductionKind(op, i);
    reducible = reducible && kind && (!common || *common == *kind);
    common = kind;
  }
  for (Factor &factor : rule.factors)
    if (factor.kind == FactorKind::reduction) {
      if (reducible && common)
        factor.reduction = *common;
      else
        factor.kind = FactorKind::replicate;
    }

  for (OpOperand &operand : op->getOpOperands()) {
    TensorRule dims;
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType())) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      llvm::SmallDenseSet<unsigned> seen;
      for (auto [d, expr] : llvm::enumerate(map.getResults())) {
        DimRule dim;
        LinearExpr linear;
        if (std::optional<LinearExpr> found = linearExprOf(expr))
          linear = std::move(*found);
        else
          for (unsigned loop = 0; loop < ranges.size(); ++loop)
            if (expr.isFunctionOfDim(loop))
              rule.factors[loop].kind = FactorKind::replicate;
        if (!linear.terms.empty()) {
          // The longest loop moves the window; all others are inside it and must be whole. In a
          // convolution that is the image, not the kernel, also for the gradient of its weights,
          // where the image is reduced. Of two parallel loops, frames and their elements, it is the
          // one with the larger reach.
          auto longest = llvm::max_element(linear.terms, [&](const auto &a, const auto &b) {
            bool isSameKind = iterators[a.first] == iterators[b.first] &&
                              iterators[a.first] == utils::IteratorType::parallel;
            return isSameKind
                       ? ranges[a.first] * std::abs(a.second) < ranges[b.first] * std::abs(b.second)
                       : ranges[a.first] < ranges[b.first];
          });
          std::rotate(linear.terms.begin(), longest, longest + 1);
          auto [loop, stride] = linear.terms.front();
          bool plain = linear.terms.size() == 1 && stride == 1 && linear.constant == 0;
          if (stride < 1 || !seen.insert(loop).second)
            rule.factors[loop].kind = FactorKind::replicate;
          dim.factors = {static_cast<int64_t>(loop)};
          if (!plain) {
            dim.isWindow = true;
            dim.operandSize = type.getDimSize(d);
            dim.stride = stride;
            dim.shift = linear.constant;
            for (auto [other, dilation] : llvm::drop_begin(linear.terms)) {
              rule.factors[other].kind = FactorKind::replicate;
              if (dilation < 0)
                rule.factors[loop].kind = FactorKind::replicate;
              dim.extent += (ranges[other] - 1) * std::abs(dilation);
            }
          }
        }
        dims.push_back(dim);
      }
    }
    rule.operands.push_back(dims);
    rule.accumulatorOf.push_back(
        op.isDpsInit(&operand) ? operand.getOperandNumber() - op.getNumDpsInputs() : -1);
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    if (isa<RankedTensorType>(init.get().getType()))
      rule.results.push_back(rule.operands[init.getOperandNumber()]);
  rule.movesOnly = op.getNumDpsInputs() == 1 && op.getNumParallelLoops() == op.getNumLoops() &&
                   yieldsFirstInput(op);
  return rule;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// Whether each iteration writes a separate element of every result: nothing is reduced.
static bool isInjective(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isPermutation();
         });
}

/// Adds maps, iterators, and the properties of the body: how results combine, and whether it only
/// moves elements. Element types are those of the operands.
static void addToKey(linalg::LinalgOp op, AddressKey &key) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    key.push_back(generic.getIteratorTypes().getAsOpaquePointer());
  key.push_back(op.getIndexingMaps().getAsOpaquePointer());
  // Bodies are read only if they matter, since they are far from their ops in memory.
  if (!isInjective(op))
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      Operation *combiner = matchCombiner(op, i);
      key.push_back(combiner ? combiner->getName().getAsOpaquePointer() : nullptr);
    }
  if (op.getNumDpsInputs() == 1)
    key.push_back(yieldsFirstInput(op) ? op->getName().getAsOpaquePointer() : nullptr);
}

namespace {

/// Every structured op of linalg. Methods that propagation calls often look up the interface once.
struct LinalgModel : ShardingRuleOpInterface::ExternalModel<LinalgModel, linalg::LinalgOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return getLinalgRule(linalg::LinalgOp(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    addToKey(linalg::LinalgOp(op), key);
    return true;
  }
  bool passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t> unknown) const {
    return passesPartialThroughBody(linalg::LinalgOp(op), kind, operands, unknown);
  }
  bool isMadeOfScalars(Operation *op) const {
    linalg::LinalgOp linalgOp(op);
    return op->getNumResults() == 1 && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
           llvm::none_of(linalgOp.getDpsInputs(),
                         [](Value input) { return isa<RankedTensorType>(input.getType()); }) &&
           linalgOp.getRegionOutputArgs().front().use_empty() &&
           linalgOp.getDpsInits().front().getDefiningOp<tensor::EmptyOp>();
  }
  bool isEquivariant(Operation *op, int64_t factor) const {
    std::optional<ShardingRule> rule = getShardingRule(op);
    if (!rule || rule->factors[factor].kind == FactorKind::replicate)
      return false;
    auto reads = [&](linalg::IndexOp index) {
      return static_cast<int64_t>(index.getDim()) == factor ? WalkResult::interrupt()
                                                            : WalkResult::advance();
    };
    return !op->getRegion(0).walk(reads).wasInterrupted();
  }
  int64_t getOperationsPerIteration(Operation *op) const {
    Block &body = op->getRegion(0).front();
    // The groups of rows are compared once, not for each product.
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && matchGroupedProduct(generic))
      return llvm::count_if(
          body,
          llvm::IsaPred<arith::MulFOp, arith::AddFOp, arith::MulIOp, arith::AddIOp, arith::ExtFOp>);
    auto ops = static_cast<int64_t>(body.getOperations().size());
    return std::max<int64_t>(ops - 1, 1);
  }
  Type getArithmeticType(Operation *op) const {
    linalg::LinalgOp linalgOp(op);
    bool isProduct = linalgOp.getNumReductionLoops() > 0 && linalgOp.getNumDpsInputs() >= 2;
    return getElementTypeOrSelf(isProduct ? op->getOperand(0) : op->getResult(0));
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    return partitionLinalg(linalg::LinalgOp(op), context);
  }
};

} // namespace

void dist::attachLinalgRules(MLIRContext *context) {
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (isa<linalg::LinalgDialect>(name.getDialect()) && name.hasInterface<linalg::LinalgOp>())
      name.attachInterface<LinalgModel>();
}
