//===- NarrowBands.cpp - Products with band matrices ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[i, j] = sum over k of m[i, k] x[k, j]       N rows i, K columns k, N = g p, K = g q
//
// If m is known, the nonzero elements of row i = a p + b are between columns a q +
// first and a q + first + T - 1, for all a and b. Then
//
//   y[a p + b, j] = sum over t < T of band[a, b, t] x[a q + t + first, j]
//
// which reads windows of x, padded if the band extends beyond it. The omitted products
// have a zero factor; they matter only if x is infinite or NaN.
//
//===----------------------------------------------------------------------===//

#include "NarrowBands.h"
#include "PlainOps.h"

#include "ConstantTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// A band is narrow if the matrix has at least so many times its columns, and repeats it so often.
static constexpr int64_t kLeastColumnsOfBand = 4;
static constexpr int64_t kLeastRepetitions = 8;

namespace {

/// A product of a matrix and another operand, with the band of the matrix.
struct Banded {
  OpOperand *matrix, *other;
  unsigned row, column;       ///< loops: of the result, and the summed one
  int64_t rowDim;             ///< of the result
  int64_t columnDim;          ///< of the other operand
  int64_t repetitions;        ///< g
  int64_t rowsOf, columnsOf;  ///< p, q
  int64_t first, width;       ///< of the band
  std::vector<double> values; ///< (g, p, T)
};

} // namespace

/// Looks through conversions of floats.
static Value withoutCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether the op sums products of one element of each of its two operands.
static bool isSumOfProducts(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics() ||
      !isPlain(op) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !llvm::all_of(op->getOperandTypes(), [](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor && tensor.hasStaticShape() && isa<FloatType>(tensor.getElementType());
      }))
    return false;
  Block &block = *op.getBlock();
  auto sum = block.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  Value term = sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs();
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || (sum.getLhs() != accumulator && sum.getRhs() != accumulator) ||
      !accumulator.hasOneUse())
    return false;
  Value left = withoutCasts(product.getLhs()), right = withoutCasts(product.getRhs());
  return (left == block.getArgument(0) && right == block.getArgument(1)) ||
         (left == block.getArgument(1) && right == block.getArgument(0));
}

/// The dimension of a projected permutation that a loop indexes; -1 if there is none.
static int64_t dimOf(AffineMap map, unsigned loop) {
  for (auto [d, expr] : llvm::enumerate(map.getResults()))
    if (cast<AffineDimExpr>(expr).getPosition() == loop)
      return static_cast<int64_t>(d);
  return -1;
}

/// Finds the band of a matrix of `rows` x `columns` with elements (i, k) = values[i * byRow + k *
/// byColumn]. Returns whether it is narrow.
static bool findBand(Banded &found, ArrayRef<double> values, int64_t rows, int64_t columns,
                     int64_t byRow, int64_t byColumn) {
  int64_t g = std::gcd(rows, columns), p = rows / g, q = columns / g;
  if (g < kLeastRepetitions)
    return false;
  int64_t first = columns, last = -columns;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k)
      if (values[i * byRow + k * byColumn] != 0) {
        first = std::min(first, k - i / p * q);
        last = std::max(last, k - i / p * q);
      }
  int64_t width = last - first + 1;
  if (width <= 0 || width * kLeastColumnsOfBand > columns)
    return false;
  found.repetitions = g;
  found.rowsOf = p;
  found.columnsOf = q;
  found.first = first;
  found.width = width;
  found.values.assign(g * p * width, 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t t = 0; t < width; ++t)
      if (int64_t k = i / p * q + first + t; k >= 0 && k < columns)
        found.values[i * width + t] = values[i * byRow + k * byColumn];
  return true;
}

