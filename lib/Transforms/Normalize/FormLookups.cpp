//===- FormLookups.cpp - Reads and writes at computed indices -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A read at a computed index, by tensor.gather or by tensor.extract in a body,
//
//   y[i, j] = x[index[i], j]
//
// needs all of x on each device. As a sum of which one term counts it has the sharding
// rule of a sum: where v is cut, each device looks up its rows.
//
//   y[i, j] = sum over v of select(clamp(index[i]) == v, x[v, j], -0)
//
// -0 changes no float, so that y has the bits of x. tensor.scatter assigns in order,
// which no devices can share, but the rows v may be cut:
//
//   y[v, j] = x[v, j], then for each i: select(clamp(index[i]) == v, u[i, j], y[v, j])
//
//===----------------------------------------------------------------------===//

#include "FormLookups.h"
#include "PlainOps.h"

#include "AffineValues.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether a look-up can add elements of this type: booleans are combined by `or`.
static bool hasSums(Type element) {
  return isa<FloatType>(element) || element.isInteger();
}

/// What a look-up adds where nothing is selected.
static TypedAttr identityOfSum(OpBuilder &b, Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return b.getFloatAttr(type, APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
  return b.getZeroAttr(element);
}

static Value addTo(OpBuilder &b, Location loc, Value sum, Value term) {
  if (isa<FloatType>(term.getType()))
    return arith::AddFOp::create(b, loc, sum, term);
  if (term.getType().isInteger(1))
    return arith::OrIOp::create(b, loc, sum, term);
  return arith::AddIOp::create(b, loc, sum, term);
}

/// In a body: whether `index`, clamped to `extent`, is the iteration of `loop`.
static Value selects(OpBuilder &b, Location loc, Value index, int64_t extent, unsigned loop) {
  if (!index.getType().isIndex())
    index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
  index = clampIndex(b, loc, index, extent);
  Value here = linalg::IndexOp::create(b, loc, loop);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index, here);
}

static Value both(OpBuilder &b, Location loc, Value one, Value other) {
  return one ? arith::AndIOp::create(b, loc, one, other).getResult() : other;
}

static SmallVector<OpFoldResult> indexAttrs(OpBuilder &b, int64_t count, int64_t value) {
  return SmallVector<OpFoldResult>(count, b.getIndexAttr(value));
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

namespace {

/// The elements of a table at indices that may be computed.
struct Lookup {
  Value table;
  /// By dimension of the table: the index as a function of the loops of the result, or null if a
  /// body computes it.
  SmallVector<AffineExpr> places;
  SmallVector<int64_t> extents; ///< of the result
  SmallVector<Value> inputs;    ///< of the body
  SmallVector<AffineMap> maps;  ///< of these, over the loops of the result

  /// `indexOf` writes the index of a dimension, given the arguments for the inputs.
  Value write(OpBuilder &b, Location loc,
              llvm::function_ref<Value(OpBuilder &, unsigned, ValueRange)> indexOf);
};

} // namespace

Value Lookup::write(OpBuilder &b, Location loc,
                    llvm::function_ref<Value(OpBuilder &, unsigned, ValueRange)> indexOf) {
  auto type = cast<RankedTensorType>(table.getType());
  auto numParallel = static_cast<unsigned>(extents.size()), loops = numParallel;
  SmallVector<int64_t> ranges = extents;
  SmallVector<std::pair<unsigned, unsigned>> searched; // dimension, loop
  for (auto [d, place] : llvm::enumerate(places)) {
    if (type.getDimSize(d) == 1) {
      place = b.getAffineConstantExpr(0);
    } else if (!place) {
      searched.emplace_back(d, loops);
      ranges.push_back(type.getDimSize(d));
      place = b.getAffineDimExpr(loops++);
    }
  }
  SmallVector<AffineMap> all{AffineMap::get(loops, 0, places, b.getContext())};
  SmallVector<Value> operands{readPart(b, loc, table, all[0], ranges)};
  llvm::append_range(operands, inputs);
  for (AffineMap map : maps)
    all.push_back(AffineMap::get(loops, 0, map.getResults(), b.getContext()));
  all.push_back(
      AffineMap::getMultiDimIdentityMap(loops, b.getContext()).getMajorSubMap(numParallel));
  if (numParallel == 0)
    all.back() = AffineMap::get(loops, 0, b.getContext());
  SmallVector<utils::IteratorType> iterators(numParallel, utils::IteratorType::parallel);
  iterators.resize(loops, utils::IteratorType::reduction);
  auto result = RankedTensorType::get(extents, type.getElementType());
  Value init;
  TypedAttr none = identityOfSum(b, type.getElementType());
  if (searched.empty())
    init = tensor::EmptyOp::create(b, loc, extents, type.getElementType());
  else
    init = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(result, Attribute(none)));
  auto body = [&](OpBuilder &body, Location at, ValueRange arguments) {
    Value element = arguments.front();
    if (searched.empty()) {
      linalg::YieldOp::create(body, at, element);
      return;
    }
    Value found;
    for (auto [d, loop] : searched) {
      Value index = indexOf(body, d, arguments.drop_front().drop_back());
      found = both(body, at, found, selects(body, at, index, type.getDimSize(d), loop));
    }
    Value nothing = arith::ConstantOp::create(body, at, none);
    Value term = arith::SelectOp::create(body, at, found, element, nothing);
    linalg::YieldOp::create(body, at, addTo(body, at, arguments.back(), term));
  };
  return linalg::GenericOp::create(b, loc, result, operands, init, all, iterators, body)
      .getResult(0);
}

