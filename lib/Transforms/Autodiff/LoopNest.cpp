//===- LoopNest.cpp - Loop nests from which linalg ops are built ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera::dist;

/// The backward slice of one scalar of the body.
struct LoopNest::Slice {
  SmallVector<Operation *> ops; ///< in order
  llvm::SmallBitVector arguments, loops;
};

Value tessera::dist::zeros(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

BlockArgument LoopNest::addInput(Value value, AffineMap map) {
  inputs.push_back({value, map});
  return block->addArgument(getElementTypeOrSelf(value.getType()), loc);
}

/// The constant value of all elements of a tensor, or null.
static TypedAttr splatOf(Value value) {
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return cast<TypedAttr>(splat.getSplatValue<Attribute>());
  Value scalar;
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    scalar = fill.getInputs()[0];
  else if (auto same = value.getDefiningOp<tensor::SplatOp>())
    scalar = same.getInput();
  else if (!isa<ShapedType>(value.getType()))
    scalar = value;
  Attribute number;
  return scalar && matchPattern(scalar, m_Constant(&number)) ? dyn_cast<TypedAttr>(number)
                                                             : TypedAttr();
}

Value LoopNest::addInputOrConstant(Value value, AffineMap map) {
  TypedAttr number = splatOf(value);
  if (!number)
    return addInput(value, map);
  OpBuilder body = bodyEnd();
  return arith::ConstantOp::create(body, loc, number);
}

unsigned LoopNest::addLoop(int64_t extent) {
  extents.push_back(extent);
  for (Input &input : inputs)
    input.map = AffineMap::get(extents.size(), 0, input.map.getResults(), b.getContext());
  return extents.size() - 1;
}

AffineMap LoopNest::identityMap() const {
  return AffineMap::getMultiDimIdentityMap(extents.size(), b.getContext());
}

Value LoopNest::index(unsigned loop) const {
  OpBuilder body = bodyEnd();
  return linalg::IndexOp::create(body, loc, loop);
}

static void addLoops(AffineMap map, llvm::SmallBitVector &loops) {
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
    if (map.isFunctionOfDim(loop))
      loops.set(loop);
}

LoopNest::Slice LoopNest::sliceOf(ArrayRef<Value> scalars) const {
  Slice slice;
  slice.arguments.resize(inputs.size());
  slice.loops.resize(extents.size());
  llvm::DenseSet<Value> needed;
  auto need = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == block.get())
      slice.arguments.set(argument.getArgNumber());
    needed.insert(value);
  };
  llvm::for_each(scalars, need);
  for (Operation &op : llvm::reverse(*block)) {
    if (llvm::none_of(op.getResults(), [&](Value value) { return needed.contains(value); }))
      continue;
    slice.ops.push_back(&op);
    llvm::for_each(op.getOperands(), need);
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      slice.loops.set(index.getDim());
  }
  std::reverse(slice.ops.begin(), slice.ops.end());
  for (unsigned i : slice.arguments.set_bits())
    addLoops(inputs[i].map, slice.loops);
  return slice;
}

llvm::SmallBitVector LoopNest::inputsOf(Value scalar) const {
  return sliceOf(scalar).arguments;
}

LoopNest LoopNest::restrictedTo(MutableArrayRef<Value> scalars) const {
  Slice slice = sliceOf(scalars);
  LoopNest result(b, loc, extents);
  result.resultLoops = resultLoops;
  IRMapping mapping;
  for (unsigned i : slice.arguments.set_bits())
    mapping.map(block->getArgument(i), result.addInput(inputs[i].value, inputs[i].map));
  OpBuilder body = result.bodyEnd();
  for (Operation *op : slice.ops)
    body.clone(*op, mapping);
  for (Value &scalar : scalars)
    scalar = mapping.lookupOrDefault(scalar);
  return result;
}

/// acc combined with value.
static Value combineInto(OpBuilder &b, Location loc, LoopNest::Combine combine, Value acc,
                         Value value) {
  bool isFloat = isa<FloatType>(acc.getType());
  switch (combine) {
  case LoopNest::Combine::sum:
    return isFloat ? arith::AddFOp::create(b, loc, acc, value).getResult()
                   : arith::AddIOp::create(b, loc, acc, value).getResult();
  case LoopNest::Combine::product:
    return arith::MulFOp::create(b, loc, acc, value);
  case LoopNest::Combine::least:
    return arith::MinSIOp::create(b, loc, acc, value);
  }
  llvm_unreachable("all are listed");
}