/// The op as a product with a band; empty if it is not one.
static std::optional<Banded> findBanded(linalg::LinalgOp op, ConstantTensors &constants) {
  if (!isSumOfProducts(op))
    return std::nullopt;
  AffineMap written = op.getIndexingMapsArray().back();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (unsigned n : {0, 1}) {
    Banded found{};
    found.matrix = op.getDpsInputOperand(n);
    found.other = op.getDpsInputOperand(1 - n);
    AffineMap own = op.getMatchingIndexingMap(found.matrix),
              others = op.getMatchingIndexingMap(found.other);
    if (own.getNumResults() != 2)
      continue;
    unsigned loops[2] = {own.getDimPosition(0), own.getDimPosition(1)};
    int64_t rowAt = dimOf(written, loops[0]) >= 0 ? 0 : 1;
    found.row = loops[rowAt];
    found.column = loops[1 - rowAt];
    found.rowDim = dimOf(written, found.row);
    found.columnDim = dimOf(others, found.column);
    if (found.rowDim < 0 || found.columnDim < 0 || dimOf(written, found.column) >= 0 ||
        dimOf(others, found.row) >= 0)
      continue;
    int64_t rows = extents[found.row], columns = extents[found.column];
    if (columns < kLeastColumnsOfBand * 2 || std::gcd(rows, columns) < kLeastRepetitions)
      continue;
    const ConstantTensors::Elements *values = constants.of(found.matrix->get());
    if (values &&
        findBand(found, *values, rows, columns, rowAt == 0 ? columns : 1, rowAt == 0 ? 1 : rows))
      return found;
  }
  return std::nullopt;
}

/// `values` as a constant tensor.
static Value constantOf(OpBuilder &b, Location loc, RankedTensorType type,
                        ArrayRef<double> values) {
  SmallVector<Attribute> elements = llvm::map_to_vector(values, [&](double value) -> Attribute {
    return FloatAttr::get(type.getElementType(), value);
  });
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, elements));
}

/// The other operand, padded with zeros if the band extends beyond it.
static Value padOther(OpBuilder &b, Location loc, const Banded &banded, int64_t &low) {
  auto type = cast<RankedTensorType>(banded.other->get().getType());
  int64_t columns = type.getDimSize(banded.columnDim), rank = type.getRank();
  low = std::max<int64_t>(0, -banded.first);
  int64_t end = (banded.repetitions - 1) * banded.columnsOf + banded.first + banded.width;
  int64_t high = std::max<int64_t>(0, end - columns);
  if (low == 0 && high == 0)
    return banded.other->get();
  SmallVector<int64_t> lows(rank, 0), highs(rank, 0), shape(type.getShape());
  lows[banded.columnDim] = low;
  highs[banded.columnDim] = high;
  shape[banded.columnDim] += low + high;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, loc, type.clone(shape), banded.other->get(),
                               getAsIndexOpFoldResult(b.getContext(), lows),
                               getAsIndexOpFoldResult(b.getContext(), highs), zero);
}