static void rewriteGather(tensor::GatherOp op) {
  RankedTensorType source = op.getSourceType(), type = op.getResultType();
  RankedTensorType indices = op.getIndicesType();
  ArrayRef<int64_t> gathered = op.getGatherDims();
  if (!hasSums(source.getElementType()) || source.getNumElements() == 0 ||
      type.getNumElements() == 0)
    return;
  OpBuilder b(op);
  int64_t batch = indices.getRank() - 1, next = batch;
  bool isReduced = type.getRank() < batch + source.getRank();
  Lookup lookup;
  lookup.table = op.getSource();
  lookup.extents.assign(type.getShape().begin(), type.getShape().end());
  for (int64_t d = 0; d < source.getRank(); ++d) {
    bool isGathered = llvm::is_contained(gathered, d);
    lookup.places.push_back(isGathered ? AffineExpr() : b.getAffineDimExpr(next));
    next += isGathered && isReduced ? 0 : 1;
  }
  for (int64_t number = 0; number < std::ssize(gathered); ++number) {
    SmallVector<AffineExpr> at;
    for (int64_t d = 0; d < batch; ++d)
      at.push_back(b.getAffineDimExpr(d));
    at.push_back(b.getAffineConstantExpr(number));
    lookup.inputs.push_back(op.getIndices());
    lookup.maps.push_back(AffineMap::get(type.getRank(), 0, at, b.getContext()));
  }
  Value made =
      lookup.write(b, op.getLoc(), [&](OpBuilder &, unsigned dim, ValueRange arguments) -> Value {
        return arguments[llvm::find(gathered, dim) - gathered.begin()];
      });
  op.getResult().replaceAllUsesWith(made);
  op.erase();
}

//===----------------------------------------------------------------------===//
// Reads in bodies
//===----------------------------------------------------------------------===//

namespace {

/// The values of a body from which indices are computed.
class Slice {
public:
  explicit Slice(linalg::GenericOp op)
      : loops(op.getNumLoops()), arguments(op.getNumDpsInputs()), op(op) {}

  /// Returns whether a value can be computed elsewhere.
  bool add(Value value);
  llvm::SmallBitVector loops;     ///< on which the values depend
  llvm::SmallBitVector arguments; ///< of the body: the inputs that they read

  /// Copies a value. `renumbered`: by loop.
  static Value copy(OpBuilder &b, Value value, ArrayRef<unsigned> renumbered, IRMapping &known,
                    Block *body);

private:
  linalg::GenericOp op;
  llvm::DenseSet<Value> seen; ///< looked up only
};

} // namespace

