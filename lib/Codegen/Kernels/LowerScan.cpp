//===- LowerScan.cpp - Scans as loops -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On one core a scan is a loop along its dimension. If each step has many
// contiguous elements, the loop carries a row of them, so that a step is a
// vectorized nest:
//
//   for o:  row = x[o, 0, :]
//     for i = 1 ..:  row = row ∘ x[o, i, :];  r[o, i, :] = row
//
// else it carries the elements of one line. On GPUs scans stay ops, which become kernels.
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"
#include "LowerExt.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// The least number of contiguous elements in a row.
static constexpr int64_t kLeastRow = 8;

namespace {
class ScanWriter {
public:
  ScanWriter(OpBuilder &b, ext::ScanOp op)
      : op(op), lines(op.getShape(), op.getDim()), write{b, op.getLoc()} {
    for (Value input : op.getInputs()) {
      inputs.push_back(Lines::collapse(b, op.getLoc(), input, op.getDim()));
      elements.push_back(getElementTypeOrSelf(input.getType()));
    }
  }
  /// The scanned lines; in a group of their own.
  Values loops(LoopWriter at) const;
  Values group();

private:
  Values combine(OpBuilder &b, ValueRange before, ValueRange behind) const {
    IRMapping mapping;
    Values arguments(before);
    llvm::append_range(arguments, behind);
    mapping.map(op.getBody().getArguments(), arguments);
    for (Operation &inner : op.getBody().without_terminator())
      b.clone(inner, mapping);
    return llvm::map_to_vector<4>(op.getBody().getTerminator()->getOperands(),
                                  [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  /// The index of step i of the scan.
  Value place(LoopWriter at, Value i) const {
    return op.getReverse() ? at.sub(at.index(lines.extent - 1), i) : i;
  }
  Values identities(LoopWriter at) const {
    Values values;
    for (Attribute value : op.getIdentityAttr())
      values.push_back(arith::ConstantOp::create(at.b, at.loc, cast<TypedAttr>(value)));
    return values;
  }
  Values alongRows(LoopWriter at, Value o, Values results) const;
  Values alongLine(LoopWriter at, Value o, Value j, Values results) const;
  Value rowOf(LoopWriter at, Value tensor, Value o, Value i) const;
  Value putRow(LoopWriter at, Value row, Value tensor, Value o, Value i) const;

  mutable ext::ScanOp op; ///< accessors of ops are not const
  Lines lines;
  LoopWriter write;
  Values inputs;
  SmallVector<Type> elements;
};
} // namespace

Value ScanWriter::rowOf(LoopWriter at, Value tensor, Value o, Value i) const {
  OpBuilder &b = at.b;
  auto type = RankedTensorType::get({lines.inner}, getElementTypeOrSelf(tensor.getType()));
  SmallVector<OpFoldResult> offsets{o, i, b.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1), b.getIndexAttr(1),
                                  b.getIndexAttr(lines.inner)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, at.loc, type, tensor, offsets, sizes, strides);
}

Value ScanWriter::putRow(LoopWriter at, Value row, Value tensor, Value o, Value i) const {
  OpBuilder &b = at.b;
  SmallVector<OpFoldResult> offsets{o, i, b.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1), b.getIndexAttr(1),
                                  b.getIndexAttr(lines.inner)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, at.loc, row, tensor, offsets, sizes, strides);
}

Values ScanWriter::alongRows(LoopWriter at, Value o, Values results) const {
  size_t count = inputs.size();
  AffineMap map = at.b.getMultiDimIdentityMap(1);
  auto over = [&](LoopWriter where, ValueRange read, ValueRange rows,
                  function_ref<Values(LoopWriter, ValueRange, ValueRange)> body) {
    SmallVector<AffineMap> maps(read.size() + rows.size(), map);
    auto generic = linalg::GenericOp::create(
        where.b, where.loc, TypeRange(rows), read, rows, maps, utils::IteratorType::parallel,
        [&](OpBuilder &inner, Location, ValueRange args) {
          linalg::YieldOp::create(
              inner, where.loc,
              body({inner, where.loc}, args.take_front(read.size()), args.drop_front(read.size())));
        });
    return Values(generic.getResults());
  };
  auto rowsAt = [&](LoopWriter where, Value i) {
    return llvm::map_to_vector<4>(inputs, [&](Value x) { return rowOf(where, x, o, i); });
  };
  auto put = [&](LoopWriter where, ValueRange rows, Values into, Value i) {
    for (auto [row, result] : llvm::zip(rows, into))
      result = putRow(where, row, result, o, i);
    return into;
  };
  Values rows;
  for (Type element : elements)
    rows.push_back(at.empty({lines.inner}, element));
  Value first = place(at, at.index(0));
  bool exclusive = op.getExclusive();
  if (exclusive)
    rows = over(at, {}, rows,
                [&](LoopWriter where, ValueRange, ValueRange) { return identities(where); });
  else
    rows = over(at, rowsAt(at, first), rows,
                [&](LoopWriter, ValueRange read, ValueRange) { return Values(read); });
  Values state = put(at, rows, results, first);
  llvm::append_range(state, rows);
  state = at.loop(at.index(1), at.index(lines.extent), at.index(1), state,
                  [&](LoopWriter where, Value i, Values state) {
                    Value from = exclusive ? where.sub(i, where.index(1)) : i;
                    Values rows = over(where, rowsAt(where, place(where, from)),
                                       ArrayRef<Value>(state).drop_front(count),
                                       [&](LoopWriter body, ValueRange read, ValueRange row) {
                                         return combine(body.b, row, read);
                                       });
                    Values next(ArrayRef<Value>(state).take_front(count));
                    next = put(where, rows, next, place(where, i));
                    llvm::append_range(next, rows);
                    return next;
                  });
  state.resize(count);
  return state;
}

Values ScanWriter::alongLine(LoopWriter at, Value o, Value j, Values results) const {
  size_t count = inputs.size();
  bool exclusive = op.getExclusive();
  auto readAt = [&](LoopWriter where, Value i) {
    return llvm::map_to_vector<4>(inputs,
                                  [&](Value x) { return where.read(x, {o, place(where, i), j}); });
  };
  auto put = [&](LoopWriter where, ArrayRef<Value> into, ArrayRef<Value> values, Value i) {
    Values next;
    for (auto [result, value] : llvm::zip(into, values))
      next.push_back(where.write(result, {o, place(where, i), j}, value));
    llvm::append_range(next, values);
    return next;
  };
  Values before = exclusive ? identities(at) : Values(readAt(at, at.index(0)));
  Values state = put(at, results, before, at.index(0));
  state = at.loop(at.index(1), at.index(lines.extent), at.index(1), state,
                  [&](LoopWriter where, Value i, Values state) {
                    Value from = exclusive ? where.sub(i, where.index(1)) : i;
                    Values next = combine(where.b, ArrayRef<Value>(state).drop_front(count),
                                          readAt(where, from));
                    return put(where, ArrayRef<Value>(state).take_front(count), next, i);
                  });
  state.resize(count);
  return state;
}

Values ScanWriter::loops(LoopWriter at) const {
  Values results;
  for (Type element : elements)
    results.push_back(at.empty(lines.shape(), element));
  Value zero = at.index(0), one = at.index(1);
  return at.loop(zero, at.index(lines.outer), one, results,
                 [&](LoopWriter outer, Value o, Values state) {
                   if (lines.inner >= kLeastRow)
                     return alongRows(outer, o, state);
                   return outer.loop(zero, outer.index(lines.inner), one, state,
                                     [&](LoopWriter line, Value j, Values state) {
                                       return alongLine(line, o, j, state);
                                     });
                 });
}

Values ScanWriter::group() {
  SmallVector<Type> types;
  for (Type element : elements)
    types.push_back(RankedTensorType::get(lines.shape(), element));
  auto group = rt::GroupOp::create(write.b, write.loc, types, "scan");
  OpBuilder inner = OpBuilder::atBlockEnd(&group.getBody().emplaceBlock());
  rt::YieldOp::create(inner, write.loc, loops({inner, write.loc}));
  return Values(group.getResults());
}

/// Replaces the results by `values`, in three dimensions.
static void replace(ext::ScanOp op, OpBuilder &b, ValueRange values) {
  for (auto [result, value] : llvm::zip(op.getResults(), values))
    result.replaceAllUsesWith(Lines::expand(b, op.getLoc(), value,
                                            cast<RankedTensorType>(result.getType()), op.getDim()));
}

void codegen::lowerScan(OpBuilder &b, ext::ScanOp op) {
  replace(op, b, ScanWriter(b, op).group());
}

void codegen::lowerScans(func::FuncOp kernel) {
  SmallVector<ext::ScanOp> ops;
  kernel.walk([&](ext::ScanOp op) { ops.push_back(op); });
  for (ext::ScanOp op : ops) {
    OpBuilder b(op);
    replace(op, b, ScanWriter(b, op).loops({b, op.getLoc()}));
    op->erase();
  }
}
