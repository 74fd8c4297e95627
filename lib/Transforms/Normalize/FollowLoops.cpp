//===- FollowLoops.cpp - Remove loops determined by others ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[b] = sum over r, c of select(row[b] == r and column[b] == c, x[r, c], 0)
//
// If row[b] is b, only one iteration of loop r contributes, r = b:
//
//   y[b] = sum over c of select(column[b] == c, x[b, c], 0)
//
// In the derivative, r is a loop of the result and b is summed. There b = r is removed.
//
//===----------------------------------------------------------------------===//

#include "FollowLoops.h"
#include "PlainOps.h"

#include "AffineValues.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A loop to remove, and its only contributing iteration as a function of the others.
struct Followed {
  unsigned loop;
  AffineExpr by;
};

} // namespace

/// Whether an operand would be read at the same loop in two dimensions, as x[b, b]: no device that
/// has rows of x could compute its part. Then one of the loops stays, and looks up.
static bool repeatsLoops(linalg::GenericOp op, const Followed &followed) {
  return llvm::any_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    auto reads = [&](AffineExpr expr) { return expr.isFunctionOfDim(followed.loop); };
    if (llvm::none_of(map.getResults(), reads))
      return false;
    return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
      bool isCommon = false;
      for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
        isCommon |= expr.isFunctionOfDim(dim) && followed.by.isFunctionOfDim(dim);
      return !reads(expr) && isCommon;
    });
  });
}

static std::optional<Followed> findFollowed(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0 || !isPlain(op))
    return std::nullopt;
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  if (selected.empty())
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto isReduction = [&](unsigned loop) {
    return iterators[loop] == utils::IteratorType::reduction;
  };
  AffineValues values(op);
  for (const SelectedLoop &each : selected) {
    if (!each.offsets.empty())
      continue;
    // The comparison is kept: it may hold in no iteration.
    AffineExpr place = values.ofIndex(each.index, extents[each.loop]);
    if (!place || place.isFunctionOfDim(each.loop))
      continue;
    if (isReduction(each.loop)) {
      std::optional<AffineValues::Interval> range = values.rangeOf(place);
      bool isWithin = range && range->low >= 0 && range->high < extents[each.loop];
      if (isWithin && !repeatsLoops(op, {each.loop, place}))
        return Followed{each.loop, place};
      continue; // it may be outside of the loop
    }
    auto other = dyn_cast<AffineDimExpr>(place);
    if (!other || !isReduction(other.getPosition()) ||
        extents[other.getPosition()] != extents[each.loop])
      continue;
    Followed followed{other.getPosition(), getAffineDimExpr(each.loop, op.getContext())};
    if (!repeatsLoops(op, followed))
      return followed;
  }
  return std::nullopt;
}

static linalg::GenericOp without(linalg::GenericOp op, const Followed &followed) {
  OpBuilder b(op);
  MLIRContext *context = op.getContext();
  unsigned numLoops = op.getNumLoops() - 1, next = 0;
  SmallVector<AffineExpr> renumbered;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    renumbered.push_back(d == followed.loop ? getAffineConstantExpr(0, context)
                                            : getAffineDimExpr(next++, context));
  AffineExpr by = followed.by.replaceDims(renumbered);
  renumbered[followed.loop] = by;
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray())
    maps.push_back(map.replaceDimsAndSymbols(renumbered, {}, numLoops, 0));
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  iterators.erase(iterators.begin() + followed.loop);
  auto body = [&](OpBuilder &body, Location loc, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(op.getBody()->getArguments(), arguments);
    for (Operation &inner : *op.getBody()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        AffineExpr at = getAffineDimExpr(index.getDim(), context).replaceDims(renumbered);
        mapping.map(index.getResult(), writeAffine(body, loc, at));
      } else {
        body.clone(inner, mapping);
      }
    }
  };
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  extents.erase(extents.begin() + followed.loop);
  SmallVector<Value> inputs;
  for (auto [input, map] : llvm::zip(op.getDpsInputs(), maps))
    inputs.push_back(readPart(b, op.getLoc(), input, map, extents));
  auto made = linalg::GenericOp::create(b, op.getLoc(), op->getResultTypes(), inputs,
                                        op.getDpsInits(), maps, iterators, body);
  op->replaceAllUsesWith(made->getResults());
  op.erase();
  return made;
}

void dist::followLoops(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    while (std::optional<Followed> followed = findFollowed(op))
      op = ::without(op, *followed);
}
