//===- CopyIndices.cpp - A copy of what indices say, for each use ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   eye[i, j] = i == j
//   a = eye * x         x is cut by rows
//   b = eye * y         y is cut by columns
//
// One eye has one sharding, so that the other factor would be moved to meet it. With an eye of its
// own for each product nothing is sent. Kernels compute such values where they use them.
//
//===----------------------------------------------------------------------===//

#include "CopyIndices.h"
#include "PlainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class IndexCopier {
public:
  void run(func::FuncOp function);

private:
  /// Scalar ops of a value and of what it is computed from, if that is indices and constants alone
  /// and these ops are cheap; 0 if not.
  int64_t costOf(Value value);
  Value copy(OpBuilder &b, Value value, IRMapping &known);

  llvm::DenseMap<Value, int64_t> costs; // looked up, never iterated
};

} // namespace

/// Comparisons, choices, conversions and sums, but no bits of random numbers.
static bool isCheapScalar(Operation &op) {
  return isa<linalg::IndexOp, linalg::YieldOp, arith::ConstantOp, arith::CmpIOp, arith::CmpFOp,
             arith::SelectOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
             arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::AddIOp,
             arith::SubIOp, arith::AndIOp, arith::OrIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::AddFOp>(op);
}

/// Whether the loops of an op visit each element of its result once.
static bool visitsOnce(linalg::GenericOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (auto [extent, kind] : llvm::zip_equal(extents, op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && extent != 1)
      return false;
  return true;
}

int64_t IndexCopier::costOf(Value value) {
  constexpr int64_t kMost = 256;
  auto [known, isNew] = costs.try_emplace(value, 0);
  if (!isNew)
    return known->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || !isPlain(op))
    return 0;
  int64_t cost = 1;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (!visitsOnce(generic) || !generic.hasPureTensorSemantics() ||
        !llvm::all_of(generic.getRegion().front(), isCheapScalar))
      return 0;
    cost += static_cast<int64_t>(generic.getRegion().front().getOperations().size());
  } else if (!isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    DenseElementsAttr constant;
    if (!matchPattern(op, m_Constant(&constant)) || !constant.isSplat())
      return 0;
  }
  for (Value operand : op->getOperands()) {
    int64_t more = costOf(operand);
    if (more == 0)
      return 0;
    cost += more;
  }
  return costs[value] = cost <= kMost ? cost : 0;
}

Value IndexCopier::copy(OpBuilder &b, Value value, IRMapping &known) {
  if (Value copied = known.lookupOrNull(value))
    return copied;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    copy(b, operand, known);
  Operation *made = b.clone(*op, known);
  costs[made->getResult(0)] = costOf(value);
  return made->getResult(0);
}

void IndexCopier::run(func::FuncOp function) {
  SmallVector<linalg::GenericOp> sources;
  function.walk([&](linalg::GenericOp op) {
    if (!op->hasOneUse() && !op->use_empty() && op->getNumResults() == 1 &&
        costOf(op->getResult(0)) > 0)
      sources.push_back(op);
  });
  // Users before producers: a copy has what it is computed from copied already.
  for (linalg::GenericOp op : llvm::reverse(sources)) {
    SmallVector<OpOperand *> uses; // the last one first
    for (OpOperand &use : op->getUses())
      if (use.getOwner()->getNumResults() != 1 || costOf(use.getOwner()->getResult(0)) == 0)
        uses.push_back(&use);
    if (uses.size() == static_cast<size_t>(std::distance(op->use_begin(), op->use_end())))
      uses.pop_back(); // the first use keeps the original
    for (OpOperand *use : uses) {
      OpBuilder b(op); // not at the use, which may be in a loop
      IRMapping known;
      use->set(copy(b, op->getResult(0), known));
    }
  }
}

void dist::copyIndices(func::FuncOp function) {
  IndexCopier().run(function);
}
