//===- SplitFlatIndices.cpp - Indices into merged dimensions --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitFlatIndices.h"
#include "PlainOps.h"

#include "AffineValues.h"
#include "ElementRanges.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// An index tensor: T * row + column, element by element.
struct FlatIndex {
  linalg::GenericOp sum;                   ///< computes it, before dimensions are merged
  AffineExpr row;                          ///< of the loops of `sum`
  Value column;                            ///< in the body of `sum`; in [0, T)
  int64_t extent = 0;                      ///< T
  SmallVector<ReassociationIndices> merge; ///< dimensions of `sum` by dimension of the tensor
};

/// A selected loop whose index is flat.
struct FlatLoop {
  unsigned loop, argument; ///< of the index tensor
  FlatIndex index;
};

} // namespace

/// The largest number that divides all values of an affine sum; 0 for the sum 0.
static int64_t divisorOf(AffineExpr expr) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return std::abs(number.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return 1;
  int64_t left = divisorOf(binary.getLHS()), right = divisorOf(binary.getRHS());
  return expr.getKind() == AffineExprKind::Add   ? std::gcd(left, right)
         : expr.getKind() == AffineExprKind::Mul ? left * right
                                                 : 1;
}

static std::optional<FlatIndex> flatIndexOf(Value tensor, int64_t extent, ElementRanges &ranges) {
  FlatIndex found;
  Value source = ranges.sourceOf(tensor);
  if (auto merged = source.getDefiningOp<tensor::CollapseShapeOp>()) {
    found.merge = merged.getReassociationIndices();
    source = ranges.sourceOf(merged.getSrc());
  }
  found.sum = source.getDefiningOp<linalg::GenericOp>();
  // A known range: nothing overflows.
  if (!found.sum || found.sum->getNumResults() != 1 || found.sum.getNumReductionLoops() > 0 ||
      !found.sum.getIndexingMapsArray().back().isIdentity() || !ranges.of(source))
    return std::nullopt;
  if (found.merge.empty())
    for (int64_t d = 0; d < cast<RankedTensorType>(source.getType()).getRank(); ++d)
      found.merge.push_back({d});
  Operation *sum =
      ranges.strip(found.sum, found.sum.getBody()->getTerminator()->getOperand(0)).getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp>(sum))
    return std::nullopt;
  AffineValues values(found.sum);
  if (values.of(sum->getResult(0))) // a map reads it
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    AffineExpr row = values.of(sum->getOperand(i));
    int64_t divisor = row ? divisorOf(row) : 0;
    std::optional<ElementRanges::Interval> column =
        ranges.rangeOf(found.sum, sum->getOperand(1 - i));
    if (divisor < 2 || extent % divisor != 0 || extent == divisor || !column || column->low < 0 ||
        column->high >= divisor)
      continue;
    found.row = row.floorDiv(divisor);
    found.column = sum->getOperand(1 - i);
    found.extent = divisor;
    return found;
  }
  return std::nullopt;
}

static Value withoutCasts(Value value) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  return value;
}

/// Whether each map reads a loop as a whole dimension.
static bool isWholeDim(linalg::GenericOp op, unsigned loop) {
  return llvm::all_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    auto reads = [&](AffineExpr expr) { return expr.isFunctionOfDim(loop); };
    return llvm::count_if(map.getResults(), reads) <= 1 &&
           llvm::all_of(map.getResults(),
                        [&](AffineExpr expr) { return !reads(expr) || isa<AffineDimExpr>(expr); });
  });
}

static std::optional<FlatLoop> findFlatLoop(linalg::GenericOp op, ElementRanges &ranges) {
  if (op->getNumResults() != 1 || !isPlain(op) || !op.hasPureTensorSemantics())
    return std::nullopt;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (const SelectedLoop &selected : selectedLoops(op)) {
    auto argument = dyn_cast<BlockArgument>(withoutCasts(selected.index));
    if (!selected.offsets.empty() || !argument || argument.getOwner() != op.getBody() ||
        argument.getArgNumber() >= op.getNumDpsInputs() || !isWholeDim(op, selected.loop))
      continue;
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    Value tensor = op.getInputs()[argument.getArgNumber()];
    if (!isa<RankedTensorType>(tensor.getType()) ||
        !llvm::all_of(map.getResults(), [&](AffineExpr expr) {
          auto loop = dyn_cast<AffineDimExpr>(expr);
          return loop && loop.getPosition() != selected.loop && isWholeDim(op, loop.getPosition());
        }))
      continue;
    if (std::optional<FlatIndex> index = flatIndexOf(tensor, extents[selected.loop], ranges))
      return FlatLoop{selected.loop, argument.getArgNumber(), *index};
  }
  return std::nullopt;
}