bool Slice::add(Value value) {
  if (!seen.insert(value).second)
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return true;
    if (argument.getArgNumber() >= arguments.size())
      return false; // an accumulator
    arguments.set(argument.getArgNumber());
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    for (unsigned loop = 0; loop < loops.size(); ++loop)
      if (map.isFunctionOfDim(loop))
        loops.set(loop);
    return true;
  }
  Operation *producer = value.getDefiningOp();
  if (producer->getBlock() != op.getBody())
    return true;
  if (auto index = dyn_cast<linalg::IndexOp>(producer)) {
    loops.set(index.getDim());
    return true;
  }
  return producer->getNumRegions() == 0 && isPure(producer) &&
         llvm::all_of(producer->getOperands(), [&](Value operand) { return add(operand); });
}

Value Slice::copy(OpBuilder &b, Value value, ArrayRef<unsigned> renumbered, IRMapping &known,
                  Block *body) {
  if (known.contains(value))
    return known.lookup(value);
  Operation *producer = value.getDefiningOp();
  if (!producer || producer->getBlock() != body)
    return value;
  if (auto index = dyn_cast<linalg::IndexOp>(producer)) {
    Value made = linalg::IndexOp::create(b, index.getLoc(), renumbered[index.getDim()]);
    known.map(value, made);
    return made;
  }
  for (Value operand : producer->getOperands())
    copy(b, operand, renumbered, known, body);
  b.clone(*producer, known);
  return known.lookup(value);
}

/// The op with another input in place of an element that its body extracts, without inputs that it
/// then does not read.
static linalg::GenericOp withInput(linalg::GenericOp op, tensor::ExtractOp read, Value input,
                                   AffineMap map) {
  OpBuilder b(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Block &old = *op.getBody();
  Value stand = old.insertArgument(op.getNumDpsInputs(), read.getType(), read.getLoc());
  read.getResult().replaceAllUsesWith(stand);
  read.erase();
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(old)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  SmallVector<Value> inputs = llvm::to_vector(op.getInputs());
  inputs.push_back(input);
  maps.insert(maps.begin() + op.getNumDpsInputs(), map);
  SmallVector<Value> kept;
  SmallVector<AffineMap> keptMaps;
  SmallVector<unsigned> numbers;
  for (auto [n, value] : llvm::enumerate(inputs))
    if (!old.getArgument(n).use_empty()) {
      kept.push_back(value);
      keptMaps.push_back(maps[n]);
      numbers.push_back(n);
    }
  for (unsigned n = inputs.size(); n < maps.size(); ++n) {
    keptMaps.push_back(maps[n]);
    numbers.push_back(n);
  }
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), op->getResultTypes(), kept, op.getOutputs(), keptMaps,
      op.getIteratorTypesArray(), [&](OpBuilder &body, Location, ValueRange arguments) {
        IRMapping mapping;
        for (auto [n, argument] : llvm::zip_equal(numbers, arguments))
          mapping.map(old.getArgument(n), argument);
        for (Operation &inner : old)
          body.clone(inner, mapping);
      });
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(made->getResults());
  op.erase();
  return made;
}

