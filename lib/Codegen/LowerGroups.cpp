//===- LowerGroups.cpp - Products of blocks of rows of one group ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[r, n] = sum over g, k of select(group[r] == g, x[r, k] w[g, k, n], 0)
//
// Rows are sorted by group, and divided into blocks of rows of one group:
//
//   sorted, row = sort(group[r], r);  sizes[g], ends[g] of the groups
//   blocks of group g: ceil(sizes[g] / 128);  of block b: its group, its rows
//   for %b = 0 to the sum of the blocks:
//     y[rows[b]] += x[rows[b]] w[group of b]
//
// and the derivative by the matrices likewise:
//
//   for %b:   d[group of b] += x[rows[b]]^T y[rows[b]]
//
// Rows of other devices' groups are in no block. So the loop has as many iterations as
// this device's groups have rows, which depends on the data. The ops in front of the
// loop are the same for all products with one vector of groups, and become one.
//
//===----------------------------------------------------------------------===//

#include "LowerGroups.h"
#include "MergeGroupRows.h"

#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using dist::GroupedProduct;
using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Rows of a block: a product of as many runs at the processor's rate.
static constexpr int64_t kBlockRows = 128;
/// The least products of elements: fewer take less time than the steps of a loop.
static constexpr int64_t kLeastProducts = 1 << 15;

namespace {

/// The blocks of rows of each group.
struct Blocks {
  linalg::GenericOp keys; ///< the group of each row
  int64_t groups = 0;
  Value owners; ///< the group of each block
  Value places; ///< [blocks, rows of a block]: numbers of rows, of none the number of all rows
  Value count;  ///< of blocks
};

class GroupWriter {
public:
  GroupWriter(linalg::GenericOp op, const GroupedProduct &product)
      : b(op), loc(op.getLoc()), op(op), product(product), extents(op.getStaticLoopRanges()),
        rows(extents[product.rows.front()]), groups(extents[product.group]),
        blockRows(std::min<int64_t>(kBlockRows, llvm::divideCeil(rows, groups))),
        most((rows + groups * (blockRows - 1)) / blockRows) {}

  /// Whether every condition can be checked for a row, or for an element of a factor.
  bool canWrite();
  /// `known`: blocks of the products before.
  Value write(SmallVectorImpl<Blocks> &known);

private:
  Value generic(ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape, Type element,
                Body body);
  Value sum(ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape, int64_t reduced,
            Body term);
  Value number(OpBuilder &at, int64_t value) {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value at(OpBuilder &in, Value tensor, Value place) {
    return tensor::ExtractOp::create(in, loc, tensor, ValueRange{asIndex(in, place)});
  }
  Value asIndex(OpBuilder &in, Value value) {
    return value.getType().isIndex()
               ? value
               : arith::IndexCastOp::create(in, loc, in.getIndexType(), value).getResult();
  }
  Value asInt(OpBuilder &in, Value value) {
    return arith::IndexCastOp::create(in, loc, in.getI32Type(), value);
  }
  AffineMap dims(unsigned count, ArrayRef<unsigned> which) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dim : which)
      exprs.push_back(b.getAffineDimExpr(dim));
    return AffineMap::get(count, 0, exprs, b.getContext());
  }

  llvm::SmallBitVector loopsOf(Value scalar);
  Value copy(OpBuilder &in, Value scalar, IRMapping &known);
  Value writeKeys();
  void writeBlocks(SmallVectorImpl<Blocks> &known);
  Value blockOf(OpBuilder &at, OpOperand *factor, Value block, Value owner);
  Value masked(OpBuilder &at, OpOperand *factor, Value value);
  AffineMap withoutGroup(OpOperand &operand);
  Value addBlock(OpBuilder &at, Value total, Value block);

  OpBuilder b;
  Location loc;
  linalg::GenericOp op;
  GroupedProduct product;
  SmallVector<int64_t> extents;
  int64_t rows, groups, blockRows, most;
  Blocks blocks;
};

} // namespace