namespace {

/// Writes an op with loops in several parts.
class LoopSplitter {
public:
  LoopSplitter(linalg::GenericOp op, const FlatLoop &flat) : op(op), flat(flat), b(op) {
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    for (int64_t extent : extents)
      parts.push_back({extent});
    parts[flat.loop] = {extents[flat.loop] / flat.index.extent, flat.index.extent};
    auto sums = cast<RankedTensorType>(flat.index.sum->getResult(0).getType());
    for (auto [dim, expr] : llvm::enumerate(mapOf(flat.argument).getResults())) {
      SmallVector<int64_t> &own = parts[cast<AffineDimExpr>(expr).getPosition()];
      own.clear();
      for (int64_t d : flat.index.merge[dim])
        own.push_back(sums.getDimSize(d));
    }
    for (ArrayRef<int64_t> own : parts) {
      first.push_back(numLoops);
      numLoops += own.size();
    }
  }

  linalg::GenericOp write() {
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (auto [index, input] : llvm::enumerate(op.getInputs())) {
      maps.push_back(splitMap(mapOf(index)));
      inputs.push_back(index == flat.argument ? columns() : split(input, mapOf(index)));
    }
    maps.push_back(splitMap(mapOf(op.getNumDpsInputs())));
    Value init = split(op.getDpsInits()[0], mapOf(op.getNumDpsInputs()));
    SmallVector<utils::IteratorType> iterators;
    for (auto [own, iterator] : llvm::zip_equal(parts, op.getIteratorTypesArray()))
      iterators.append(own.size(), iterator);
    auto made =
        linalg::GenericOp::create(b, op.getLoc(), init.getType(), inputs, init, maps, iterators,
                                  [&](OpBuilder &body, Location loc, ValueRange arguments) {
                                    writeBody(body, loc, arguments);
                                  });
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*made.getBody())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
    replaceResult(made->getResult(0));
    return made;
  }

private:
  AffineMap mapOf(unsigned operand) { return op.getIndexingMapsArray()[operand]; }