/// value · times, for equal terms.
static Value multiply(OpBuilder &b, Location loc, Value value, double times) {
  Type type = value.getType();
  if (isa<FloatType>(type)) {
    Value factor = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, times));
    return arith::MulFOp::create(b, loc, value, factor);
  }
  Value factor =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, static_cast<int64_t>(times)));
  return arith::MulIOp::create(b, loc, value, factor);
}

static Value identityOf(OpBuilder &b, Location loc, LoopNest::Combine combine,
                        RankedTensorType type) {
  Type element = type.getElementType();
  TypedAttr value = b.getZeroAttr(element);
  if (combine == LoopNest::Combine::product)
    value = b.getFloatAttr(element, 1);
  if (combine == LoopNest::Combine::least)
    value = b.getIntegerAttr(element, APInt::getSignedMaxValue(element.getIntOrFloatBitWidth()));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, Attribute(value)));
}

/// The two arguments whose product is `scalar`, through extensions; nothing for other scalars.
static std::optional<std::pair<unsigned, unsigned>> matchProduct(Value scalar) {
  auto product = scalar.getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  auto argument = [](Value value) {
    if (auto extension = value.getDefiningOp<arith::ExtFOp>())
      value = extension.getIn();
    return dyn_cast<BlockArgument>(value);
  };
  BlockArgument x = argument(product.getLhs()), y = argument(product.getRhs());
  if (!x || !y || x == y)
    return std::nullopt;
  return std::pair(x.getArgNumber(), y.getArgNumber());
}

/// Whether two inputs and a result under these maps make a contraction: every loop is in two of the
/// three, summed loops in both inputs, and one input has a loop that the other lacks.
static bool isContraction(AffineMap x, AffineMap y, AffineMap result) {
  bool reduces = false, reuses = false;
  for (AffineMap map : {x, y, result})
    if (!map.isProjectedPermutation())
      return false;
  for (unsigned loop = 0; loop < result.getNumDims(); ++loop) {
    bool inX = x.isFunctionOfDim(loop), inY = y.isFunctionOfDim(loop);
    bool summed = !result.isFunctionOfDim(loop);
    reduces |= summed;
    reuses |= inX != inY;
    if (summed ? !inX || !inY : !inX && !inY)
      return false;
  }
  return reduces && reuses;
}