Value GroupWriter::generic(ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape,
                           Type element, Body body) {
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  SmallVector<AffineMap> all(maps);
  all.push_back(b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> parallel(shape.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, empty.getType(), inputs, empty, all, parallel,
                                   [&](OpBuilder &in, Location, ValueRange arguments) {
                                     linalg::YieldOp::create(in, loc, body(in, loc, arguments));
                                   })
      .getResult(0);
}

/// The i32 sum over the last loop, of `reduced` iterations.
Value GroupWriter::sum(ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape,
                       int64_t reduced, Body term) {
  auto type = RankedTensorType::get(shape, b.getI32Type());
  Value zero = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
  SmallVector<AffineMap> all(maps);
  all.push_back(dims(shape.size() + 1, llvm::to_vector(llvm::seq<unsigned>(0, shape.size()))));
  SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
  loops.push_back(utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             b, loc, type, inputs, zero, all, loops,
             [&](OpBuilder &in, Location, ValueRange arguments) {
               Value more = term(in, loc, arguments);
               linalg::YieldOp::create(
                   in, loc, arith::AddIOp::create(in, loc, arguments.back(), more).getResult());
             })
      .getResult(0);
}

/// The loops on which a scalar of the body depends.
llvm::SmallBitVector GroupWriter::loopsOf(Value scalar) {
  llvm::SmallBitVector loops(op.getNumLoops());
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() == op.getBody()) {
      AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (map.isFunctionOfDim(loop))
          loops.set(loop);
    }
    return loops;
  }
  Operation *inner = scalar.getDefiningOp();
  if (inner->getBlock() != op.getBody())
    return loops;
  if (auto index = dyn_cast<linalg::IndexOp>(inner))
    loops.set(index.getDim());
  for (Value operand : inner->getOperands())
    loops |= loopsOf(operand);
  return loops;
}

/// Whether a scalar is computed from indices of loops, the group of the row, and values from
/// outside.
static bool isKnown(Value scalar, linalg::GenericOp op, Value group) {
  if (scalar == group)
    return true;
  if (auto argument = dyn_cast<BlockArgument>(scalar))
    return argument.getOwner() != op.getBody();
  Operation *inner = scalar.getDefiningOp();
  return inner->getBlock() != op.getBody() ||
         (inner->getNumRegions() == 0 && llvm::all_of(inner->getOperands(), [&](Value operand) {
            return isKnown(operand, op, group);
          }));
}

bool GroupWriter::canWrite() {
  double products = 1;
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (loop != product.group)
      products *= static_cast<double>(extent);
  if (products < kLeastProducts || most >= (1 << 30) || rows >= (1 << 30))
    return false;
  return llvm::all_of(product.guards, [&](Value guard) {
    if (!isKnown(guard, op, product.number))
      return false;
    llvm::SmallBitVector loops = loopsOf(guard);
    if (loops.test(product.rows.front()) || loops.test(product.group)) {
      loops.reset(product.rows.front());
      loops.reset(product.group);
      return loops.none();
    }
    return llvm::any_of(product.factors, [&](OpOperand *factor) {
      return llvm::all_of(loops.set_bits(), [&](unsigned loop) {
        return op.getMatchingIndexingMap(factor).isFunctionOfDim(loop);
      });
    });
  });
}

/// A scalar of the body elsewhere, given the values of its loops.
Value GroupWriter::copy(OpBuilder &in, Value scalar, IRMapping &known) {
  if (known.contains(scalar))
    return known.lookup(scalar);
  Operation *inner = scalar.getDefiningOp();
  if (!inner || inner->getBlock() != op.getBody())
    return scalar;
  for (Value operand : inner->getOperands())
    copy(in, operand, known);
  in.clone(*inner, known);
  return known.lookup(scalar);
}

