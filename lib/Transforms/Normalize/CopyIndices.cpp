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
#include "mlir/IR/IRMapping.h"

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

/// Comparisons, choices, conversions and sums of integers, but no bits of random numbers.
static bool isCheapScalar(Operation &op) {
  return isa<linalg::IndexOp, linalg::YieldOp, arith::ConstantOp, arith::CmpIOp, arith::CmpFOp,
             arith::SelectOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
             arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::AddIOp,
             arith::SubIOp, arith::AndIOp, arith::OrIOp, arith::MaxSIOp, arith::MinSIOp>(op);
}

int64_t IndexCopier::costOf(Value value) {
  constexpr int64_t kMost = 24;
  auto [known, isNew] = costs.try_emplace(value, 0);
  if (!isNew)
    return known->second;
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op->getNumResults() != 1 || !isPlain(op) || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics() || !op.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>() ||
      !llvm::all_of(op.getRegion().front(), isCheapScalar))
    return 0;
  auto cost = static_cast<int64_t>(op.getRegion().front().getOperations().size());
  for (Value input : op.getDpsInputs()) {
    int64_t more = costOf(input);
    if (more == 0)
      return 0;
    cost += more;
  }
  return costs[value] = cost <= kMost ? cost : 0;
}

Value IndexCopier::copy(OpBuilder &b, Value value, IRMapping &known) {
  if (Value copied = known.lookupOrNull(value))
    return copied;
  auto op = value.getDefiningOp<linalg::GenericOp>();
  for (Value input : op.getDpsInputs())
    copy(b, input, known);
  b.clone(*op.getDpsInits()[0].getDefiningOp(), known);
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