/// Makes an element that the body extracts an input of the op. Returns the op that replaces it;
/// null if nothing is changed.
static linalg::GenericOp readOutside(linalg::GenericOp op, tensor::ExtractOp read) {
  auto type = cast<RankedTensorType>(read.getTensor().getType());
  if (!hasSums(type.getElementType()) || type.getRank() == 0 || type.getNumElements() == 0)
    return {};
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<int64_t> direct(type.getRank(), -1); // the loop that is the index
  Slice slice(op);
  for (auto [d, index] : llvm::enumerate(read.getIndices())) {
    if (type.getDimSize(d) == 1)
      continue;
    auto loop = index.getDefiningOp<linalg::IndexOp>();
    if (loop && ranges[loop.getDim()] <= type.getDimSize(d)) {
      direct[d] = static_cast<int64_t>(loop.getDim());
      slice.loops.set(loop.getDim());
    } else if (!slice.add(index)) {
      return {};
    }
  }
  OpBuilder b(op);
  SmallVector<unsigned> renumbered(ranges.size());
  SmallVector<AffineExpr> exprs(ranges.size(), b.getAffineConstantExpr(0)), loops;
  Lookup lookup;
  lookup.table = read.getTensor();
  for (unsigned loop : slice.loops.set_bits()) {
    renumbered[loop] = lookup.extents.size();
    exprs[loop] = b.getAffineDimExpr(renumbered[loop]);
    loops.push_back(b.getAffineDimExpr(loop));
    lookup.extents.push_back(ranges[loop]);
  }
  for (int64_t loop : direct)
    lookup.places.push_back(loop < 0 ? AffineExpr() : exprs[loop]);
  SmallVector<unsigned> arguments(slice.arguments.set_bits());
  for (unsigned n : arguments) {
    lookup.inputs.push_back(op.getInputs()[n]);
    lookup.maps.push_back(
        op.getIndexingMapsArray()[n].replaceDimsAndSymbols(exprs, {}, lookup.extents.size(), 0));
  }
  IRMapping known;
  Value made = lookup.write(
      b, read.getLoc(), [&](OpBuilder &body, unsigned dim, ValueRange values) -> Value {
        for (auto [n, value] : llvm::zip_equal(arguments, values))
          known.map(op.getBody()->getArgument(n), value);
        return Slice::copy(body, read.getIndices()[dim], renumbered, known, op.getBody());
      });
  return withInput(op, read, made, AffineMap::get(ranges.size(), 0, loops, b.getContext()));
}

/// An op that only passes its input on.
static void forward(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || maps[0] != maps[1] ||
      !maps[0].isIdentity() || op.getInputs()[0].getType() != op->getResult(0).getType() ||
      op.getBody()->getTerminator()->getOperand(0) != op.getBody()->getArgument(0) || !isPlain(op))
    return;
  op->getResult(0).replaceAllUsesWith(op.getInputs()[0]);
  op.erase();
}

static void rewriteReads(linalg::GenericOp op) {
  if (op.getNumParallelLoops() != op.getNumLoops() || !op.hasPureTensorSemantics() ||
      op.hasDynamicShape() || !llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
        return op.getMatchingIndexingMap(&init).isPermutation();
      }))
    return;
  bool isChanged = false;
  for (bool again = true; again;) {
    again = false;
    for (auto read : op.getBody()->getOps<tensor::ExtractOp>())
      if (linalg::GenericOp made = readOutside(op, read)) {
        op = made;
        again = isChanged = true;
        break;
      }
  }
  if (isChanged)
    forward(op);
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

static void rewriteScatter(tensor::ScatterOp op) {
  RankedTensorType source = op.getSourceType(), type = op.getDestType();
  if (source.getNumElements() == 0 || type.getNumElements() == 0)
    return;
  OpBuilder b(op);
  ArrayRef<int64_t> scattered = op.getScatterDims();
  int64_t rank = type.getRank(), batch = op.getIndicesType().getRank() - 1;
  int64_t loops = rank + batch;
  bool isReduced = source.getRank() < loops;
  SmallVector<AffineExpr> tuple, read, written;
  for (int64_t d = 0; d < batch; ++d)
    tuple.push_back(b.getAffineDimExpr(rank + d));
  read = tuple;
  for (int64_t d = 0; d < rank; ++d) {
    written.push_back(b.getAffineDimExpr(d));
    if (!llvm::is_contained(scattered, d))
      read.push_back(written.back());
    else if (!isReduced)
      read.push_back(b.getAffineConstantExpr(0));
  }
  auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(loops, 0, exprs, b.getContext());
  };
  SmallVector<Value> inputs{op.getSource()};
  SmallVector<AffineMap> maps{mapOf(read)};
  for (int64_t number = 0; number < std::ssize(scattered); ++number) {
    SmallVector<AffineExpr> at = tuple;
    at.push_back(b.getAffineConstantExpr(number));
    inputs.push_back(op.getIndices());
    maps.push_back(mapOf(at));
  }
  maps.push_back(mapOf(written));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.resize(loops, utils::IteratorType::reduction);
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), type, inputs, op.getDest(), maps, iterators,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        Value found;
        for (auto [number, d] : llvm::enumerate(scattered))
          if (type.getDimSize(d) > 1)
            found = both(body, loc, found,
                         selects(body, loc, arguments[1 + number], type.getDimSize(d), d));
        Value next = arguments.front();
        if (found)
          next = arith::SelectOp::create(body, loc, found, next, arguments.back());
        linalg::YieldOp::create(body, loc, next);
      });
  op.getResult().replaceAllUsesWith(made.getResult(0));
  op.erase();
}