/// Maps the indices of a loop in the body to a value.
static void mapIndices(linalg::GenericOp op, unsigned loop, Value value, IRMapping &known) {
  for (auto index : op.getBody()->getOps<linalg::IndexOp>())
    if (index.getDim() == loop)
      known.map(index.getResult(), value);
}

/// The group of each row on this device, the number of groups for rows of none.
Value GroupWriter::writeKeys() {
  AffineMap row = b.getMultiDimIdentityMap(1);
  return generic(
      product.index->get(), row, {rows}, b.getI32Type(),
      [&](OpBuilder &in, Location, ValueRange arguments) {
        IRMapping known;
        known.map(op.getMatchingBlockArgument(product.index), arguments[0]);
        for (auto [loop, extent] : llvm::enumerate(extents))
          if (extent == 1)
            mapIndices(op, loop, arith::ConstantIndexOp::create(in, loc, 0), known);
        mapIndices(op, product.rows.front(), linalg::IndexOp::create(in, loc, 0), known);
        Value group = asIndex(in, copy(in, product.number, known));
        for (Value offset : product.offsets)
          group = arith::SubIOp::create(in, loc, group, asIndex(in, copy(in, offset, known)));
        mapIndices(op, product.group, group, known);
        Value last = arith::ConstantIndexOp::create(in, loc, groups);
        Value is = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, group, last);
        for (Value guard : product.guards)
          if (llvm::SmallBitVector loops = loopsOf(guard);
              loops.test(product.rows.front()) || loops.test(product.group))
            is = arith::AndIOp::create(in, loc, is, copy(in, guard, known));
        return asInt(in, arith::SelectOp::create(in, loc, is, group, last));
      });
}

