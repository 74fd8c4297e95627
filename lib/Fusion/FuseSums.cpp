//===- FuseSums.cpp - Sums over the rows of a kernel ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a norm's scale is a sum over all rows of values that the kernel of
// these rows computes. The sum's rows differ from those of that kernel, so RowSpace
// does not fuse the two; a GPU can compute partial sums while it iterates over the
// rows, and need not read them again.
//
//===----------------------------------------------------------------------===//

#include "tessera/Fusion/FuseGraph.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Fewer rows than this give too few parts (GpuSplit.cpp), unless the sum has a single element.
static constexpr int64_t kFewestRows = 1024;
/// Consumers of a sum join its group if their work is smaller by at least this factor.
static constexpr int64_t kTinyShare = 64;

/// Iterations of an op with static loop bounds; 0 for others.
static int64_t iterationsOf(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !linalgOp.hasDynamicShape()
             ? ShapedType::getNumElements(linalgOp.getStaticLoopRanges())
             : 0;
}

/// Whether the op reads one element of the value per iteration.
static bool readsWhole(linalg::LinalgOp op, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == iterationsOf(op) &&
         llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
           return operand->get() == value && op.getMatchingIndexingMap(operand).isPermutation();
         });
}

/// Whether the op reduces the outermost dimensions of an operand.
static bool reducesRows(Operation *op) {
  auto sums = dyn_cast<linalg::LinalgOp>(op);
  if (!sums || iterationsOf(op) == 0 || sums.getNumReductionLoops() == 0 ||
      sums.hasIndexSemantics())
    return false;
  SmallVector<int64_t> ranges = sums.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = sums.getIteratorTypesArray();
  int64_t results = iterationsOf(op);
  for (auto [extent, kind] : llvm::zip_equal(ranges, kinds))
    results /= kind == utils::IteratorType::reduction ? extent : 1;
  for (OpOperand *operand : sums.getDpsInputOperands()) {
    AffineMap map = sums.getMatchingIndexingMap(operand);
    if (!readsWhole(sums, operand->get()))
      continue;
    int64_t rows = 1;
    for (AffineExpr expr : map.getResults()) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      if (kinds[loop] != utils::IteratorType::reduction)
        break;
      rows *= ranges[loop];
    }
    if (results == 1 || (rows >= kFewestRows && rows * results == iterationsOf(op)))
      return true;
  }
  return false;
}

bool FuseGraph::isSums(const Group &group, unsigned op) const {
  int64_t iterations = iterationsOf(ops[op]);
  return llvm::all_of(group.ops, [&](unsigned other) {
    int64_t work = iterationsOf(ops[other]);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(ops[other]);
    return other == op || (work > 0 && work <= iterations / kTinyShare) ||
           (work == iterations && linalgOp.getNumReductionLoops() == 0);
  });
}

SmallVector<unsigned> FuseGraph::neighboursOf(const Group &group, int64_t iterations) const {
  SmallVector<unsigned> made, read;
  for (unsigned op : llvm::reverse(group.ops)) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(ops[op]);
    if (!linalgOp || iterationsOf(ops[op]) != iterations)
      continue;
    for (Value value : linalgOp->getOperands()) {
      if (!readsWhole(linalgOp, value))
        continue;
      auto add = [&](Operation *other, SmallVectorImpl<unsigned> &to) {
        auto it = other ? number.find(other) : number.end();
        if (it != number.end() && kinds[it->second] == FuseKind::kernel &&
            iterationsOf(other) == iterations && groupOf[it->second] != groupOf[op])
          to.push_back(groupOf[it->second]);
      };
      add(value.getDefiningOp(), made);
      for (Operation *user : value.getUsers())
        if (auto reader = dyn_cast<linalg::LinalgOp>(user); reader && readsWhole(reader, value))
          add(user, read);
    }
  }
  llvm::sort(read); // uses have no fixed order
  made.append(read);
  return made;
}

void FuseGraph::joinSums() {
  for (unsigned op = 0; op < ops.size(); ++op) {
    if (kinds[op] != FuseKind::kernel || !reducesRows(ops[op]) || !isSums(groups[groupOf[op]], op))
      continue;
    unsigned mine = groupOf[op];
    for (unsigned other : neighboursOf(groups[mine], iterationsOf(ops[op]))) {
      if (groups[mine].ops.size() + groups[other].ops.size() > maxOps || separated(other, mine))
        continue;
      merge(other, mine);
      break;
    }
  }
}