//===----------------------------------------------------------------------===//
// Single elements
//===----------------------------------------------------------------------===//

/// Indices of an element as offsets of a slice; constant ones are clamped here.
static SmallVector<OpFoldResult> offsetsOf(OpBuilder &b, ValueRange indices,
                                           ArrayRef<int64_t> shape) {
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(indices);
  for (auto [offset, extent] : llvm::zip_equal(offsets, shape))
    if (std::optional<int64_t> number = getConstantIntValue(offset))
      offset = b.getIndexAttr(std::clamp<int64_t>(*number, 0, extent - 1));
  return offsets;
}

/// An element outside of bodies: a slice of one element, which its owner sends.
static void rewriteElement(tensor::ExtractOp op) {
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  if (type.getNumElements() <= 1)
    return;
  OpBuilder b(op);
  auto one = RankedTensorType::get({}, type.getElementType());
  SmallVector<OpFoldResult> ones = indexAttrs(b, type.getRank(), 1);
  Value slice =
      tensor::ExtractSliceOp::create(b, op.getLoc(), one, op.getTensor(),
                                     offsetsOf(b, op.getIndices(), type.getShape()), ones, ones);
  op.getResult().replaceAllUsesWith(tensor::ExtractOp::create(b, op.getLoc(), slice, ValueRange()));
  op.erase();
}

static void rewriteElement(tensor::InsertOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (type.getNumElements() <= 1)
    return;
  OpBuilder b(op);
  auto one = RankedTensorType::get({}, type.getElementType());
  SmallVector<OpFoldResult> ones = indexAttrs(b, type.getRank(), 1);
  Value element = tensor::FromElementsOp::create(b, op.getLoc(), one, op.getScalar());
  Value made =
      tensor::InsertSliceOp::create(b, op.getLoc(), element, op.getDest(),
                                    offsetsOf(b, op.getIndices(), type.getShape()), ones, ones);
  op.getResult().replaceAllUsesWith(made);
  op.erase();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Where a window is as long as its dimension, each offset is clamped to 0: it need not be
/// computed, and the dimension may be cut.
template <typename Slice> static void placeWholeDims(Slice op, Value windowed) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(windowed.getType()).getShape();
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets();
  bool changes = false;
  for (auto [d, offset] : llvm::enumerate(offsets))
    if (isa<Value>(offset) && op.getStaticSizes()[d] == shape[d] && op.getStaticStrides()[d] == 1) {
      offset = IntegerAttr::get(IndexType::get(op.getContext()), 0);
      changes = true;
    }
  if (!changes)
    return;
  SmallVector<int64_t> known;
  SmallVector<Value> computed;
  dispatchIndexOpFoldResults(offsets, computed, known);
  op.getOffsetsMutable().assign(computed);
  op.setStaticOffsets(known);
}

void dist::formLookups(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<tensor::GatherOp, tensor::ScatterOp, tensor::ExtractOp, tensor::InsertOp,
            tensor::ExtractSliceOp, tensor::InsertSliceOp, linalg::GenericOp>(op))
      ops.push_back(op);
    // Bodies are rewritten with their op.
    return isa<linalg::LinalgOp, tensor::PadOp, tensor::GenerateOp>(op) ? WalkResult::skip()
                                                                        : WalkResult::advance();
  });
  for (Operation *op : ops) {
    if (auto gather = dyn_cast<tensor::GatherOp>(op))
      rewriteGather(gather);
    else if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
      rewriteScatter(scatter);
    else if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      rewriteElement(extract);
    else if (auto insert = dyn_cast<tensor::InsertOp>(op))
      rewriteElement(insert);
    else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      placeWholeDims(slice, slice.getSource());
    else if (auto update = dyn_cast<tensor::InsertSliceOp>(op))
      placeWholeDims(update, update.getDest());
    else
      rewriteReads(cast<linalg::GenericOp>(op));
  }
}