/// Finds the blocks of the same rows, or writes them.
void GroupWriter::writeBlocks(SmallVectorImpl<Blocks> &known) {
  Value keys = writeKeys();
  blocks = {keys.getDefiningOp<linalg::GenericOp>(), groups, {}, {}, {}};
  for (const Blocks &other : known) {
    if (other.keys->getBlock() != op->getBlock() || other.groups != groups ||
        other.keys->getResult(0).getType() != keys.getType())
      continue;
    blocks.keys->setOperand(1, linalg::GenericOp(other.keys).getDpsInits()[0]);
    if (!OperationEquivalence::isEquivalentTo(blocks.keys, other.keys,
                                              OperationEquivalence::IgnoreLocations))
      continue;
    blocks.keys.erase();
    blocks = other;
    return;
  }
  Type i32 = b.getI32Type();
  auto numbered = [&](int64_t extent) {
    return generic({}, {}, {extent}, i32, [&](OpBuilder &in, Location, ValueRange) {
      return asInt(in, linalg::IndexOp::create(in, loc, 0));
    });
  };
  auto sorted = ext::SortOp::create(b, loc, b.getI64IntegerAttr(0), b.getI64IntegerAttr(1),
                                    UnitAttr(), IntegerAttr(), ValueRange{keys, numbered(rows)});
  Value order = sorted.getResult(1);
  Value sizes = sum(keys, dims(2, {1}), {groups}, rows,
                    [&](OpBuilder &in, Location, ValueRange arguments) -> Value {
                      Value group = asInt(in, linalg::IndexOp::create(in, loc, 0));
                      Value is = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq,
                                                       arguments[0], group);
                      return arith::SelectOp::create(in, loc, is, number(in, 1), number(in, 0));
                    });
  auto cumulative = [&](Value values) {
    auto scan = ext::ScanOp::create(b, loc, TypeRange(values.getType()), b.getI64IntegerAttr(0),
                                    UnitAttr(), UnitAttr(), ValueRange{values},
                                    b.getArrayAttr({b.getI32IntegerAttr(0)}));
    Block &body = scan.getCombiner().emplaceBlock();
    body.addArguments({i32, i32}, {loc, loc});
    OpBuilder in = OpBuilder::atBlockEnd(&body);
    Value both = arith::AddIOp::create(in, loc, body.getArgument(0), body.getArgument(1));
    ext::YieldOp::create(in, loc, both);
    return scan.getResult(0);
  };
  Value ends = cumulative(sizes);
  AffineMap identity = b.getMultiDimIdentityMap(1);
  auto blocksOf = [&](OpBuilder &in, Value size) {
    Value more = arith::AddIOp::create(in, loc, size, number(in, blockRows - 1));
    return arith::DivUIOp::create(in, loc, more, number(in, blockRows)).getResult();
  };
  Value last = cumulative(
      generic(sizes, identity, {groups}, i32, [&](OpBuilder &in, Location, ValueRange arguments) {
        return blocksOf(in, arguments[0]);
      }));
  Value owners = sum({last, numbered(most)}, {dims(2, {1}), dims(2, {0})}, {most}, groups,
                     [&](OpBuilder &in, Location, ValueRange arguments) -> Value {
                       Value is = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sle,
                                                        arguments[0], arguments[1]);
                       return arith::ExtUIOp::create(in, loc, i32, is);
                     });
  owners =
      generic(owners, identity, {most}, i32, [&](OpBuilder &in, Location, ValueRange arguments) {
        return arith::MinSIOp::create(in, loc, arguments[0], number(in, groups - 1)).getResult();
      });
  blocks.owners = owners;
  blocks.places = generic(
      owners, dims(2, {0}), {most, blockRows}, i32,
      [&](OpBuilder &in, Location, ValueRange arguments) -> Value {
        Value owner = arguments[0], end = at(in, ends, owner), size = at(in, sizes, owner);
        Value first = arith::SubIOp::create(in, loc, at(in, last, owner), blocksOf(in, size));
        Value block = asInt(in, linalg::IndexOp::create(in, loc, 0));
        Value begin = arith::SubIOp::create(in, loc, end, size);
        Value before = arith::MulIOp::create(in, loc, arith::SubIOp::create(in, loc, block, first),
                                             number(in, blockRows));
        Value place = arith::AddIOp::create(in, loc, begin, before);
        place =
            arith::AddIOp::create(in, loc, place, asInt(in, linalg::IndexOp::create(in, loc, 1)));
        Value is = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, place, end);
        place = arith::MaxSIOp::create(in, loc, place, number(in, 0));
        place = arith::MinSIOp::create(in, loc, place, number(in, rows - 1));
        return arith::SelectOp::create(in, loc, is, at(in, order, place), number(in, rows));
      });
  blocks.count =
      asIndex(b, tensor::ExtractOp::create(
                     b, loc, last, ValueRange{arith::ConstantIndexOp::create(b, loc, groups - 1)}));
  known.push_back(blocks);
}

/// The map of an operand in the product of a block, whose loops are those of the op but the
/// group's.
AffineMap GroupWriter::withoutGroup(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : map.getResults())
    if (unsigned loop = cast<AffineDimExpr>(expr).getPosition(); loop != product.group)
      exprs.push_back(b.getAffineDimExpr(loop - (loop > product.group)));
  return AffineMap::get(op.getNumLoops() - 1, 0, exprs, b.getContext());
}

static std::optional<unsigned> dimOf(AffineMap map, unsigned loop) {
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (cast<AffineDimExpr>(expr).getPosition() == loop)
      return dim;
  return std::nullopt;
}

