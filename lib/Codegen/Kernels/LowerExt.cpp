//===- LowerExt.cpp - Lower scans and sorts to loops and nests ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerExt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

Lines::Lines(ArrayRef<int64_t> shape, unsigned dim) : extent(shape[dim]) {
  for (int64_t size : shape.take_front(dim))
    outer *= size;
  for (int64_t size : shape.drop_front(dim + 1))
    inner *= size;
}

/// The dimensions before, at and after `dim`; a dimension of extent 1 if there are none.
static SmallVector<ReassociationIndices> groupsOf(int64_t rank, unsigned dim) {
  SmallVector<ReassociationIndices> groups(3);
  for (int64_t d = 0; d < rank; ++d)
    groups[d < dim ? 0 : d == dim ? 1 : 2].push_back(d);
  return groups;
}

/// The shape with a unit dimension before and after `dim` if there are no others.
static SmallVector<int64_t> paddedShape(ArrayRef<int64_t> shape, unsigned dim, unsigned &at) {
  SmallVector<int64_t> padded(shape);
  at = dim;
  if (dim == 0) {
    padded.insert(padded.begin(), 1);
    ++at;
  }
  if (at + 1 == padded.size())
    padded.push_back(1);
  return padded;
}

Value Lines::collapse(OpBuilder &b, Location loc, Value tensor, unsigned dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  unsigned at = 0;
  SmallVector<int64_t> padded = paddedShape(type.getShape(), dim, at);
  if (padded.size() != type.getShape().size()) {
    auto groups = *getReassociationIndicesForReshape(type, type.clone(padded));
    tensor = tensor::ExpandShapeOp::create(b, loc, type.clone(padded), tensor, groups);
  }
  if (padded.size() == 3)
    return tensor;
  return tensor::CollapseShapeOp::create(b, loc, tensor, groupsOf(padded.size(), at));
}

Value Lines::expand(OpBuilder &b, Location loc, Value lines, RankedTensorType like, unsigned dim) {
  unsigned at = 0;
  SmallVector<int64_t> padded = paddedShape(like.getShape(), dim, at);
  if (padded.size() != 3)
    lines = tensor::ExpandShapeOp::create(b, loc, like.clone(padded), lines,
                                          groupsOf(padded.size(), at));
  if (padded.size() == like.getShape().size())
    return lines;
  auto groups = *getReassociationIndicesForReshape(like.clone(padded), like);
  return tensor::CollapseShapeOp::create(b, loc, like, lines, groups);
}

Value LoopWriter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value LoopWriter::constant(Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value LoopWriter::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}

Value LoopWriter::sub(Value x, Value y) {
  return arith::SubIOp::create(b, loc, x, y);
}

Value LoopWriter::min(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}

Value LoopWriter::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}

Value LoopWriter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value LoopWriter::empty(ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(b, loc, shape, element);
}

Value LoopWriter::read(Value tensor, ValueRange at) {
  return tensor::ExtractOp::create(b, loc, tensor, at);
}

Value LoopWriter::write(Value tensor, ValueRange at, Value element) {
  return tensor::InsertOp::create(b, loc, element, tensor, at);
}

LoopWriter::Values LoopWriter::readAll(ValueRange tensors, ValueRange at) {
  return llvm::map_to_vector<4>(tensors, [&](Value each) { return read(each, at); });
}

static AffineMap lastDim(OpBuilder &b, Value tensor) {
  unsigned rank = cast<RankedTensorType>(tensor.getType()).getRank();
  return AffineMap::get(rank, 0, b.getAffineDimExpr(rank - 1));
}

Value LoopWriter::readVector(Value tensor, ValueRange at, int64_t lanes) {
  Type element = getElementTypeOrSelf(tensor.getType());
  return vector::TransferReadOp::create(b, loc, VectorType::get({lanes}, element), tensor, at,
                                        constant(element, 0), lastDim(b, tensor),
                                        ArrayRef<bool>{true});
}

Value LoopWriter::writeVector(Value tensor, ValueRange at, Value vector) {
  return vector::TransferWriteOp::create(b, loc, vector, tensor, at, lastDim(b, tensor),
                                         ArrayRef<bool>{true})
      .getResult();
}

LoopWriter::Values LoopWriter::loop(Value from, Value to, Value step, ValueRange carried,
                                    function_ref<Values(LoopWriter, Value, Values)> body) {
  auto loop = scf::ForOp::create(
      b, loc, from, to, step, carried, [&](OpBuilder &inner, Location, Value iv, ValueRange state) {
        scf::YieldOp::create(inner, loc, body({inner, loc}, iv, Values(state)));
      });
  return Values(loop.getResults());
}

LoopWriter::Values LoopWriter::nest(ArrayRef<int64_t> shape, ArrayRef<Type> elements,
                                    function_ref<Values(LoopWriter, Values)> body) {
  Values inits;
  for (Type element : elements)
    inits.push_back(empty(shape, element));
  SmallVector<AffineMap> maps(elements.size(), b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> parallel(shape.size(), utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)), ValueRange(), inits, maps,
                                parallel, [&](OpBuilder &inner, Location, ValueRange) {
                                  Values at;
                                  for (size_t d = 0; d < shape.size(); ++d)
                                    at.push_back(linalg::IndexOp::create(inner, loc, d));
                                  linalg::YieldOp::create(inner, loc, body({inner, loc}, at));
                                });
  return Values(generic.getResults());
}

/// A kernel reads what it scans or sorts from memory.
static void storeConstants(OpBuilder &b, Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    SplatElementsAttr splat;
    if (!matchPattern(operand.get(), m_Constant(&splat)))
      continue;
    LoopWriter write{b, op->getLoc()};
    Value element = arith::ConstantOp::create(b, op->getLoc(), splat.getSplatValue<TypedAttr>());
    Value empty = write.empty(splat.getType().getShape(), splat.getElementType());
    operand.set(linalg::FillOp::create(b, op->getLoc(), element, empty).getResult(0));
  }
}

void codegen::lowerExtOps(func::FuncOp function, bool parallel) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<ext::ScanOp, ext::SortOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    bool isEmpty = llvm::any_of(op->getResultTypes(), [](Type type) {
      return cast<RankedTensorType>(type).getNumElements() == 0;
    });
    if (isEmpty) {
      for (Value result : op->getResults())
        result.replaceAllUsesWith(
            LoopWriter{b, op->getLoc()}.empty(cast<RankedTensorType>(result.getType()).getShape(),
                                              getElementTypeOrSelf(result.getType())));
    } else if (parallel) {
      storeConstants(b, op);
      continue;
    } else if (auto scan = dyn_cast<ext::ScanOp>(op)) {
      lowerScan(b, scan);
    } else {
      lowerSort(b, cast<ext::SortOp>(op));
    }
    op->erase();
  }
}
