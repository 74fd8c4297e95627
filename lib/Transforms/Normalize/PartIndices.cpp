//===- PartIndices.cpp - Indices of parts that take turns -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartIndices.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isEquality(arith::CmpIOp compare) {
  return compare.getPredicate() == arith::CmpIPredicate::eq ||
         compare.getPredicate() == arith::CmpIPredicate::ne;
}

bool dist::comparesOrder(Operation *op) {
  WalkResult result = op->walk([](arith::CmpIOp compare) {
    return isEquality(compare) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result.wasInterrupted();
}

static SmallVector<linalg::IndexOp> indicesOf(linalg::GenericOp op, int64_t loop) {
  SmallVector<linalg::IndexOp> indices;
  op.getBody()->walk([&](linalg::IndexOp index) {
    if (static_cast<int64_t>(index.getDim()) == loop)
      indices.push_back(index);
  });
  return indices;
}

/// The comparisons for equality that read an integer, if nothing else does.
static std::optional<SmallVector<arith::CmpIOp>> comparisonsOf(Value index) {
  SmallVector<arith::CmpIOp> found;
  for (Operation *user : index.getUsers()) {
    if (auto compare = dyn_cast<arith::CmpIOp>(user); compare && isEquality(compare)) {
      found.push_back(compare);
      continue;
    }
    if (!isa<arith::IndexCastOp>(user))
      return std::nullopt;
    std::optional<SmallVector<arith::CmpIOp>> more = comparisonsOf(user->getResult(0));
    if (!more)
      return std::nullopt;
    found.append(*more);
  }
  return found;
}

static Value withoutCasts(Value value) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  return value;
}

/// Whether a value that is computed from an index is compared by its order.
static bool reachesOrder(Value index) {
  llvm::SetVector<Operation *> users(index.user_begin(), index.user_end());
  for (size_t next = 0; next < users.size(); ++next) {
    if (auto compare = dyn_cast<arith::CmpIOp>(users[next]); compare && !isEquality(compare))
      return true;
    for (Value result : users[next]->getResults())
      users.insert(result.user_begin(), result.user_end());
  }
  return false;
}

bool dist::canReorderLoop(linalg::GenericOp op, int64_t loop) {
  SmallVector<linalg::IndexOp> indices = indicesOf(op, loop);
  if (llvm::any_of(indices, [](linalg::IndexOp index) { return reachesOrder(index); }))
    return false;
  for (const SelectedLoop &selected : selectedLoops(op)) {
    if (static_cast<int64_t>(selected.loop) != loop)
      continue;
    bool isCompared = llvm::all_of(
        indices, [](linalg::IndexOp index) { return comparisonsOf(index).has_value(); });
    if (!selected.offsets.empty() || !isCompared)
      return false;
  }
  return true;
}

void dist::reorderLoops(linalg::GenericOp op, ArrayRef<int64_t> loops, const PartOrder &order) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  // Indices that are only compared keep counting turns.
  llvm::MapVector<Value, SmallVector<arith::CmpIOp>> compared;
  SmallVector<linalg::IndexOp> others;
  for (int64_t loop : loops)
    for (linalg::IndexOp index : indicesOf(op, loop)) {
      if (std::optional<SmallVector<arith::CmpIOp>> comparisons = comparisonsOf(index))
        compared.insert({index, *comparisons});
      else
        others.push_back(index);
    }
  auto extentOf = [&](Value index) {
    return extents[index.getDefiningOp<linalg::IndexOp>().getDim()];
  };
  llvm::SetVector<Operation *> done; // a comparison of two indices is listed twice
  for (auto &[index, comparisons] : compared)
    for (arith::CmpIOp compare : comparisons) {
      if (!done.insert(compare))
        continue;
      bool isLeft = withoutCasts(compare.getLhs()) == index;
      Value other = withoutCasts(isLeft ? compare.getRhs() : compare.getLhs());
      OpBuilder b(compare);
      Location loc = compare.getLoc();
      if (compared.contains(other)) {
        if (extentOf(other) == extentOf(index))
          continue; // equal turns have equal indices
        other = order.naturalIndex(b, loc, other, extentOf(other) / order.size());
      }
      if (!other.getType().isIndex())
        other = arith::IndexCastOp::create(b, loc, b.getIndexType(), other);
      Value turn = order.turnOf(b, loc, other, extentOf(index) / order.size());
      compare.getLhsMutable().set(index);
      compare.getRhsMutable().set(turn);
    }
  for (linalg::IndexOp index : others) {
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(index);
    Value turn = linalg::IndexOp::create(b, index.getLoc(), index.getDim());
    index.getResult().replaceAllUsesWith(
        order.naturalIndex(b, index.getLoc(), turn, extentOf(index) / order.size()));
    index.erase();
  }
}