static void write(linalg::LinalgOp op, const Banded &banded) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  auto matrix = cast<RankedTensorType>(banded.matrix->get().getType());
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  bool isSplit = banded.rowsOf > 1;
  // Loops: the row's becomes a, the column's t; b is a new loop directly after a.
  auto numLoops = static_cast<unsigned>(op.getNumLoops());
  unsigned loopOfB = banded.row + 1;
  auto renumber = [&](unsigned loop) {
    return getAffineDimExpr(isSplit && loop >= loopOfB ? loop + 1 : loop, context);
  };
  AffineExpr a = renumber(banded.row), t = renumber(banded.column);
  SmallVector<AffineExpr> renumbered;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < numLoops; ++loop)
    renumbered.push_back(renumber(loop));
  if (isSplit)
    iterators.insert(iterators.begin() + loopOfB, utils::IteratorType::parallel);
  numLoops += isSplit ? 1 : 0;

  int64_t low = 0;
  Value padded = padOther(b, loc, banded, low);
  SmallVector<int64_t> bandShape{banded.repetitions};
  SmallVector<AffineExpr> bandAt{a};
  if (isSplit) {
    bandShape.push_back(banded.rowsOf);
    bandAt.push_back(getAffineDimExpr(loopOfB, context));
  }
  bandShape.push_back(banded.width);
  bandAt.push_back(t);
  Value band = constantOf(b, loc, matrix.clone(bandShape), banded.values);

  SmallVector<AffineExpr> otherAt, resultAt;
  for (AffineExpr expr : op.getMatchingIndexingMap(banded.other).getResults())
    otherAt.push_back(expr.replaceDims(renumbered));
  otherAt[banded.columnDim] = a * banded.columnsOf + t + (banded.first + low);
  SmallVector<int64_t> shape(result.getShape());
  SmallVector<ReassociationIndices> groups;
  for (auto [d, expr] : llvm::enumerate(op.getIndexingMapsArray().back().getResults())) {
    resultAt.push_back(expr.replaceDims(renumbered));
    groups.push_back({static_cast<int64_t>(resultAt.size()) - 1});
    if (isSplit && static_cast<int64_t>(d) == banded.rowDim) {
      groups.back().push_back(static_cast<int64_t>(resultAt.size()));
      resultAt.push_back(getAffineDimExpr(loopOfB, context));
    }
  }
  shape[banded.rowDim] = banded.repetitions;
  if (isSplit)
    shape.insert(shape.begin() + banded.rowDim + 1, banded.rowsOf);
  Value init = op.getDpsInits()[0];
  Attribute splat;
  DenseElementsAttr constant;
  if (matchPattern(init, m_Constant(&constant)) && constant.isSplat())
    splat = constant.getSplatValue<Attribute>();
  else if (auto fill = init.getDefiningOp<linalg::FillOp>())
    matchPattern(fill.getInputs()[0], m_Constant(&splat));
  if (isSplit && splat)
    init = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(result.clone(shape), splat));
  else if (isSplit)
    init = tensor::ExpandShapeOp::create(b, loc, result.clone(shape), init, groups);

  bool isFirst = banded.matrix->getOperandNumber() == 0;
  SmallVector<Value> inputs{padded, band};
  SmallVector<AffineMap> maps{AffineMap::get(numLoops, 0, otherAt, context),
                              AffineMap::get(numLoops, 0, bandAt, context)};
  if (isFirst) {
    std::swap(inputs[0], inputs[1]);
    std::swap(maps[0], maps[1]);
  }
  maps.push_back(AffineMap::get(numLoops, 0, resultAt, context));
  auto made = linalg::GenericOp::create(b, loc, result.clone(shape), inputs, init, maps, iterators);
  IRMapping mapping;
  op->getRegion(0).cloneInto(&made.getRegion(), mapping);
  Value value = made.getResult(0);
  if (isSplit)
    value = tensor::CollapseShapeOp::create(b, loc, result, value, groups);
  op->getResult(0).replaceAllUsesWith(value);
}

/// Erases an op and its producers without other users.
static void eraseUnused(Operation *op) {
  SmallVector<Operation *> pending{op};
  while (!pending.empty()) {
    Operation *next = pending.pop_back_val();
    if (!isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && !llvm::is_contained(pending, maker))
        pending.push_back(maker);
    llvm::erase(pending, next);
    next->erase();
  }
}

void dist::narrowBands(func::FuncOp function) {
  ConstantTensors constants;
  SmallVector<std::pair<linalg::LinalgOp, Banded>> found;
  function.walk([&](linalg::LinalgOp op) {
    if (std::optional<Banded> banded = findBanded(op, constants))
      found.push_back({op, std::move(*banded)});
  });
  // An operand may be the result of another product of the list, so it is read only now.
  for (auto &[op, banded] : found)
    ::write(op, banded);
  for (auto &[op, banded] : llvm::reverse(found))
    eraseUnused(op);
}