  AffineMap splitMap(AffineMap map) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop) { // of loops that stay as they are
        SmallVector<AffineExpr> renumbered;
        for (unsigned at : first)
          renumbered.push_back(getAffineDimExpr(at, op.getContext()));
        exprs.push_back(expr.replaceDims(renumbered));
        continue;
      }
      for (size_t part = 0; part < parts[loop.getPosition()].size(); ++part)
        exprs.push_back(getAffineDimExpr(first[loop.getPosition()] + part, op.getContext()));
    }
    return AffineMap::get(numLoops, 0, exprs, op.getContext());
  }

  /// The dimensions of a split tensor by dimension of the tensor, and its type.
  std::pair<SmallVector<ReassociationIndices>, RankedTensorType> shapeOf(RankedTensorType type,
                                                                         AffineMap map) const {
    SmallVector<ReassociationIndices> groups;
    SmallVector<int64_t> shape;
    for (auto [extent, expr] : llvm::zip_equal(type.getShape(), map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      SmallVector<int64_t> own = loop && parts[loop.getPosition()].size() != 1
                                     ? parts[loop.getPosition()]
                                     : SmallVector<int64_t>{extent};
      groups.emplace_back();
      for (int64_t part : own) {
        groups.back().push_back(std::ssize(shape));
        shape.push_back(part);
      }
    }
    return {groups, type.clone(shape)};
  }

  Value split(Value value, AffineMap map) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return value;
    auto [groups, wide] = shapeOf(type, map);
    if (wide == type)
      return value;
    auto merged = value.getDefiningOp<tensor::CollapseShapeOp>();
    if (merged && merged.getSrcType() == wide && merged.getReassociationIndices() == groups)
      return merged.getSrc();
    return tensor::ExpandShapeOp::create(b, op.getLoc(), wide, value, groups);
  }

  /// The columns as a tensor.
  Value columns() {
    linalg::GenericOp sum = flat.index.sum;
    OpBuilder at(sum);
    at.setInsertionPointAfter(sum);
    auto copy = cast<linalg::GenericOp>(at.clone(*sum));
    IRMapping mapping; // of the body's values, in order
    Value column;
    if (auto argument = dyn_cast<BlockArgument>(flat.index.column)) {
      column = copy.getBody()->getArgument(argument.getArgNumber());
    } else {
      for (auto [old, made] : llvm::zip_equal(*sum.getBody(), *copy.getBody()))
        if (&old == flat.index.column.getDefiningOp())
          column = made.getResult(0);
    }
    Operation *end = copy.getBody()->getTerminator();
    end->setOperand(0, column);
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*copy.getBody())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
    return copy->getResult(0);
  }

  void writeBody(OpBuilder &body, Location loc, ValueRange arguments) {
    auto indexOf = [&](unsigned loop) -> Value { return linalg::IndexOp::create(body, loc, loop); };
    auto asIndex = [&](Value value) -> Value {
      return value.getType().isIndex()
                 ? value
                 : arith::IndexCastOp::create(body, loc, body.getIndexType(), value).getResult();
    };
    auto merged = [&](Value high, int64_t by, Value low) -> Value {
      Value scaled =
          arith::MulIOp::create(body, loc, high, arith::ConstantIndexOp::create(body, loc, by));
      return arith::AddIOp::create(body, loc, scaled, low);
    };
    // The loops of the sum are those of the index tensor's dimensions, in order.
    SmallVector<AffineExpr> loops;
    for (AffineExpr expr : mapOf(flat.argument).getResults()) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      for (size_t part = 0; part < parts[loop].size(); ++part)
        loops.push_back(getAffineDimExpr(first[loop] + part, op.getContext()));
    }
    Value row = writeAffine(body, loc, flat.index.row.replaceDims(loops));
    Value column = asIndex(arguments[flat.argument]);
    IRMapping mapping;
    mapping.map(op.getBody()->getArguments(), arguments);
    BlockArgument argument = op.getBody()->getArgument(flat.argument);
    Value whole = merged(row, flat.index.extent, column);
    if (!argument.getType().isIndex())
      whole = arith::IndexCastOp::create(body, loc, argument.getType(), whole);
    mapping.map(argument, whole);
    for (Operation &inner : *op.getBody()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        unsigned loop = index.getDim();
        Value at = indexOf(first[loop]);
        for (size_t part = 1; part < parts[loop].size(); ++part)
          at = merged(at, parts[loop][part], indexOf(first[loop] + part));
        mapping.map(index.getResult(), at);
      } else if (auto compare = dyn_cast<arith::CmpIOp>(inner); compare && isSelection(compare)) {
        Value isRow = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, row,
                                            indexOf(first[flat.loop]));
        Value isColumn = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, column,
                                               indexOf(first[flat.loop] + 1));
        mapping.map(compare.getResult(),
                    arith::AndIOp::create(body, loc, isRow, isColumn).getResult());
      } else {
        body.clone(inner, mapping);
      }
    }
  }

  /// Whether a comparison asks for the flat index.
  bool isSelection(arith::CmpIOp compare) {
    auto isLoop = [&](Value value) {
      auto index = value.getDefiningOp<linalg::IndexOp>();
      return index && index.getDim() == flat.loop;
    };
    Value left = withoutCasts(compare.getLhs()), right = withoutCasts(compare.getRhs());
    Value argument = op.getBody()->getArgument(flat.argument);
    return compare.getPredicate() == arith::CmpIPredicate::eq &&
           ((isLoop(left) && right == argument) || (isLoop(right) && left == argument));
  }

  void replaceResult(Value made) {
    Value old = op->getResult(0);
    auto [groups, wide] =
        shapeOf(cast<RankedTensorType>(old.getType()), mapOf(op.getNumDpsInputs()));
    if (wide != old.getType()) {
      for (Operation *user : llvm::to_vector(old.getUsers()))
        if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user);
            expand && isPlain(expand) && expand.getType() == wide &&
            expand.getReassociationIndices() == groups) {
          expand.getResult().replaceAllUsesWith(made);
          expand.erase();
        }
      made = tensor::CollapseShapeOp::create(b, op.getLoc(), cast<RankedTensorType>(old.getType()),
                                             made, groups);
    }
    old.replaceAllUsesWith(made);
    op.erase();
  }

  linalg::GenericOp op;
  const FlatLoop &flat;
  OpBuilder b;
  SmallVector<SmallVector<int64_t>> parts; ///< by loop: the extents of its new loops
  SmallVector<unsigned> first;             ///< by loop: the first of them
  unsigned numLoops = 0;
};

} // namespace

void dist::splitFlatIndices(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  ElementRanges ranges;
  for (linalg::GenericOp op : ops)
    while (std::optional<FlatLoop> flat = findFlatLoop(op, ranges)) {
      op = LoopSplitter(op, *flat).write();
      ranges = ElementRanges(); // it may know values of the same address
    }
}