Value LoopNest::emitDense(const Slice &slice, Value scalar, AffineMap target,
                          ArrayRef<int64_t> shape, Type element, Combine combine) {
  // Loops in no input and no result: so many equal terms.
  llvm::SmallBitVector kept = slice.loops;
  addLoops(target, kept);
  if (combine == Combine::product)
    kept.set();
  SmallVector<AffineExpr> renumbered(extents.size(), b.getAffineConstantExpr(0));
  SmallVector<unsigned> newNumber(extents.size(), 0);
  unsigned numLoops = 0;
  double times = 1;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (kept.test(loop)) {
      newNumber[loop] = numLoops;
      renumbered[loop] = b.getAffineDimExpr(numLoops++);
    } else if (combine == Combine::sum) {
      times *= static_cast<double>(extents[loop]);
    }
  }
  auto renumber = [&](AffineMap map) {
    return map.replaceDimsAndSymbols(renumbered, {}, numLoops, 0);
  };
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (unsigned i : slice.arguments.set_bits()) {
    operands.push_back(inputs[i].value);
    maps.push_back(renumber(inputs[i].map));
  }
  AffineMap out = renumber(target);
  bool reduces = out.getNumResults() < numLoops;

  Type accumulated = element;
  if (reduces && combine == Combine::sum && element.getIntOrFloatBitWidth() == 16 &&
      isa<FloatType>(element))
    accumulated = b.getF32Type();
  auto type = RankedTensorType::get(shape, accumulated);
  Value init = reduces ? identityOf(b, loc, combine, type)
                       : Value(tensor::EmptyOp::create(b, loc, shape, accumulated));
  auto narrow = [&](Value wide) -> Value {
    if (accumulated == element)
      return wide;
    return arith::TruncFOp::create(b, loc, RankedTensorType::get(shape, element), wide);
  };

  auto factors = matchProduct(scalar);
  if (factors && combine == Combine::sum && times == 1 && operands.size() == 2 &&
      llvm::all_of(operands, [](Value v) { return isa<RankedTensorType>(v.getType()); }) &&
      isContraction(maps[0], maps[1], out)) {
    bool swapped = factors->first > factors->second;
    if (swapped) {
      std::swap(operands[0], operands[1]);
      std::swap(maps[0], maps[1]);
    }
    maps.push_back(out);
    return narrow(linalg::ContractOp::create(b, loc, TypeRange{type}, operands, init,
                                             b.getAffineMapArrayAttr(maps))
                      .getResult(0));
  }

  // A loop without a map of its own gets a tensor that only defines its extent, as in pooling.
  SmallVector<int64_t> missingExtents;
  SmallVector<AffineExpr> missing;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    auto names = [&](AffineMap map) {
      return llvm::is_contained(map.getResults(), renumbered[loop]);
    };
    if (kept.test(loop) && !names(out) && llvm::none_of(maps, names)) {
      missing.push_back(renumbered[loop]);
      missingExtents.push_back(extents[loop]);
    }
  }
  size_t numRead = operands.size();
  if (!missing.empty()) {
    operands.push_back(tensor::EmptyOp::create(b, loc, missingExtents, element));
    maps.push_back(AffineMap::get(numLoops, 0, missing, b.getContext()));
  }
  maps.push_back(out);
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    iterators.push_back(out.isFunctionOfDim(loop) ? utils::IteratorType::parallel
                                                  : utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{type}, operands, init, maps, iterators,
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        IRMapping mapping;
        for (auto [i, argument] :
             llvm::zip(slice.arguments.set_bits(), arguments.take_front(numRead)))
          mapping.map(block->getArgument(i), argument);
        for (Operation *op : slice.ops) {
          Operation *copy = body.clone(*op, mapping);
          if (auto index = dyn_cast<linalg::IndexOp>(copy))
            index.setDim(newNumber[index.getDim()]);
        }
        Value value = mapping.lookupOrDefault(scalar);
        // The addends need not be rounded first.
        if (accumulated != element) {
          auto rounded = value.getDefiningOp<arith::TruncFOp>();
          if (rounded && rounded.getIn().getType() == accumulated)
            value = rounded.getIn();
          else
            value = arith::ExtFOp::create(body, at, accumulated, value);
        }
        if (times != 1)
          value = multiply(body, at, value, times);
        if (reduces)
          value = combineInto(body, at, combine, arguments.back(), value);
        linalg::YieldOp::create(body, at, value);
      });
  return narrow(generic.getResult(0));
}

Value LoopNest::emit(Value scalar, AffineMap target, Type type, Combine combine) {
  Slice slice = sliceOf(scalar);
  auto argument = dyn_cast<BlockArgument>(scalar);
  if (argument && argument.getOwner() == block.get()) {
    const Input &input = inputs[argument.getArgNumber()];
    bool all = true;
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      all &= target.isFunctionOfDim(loop) || extents[loop] == 1;
    if (all && input.map == target && input.value.getType() == type)
      return input.value;
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  FloatAttr number;
  if (combine == Combine::sum && matchPattern(scalar, m_Constant(&number))) {
    double times = 1;
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      times *= target.isFunctionOfDim(loop) ? 1 : static_cast<double>(extents[loop]);
    TypedAttr value = b.getFloatAttr(number.getType(), number.getValueAsDouble() * times);
    if (tensor)
      value = DenseElementsAttr::get(tensor, Attribute(value));
    return arith::ConstantOp::create(b, loc, value);
  }
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> dims;
  for (auto [d, expr] : llvm::enumerate(target.getResults()))
    if (!isa<AffineConstantExpr>(expr)) {
      dims.push_back(expr);
      shape.push_back(tensor.getDimSize(d));
    }
  AffineMap dense = AffineMap::get(extents.size(), 0, dims, b.getContext());
  Value result = emitDense(slice, scalar, dense, shape, getElementTypeOrSelf(type), combine);
  if (!tensor)
    return tensor::ExtractOp::create(b, loc, result, ValueRange());
  if (result.getType() == type)
    return result;
  // A reshape adds the dimensions of extent 1, grouped with the preceding dimension.
  SmallVector<ReassociationIndices> groups;
  bool first = true;
  for (auto [d, expr] : llvm::enumerate(target.getResults())) {
    bool own = !isa<AffineConstantExpr>(expr);
    if (groups.empty() || (own && !first))
      groups.emplace_back();
    first &= !own;
    groups.back().push_back(static_cast<int64_t>(d));
  }
  if (shape.empty())
    groups.clear();
  return tensor::ExpandShapeOp::create(b, loc, tensor, result, groups);
}