/// A factor with zeros where a condition on its loops does not hold.
Value GroupWriter::masked(OpBuilder &at, OpOperand *factor, Value value) {
  AffineMap map = withoutGroup(*factor);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<Value> own;
  for (Value guard : product.guards) {
    llvm::SmallBitVector loops = loopsOf(guard);
    // Sums leave out 0 times NaN of both factors.
    if (!loops.test(product.rows.front()) && !loops.test(product.group) &&
        llvm::all_of(loops.set_bits(), [&](unsigned loop) {
          return op.getMatchingIndexingMap(factor).isFunctionOfDim(loop);
        }))
      own.push_back(guard);
  }
  if (own.empty())
    return value;
  OpBuilder::InsertionGuard restore(b);
  b.restoreInsertionPoint(at.saveInsertionPoint());
  Value result =
      generic(value, b.getMultiDimIdentityMap(type.getRank()), type.getShape(),
              type.getElementType(), [&](OpBuilder &in, Location, ValueRange arguments) -> Value {
                IRMapping known;
                for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
                  if (loop != product.group)
                    if (auto dim = dimOf(map, loop - (loop > product.group)))
                      mapIndices(op, loop, linalg::IndexOp::create(in, loc, *dim), known);
                Value zero =
                    arith::ConstantOp::create(in, loc, in.getZeroAttr(type.getElementType()));
                Value kept = arguments[0];
                for (Value guard : own)
                  kept = arith::SelectOp::create(in, loc, copy(in, guard, known), kept, zero);
                return kept;
              });
  at.restoreInsertionPoint(b.saveInsertionPoint());
  return result;
}

namespace {
/// Where a tensor of all groups has the matrix of one.
struct MatrixOfGroup {
  MatrixOfGroup(OpBuilder &b, RankedTensorType all, unsigned dim, Value group)
      : offsets(all.getRank(), b.getIndexAttr(0)), strides(all.getRank(), b.getIndexAttr(1)) {
    SmallVector<int64_t> shape;
    for (auto [d, extent] : llvm::enumerate(all.getShape())) {
      sizes.push_back(b.getIndexAttr(d == dim ? 1 : extent));
      if (d != dim)
        shape.push_back(extent);
    }
    offsets[dim] = group;
    type = RankedTensorType::get(shape, all.getElementType());
  }

  Value read(OpBuilder &b, Location loc, Value all) const {
    return tensor::ExtractSliceOp::create(b, loc, type, all, offsets, sizes, strides);
  }
  Value write(OpBuilder &b, Location loc, Value matrix, Value all) const {
    return tensor::InsertSliceOp::create(b, loc, matrix, all, offsets, sizes, strides);
  }

private:
  SmallVector<OpFoldResult> offsets, sizes, strides;
  RankedTensorType type;
};
} // namespace

/// The rows of a block of a factor, or its matrix.
Value GroupWriter::blockOf(OpBuilder &at, OpOperand *factor, Value block, Value owner) {
  AffineMap map = op.getMatchingIndexingMap(factor);
  Value tensor = factor->get();
  auto type = cast<RankedTensorType>(tensor.getType());
  if (std::optional<unsigned> dim = dimOf(map, product.group)) {
    return masked(at, factor, MatrixOfGroup(at, type, *dim, owner).read(at, loc, tensor));
  }
  unsigned dim = *dimOf(map, product.rows.front());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = blockRows;
  OpBuilder::InsertionGuard restore(b);
  b.restoreInsertionPoint(at.saveInsertionPoint());
  Value rowsOf =
      generic(block, dims(shape.size(), {dim}), shape, type.getElementType(),
              [&](OpBuilder &in, Location, ValueRange arguments) -> Value {
                Value is = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, arguments[0],
                                                 number(in, rows));
                Value row = arith::MinSIOp::create(in, loc, arguments[0], number(in, rows - 1));
                SmallVector<Value> place;
                for (unsigned d = 0; d < shape.size(); ++d)
                  place.push_back(d == dim ? asIndex(in, row)
                                           : linalg::IndexOp::create(in, loc, d).getResult());
                Value element = tensor::ExtractOp::create(in, loc, tensor, place);
                Value zero =
                    arith::ConstantOp::create(in, loc, in.getZeroAttr(type.getElementType()));
                return arith::SelectOp::create(in, loc, is, element, zero);
              });
  at.restoreInsertionPoint(b.saveInsertionPoint());
  return masked(at, factor, rowsOf);
}

