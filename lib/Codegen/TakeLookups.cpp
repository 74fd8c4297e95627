//===- TakeLookups.cpp - Look-ups instead of sums over tables -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop v of
//
//   y[i, j] = sum over v of select(index[i] == v, x[v, j], 0)
//
// becomes the number clamp(index[i], 0, rows - 1), and x an element that the body
// extracts. The comparison stays: it is false where the index was outside.
//
//===----------------------------------------------------------------------===//

#include "TakeLookups.h"

#include "tessera/Codegen/Kernels/DeadInit.h"
#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Tables of fewer rows are gone through: a vector compares them faster than it gathers.
constexpr int64_t kLeastRows = 8;

/// Writes one look-up.
class LookupWriter {
public:
  LookupWriter(linalg::GenericOp op, ArrayRef<dist::SelectedLoop> selected)
      : op(op), selected(selected), place(op.getNumLoops(), -1) {}

  void write() {
    llvm::SmallBitVector dropped(op.getNumLoops());
    for (const dist::SelectedLoop &each : selected)
      dropped.set(each.loop);
    unsigned kept = 0;
    SmallVector<utils::IteratorType> iterators;
    for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (!dropped.test(loop)) {
        place[loop] = static_cast<int>(kept++);
        iterators.push_back(iterator);
      }

    OpBuilder b(op);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      bool looked = llvm::any_of(dropped.set_bits(), [&](unsigned l) { return map.isFunctionOfDim(l); });
      isLookedUp.push_back(looked);
      if (looked)
        continue;
      inputs.push_back(input->get());
      maps.push_back(withoutDropped(map, kept));
    }
    OpOperand *init = op.getDpsInitOperand(0);
    maps.push_back(withoutDropped(op.getMatchingIndexingMap(init), kept));
    // What is added up starts from a number: nothing reads the tensor that has it.
    Value start = splatOf(init->get()), out = init->get();
    auto type = cast<RankedTensorType>(out.getType());
    if (start)
      out = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
    auto made = linalg::GenericOp::create(
        b, op.getLoc(), TypeRange(type), inputs, out, maps, iterators,
        [&](OpBuilder &inner, Location, ValueRange arguments) { writeBody(inner, arguments, start); });
    op.getResult(0).replaceAllUsesWith(made.getResult(0));
    op.erase();
  }

private:
  AffineMap withoutDropped(AffineMap map, unsigned kept) const {
    SmallVector<AffineExpr> dims;
    for (int at : place)
      dims.push_back(at < 0 ? getAffineConstantExpr(0, map.getContext())
                            : getAffineDimExpr(at, map.getContext()));
    return map.replaceDimsAndSymbols(dims, {}, kept, 0);
  }

  /// The constant that a tensor is filled with, as a scalar of the function; null for other tensors.
  Value splatOf(Value tensor) {
    DenseElementsAttr elements;
    if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
      return {};
    OpBuilder b(op);
    return arith::ConstantOp::create(b, op.getLoc(), elements.getSplatValue<TypedAttr>());
  }

  void writeBody(OpBuilder &b, ValueRange arguments, Value start) {
    Block &body = *op.getBody();
    auto next = arguments.begin();
    for (auto [argument, looked] : llvm::zip(body.getArguments().drop_back(), isLookedUp))
      if (!looked)
        known.map(argument, *next++);
    BlockArgument accumulator = body.getArguments().back();
    known.map(accumulator, start ? start : *next);

    loops.resize(op.getNumLoops());
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (place[loop] >= 0)
        loops[loop] = linalg::IndexOp::create(b, op.getLoc(), place[loop]);
    for (const dist::SelectedLoop &each : selected)
      loops[each.loop] = iterationOf(b, each);
    for (OpOperand *input : op.getDpsInputOperands())
      if (isLookedUp[input->getOperandNumber()])
        known.map(op.getMatchingBlockArgument(input), elementOf(b, *input));
    for (Operation &inner : body.without_terminator())
      if (!known.contains(&inner))
        copy(b, &inner);
    linalg::YieldOp::create(b, op.getLoc(), known.lookupOrDefault(body.getTerminator()->getOperand(0)));
  }

  /// index - offsets, inside of the loop.
  Value iterationOf(OpBuilder &b, const dist::SelectedLoop &each) {
    Value iteration = asIndex(b, computed(b, each.index));
    for (Value offset : each.offsets)
      iteration = arith::SubIOp::create(b, op.getLoc(), iteration, asIndex(b, computed(b, offset)));
    return dist::clampIndex(b, op.getLoc(), iteration, op.getStaticLoopRanges()[each.loop]);
  }

  Value asIndex(OpBuilder &b, Value value) {
    if (value.getType().isIndex())
      return value;
    return arith::IndexCastOp::create(b, op.getLoc(), b.getIndexType(), value);
  }

  /// A value of the old body that no selected loop changes, in the new one.
  Value computed(OpBuilder &b, Value value) {
    Operation *producer = value.getDefiningOp();
    if (!producer || producer->getBlock() != op.getBody() || known.contains(value))
      return known.lookupOrDefault(value);
    for (Value operand : producer->getOperands())
      computed(b, operand);
    copy(b, producer);
    return known.lookup(value);
  }

  void copy(OpBuilder &b, Operation *inner) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      known.map(index.getResult(), loops[index.getDim()]);
    else
      b.clone(*inner, known);
  }

  Value elementOf(OpBuilder &b, OpOperand &input) {
    SmallVector<Value> at;
    for (AffineExpr position : op.getMatchingIndexingMap(&input).getResults())
      at.push_back(affine::expandAffineExpr(b, op.getLoc(), position, loops, {}));
    return tensor::ExtractOp::create(b, op.getLoc(), input.get(), at);
  }

  linalg::GenericOp op;
  ArrayRef<dist::SelectedLoop> selected;
  SmallVector<int> place; ///< by loop: its number in the new nest, -1 of those that are gone
  SmallVector<bool> isLookedUp;
  SmallVector<Value> loops;
  IRMapping known;
};

} // namespace

void codegen::takeLookups(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops) {
    SmallVector<dist::SelectedLoop, 2> selected = dist::selectedLoops(op);
    llvm::erase_if(selected, [&](const dist::SelectedLoop &each) {
      return op.getIteratorTypesArray()[each.loop] != utils::IteratorType::reduction ||
             op.getStaticLoopRanges()[each.loop] < kLeastRows;
    });
    if (!selected.empty())
      LookupWriter(op, selected).write();
  }
}