/// The total with the product of a block.
Value GroupWriter::addBlock(OpBuilder &at, Value total, Value block) {
  auto type = cast<RankedTensorType>(total.getType());
  OpOperand &init = *op.getDpsInitOperand(0);
  AffineMap out = op.getMatchingIndexingMap(&init);
  Value owner = asIndex(at, tensor::ExtractOp::create(at, loc, blocks.owners, ValueRange{block}));
  auto slice = tensor::ExtractSliceOp::create(
      at, loc, RankedTensorType::get({blockRows}, b.getI32Type()), blocks.places,
      SmallVector<OpFoldResult>{block, at.getIndexAttr(0)},
      SmallVector<OpFoldResult>{at.getIndexAttr(1), at.getIndexAttr(blockRows)},
      SmallVector<OpFoldResult>{at.getIndexAttr(1), at.getIndexAttr(1)});
  SmallVector<Value> inputs;
  for (OpOperand *factor : product.factors)
    inputs.push_back(blockOf(at, factor, slice, owner));
  SmallVector<AffineMap> maps;
  for (OpOperand *factor : product.factors)
    maps.push_back(withoutGroup(*factor));
  maps.push_back(withoutGroup(init));
  auto contract = [&](Value into) {
    return linalg::ContractOp::create(at, loc, TypeRange(into.getType()), inputs, into,
                                      at.getAffineMapArrayAttr(maps))
        .getResult(0);
  };
  if (std::optional<unsigned> dim = dimOf(out, product.group)) {
    MatrixOfGroup matrix(at, type, *dim, owner);
    return matrix.write(at, loc, contract(matrix.read(at, loc, total)), total);
  }
  unsigned dim = *dimOf(out, product.rows.front());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = blockRows;
  auto part = RankedTensorType::get(shape, type.getElementType());
  Value zero = arith::ConstantOp::create(at, loc, cast<TypedAttr>(at.getZeroAttr(part)));
  Value made = contract(zero);
  // A scatter: rows of the block are added where they are; those of none match no row.
  unsigned rank = type.getRank();
  SmallVector<unsigned> read = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  AffineMap written = dims(rank + 1, read);
  read[dim] = rank;
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.push_back(utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             at, loc, TypeRange(type), ValueRange{made, slice}, total,
             ArrayRef<AffineMap>{dims(rank + 1, read), dims(rank + 1, {rank}), written}, loops,
             [&](OpBuilder &in, Location, ValueRange arguments) {
               Value here = asInt(in, linalg::IndexOp::create(in, loc, dim));
               Value is =
                   arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, arguments[1], here);
               Value none =
                   arith::ConstantOp::create(in, loc, in.getZeroAttr(type.getElementType()));
               Value term = arith::SelectOp::create(in, loc, is, arguments[0], none);
               Value more = isa<FloatType>(type.getElementType())
                                ? arith::AddFOp::create(in, loc, arguments[2], term).getResult()
                                : arith::AddIOp::create(in, loc, arguments[2], term).getResult();
               linalg::YieldOp::create(in, loc, more);
             })
      .getResult(0);
}

Value GroupWriter::write(SmallVectorImpl<Blocks> &known) {
  writeBlocks(known);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto loop = scf::ForOp::create(b, loc, zero, blocks.count, one, op.getDpsInits()[0],
                                 [&](OpBuilder &in, Location, Value block, ValueRange carried) {
                                   Value next = addBlock(in, carried[0], block);
                                   scf::YieldOp::create(in, loc, next);
                                 });
  return loop.getResult(0);
}

void codegen::lowerGroups(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  SmallVector<Blocks> known;
  for (linalg::GenericOp op : ops) {
    std::optional<GroupedProduct> product = dist::matchGroupedProduct(op);
    if (product && product->rows.size() > 1) {
      op = mergeGroupRows(op, *product);
      product = op ? dist::matchGroupedProduct(op) : std::nullopt;
    }
    if (!product)
      continue;
    GroupWriter writer(op, *product);
    if (!writer.canWrite())
      continue;
    op->getResult(0).replaceAllUsesWith(writer.write(known));
    op.erase();
  }
}
