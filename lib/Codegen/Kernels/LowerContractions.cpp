//===- LowerContractions.cpp - Strided contractions as loops --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One core's way: what GPU kernels are compared with, and what runs where no scheme
// takes a contraction.
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

class ContractionLoopsWriter {
public:
  explicit ContractionLoopsWriter(rt::ContractionOp op) : op(op), b(op), loc(op.getLoc()) {}
  void run();

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value flat(Value tensor);
  /// The place of an operand's element, by the indices of all loops.
  Value place(unsigned operand, ArrayRef<int64_t> strides, ArrayRef<Value> at);
  /// The loops `which`, the first one outermost.
  Value nest(ArrayRef<unsigned> which, SmallVector<Value> &at, Value carried,
             function_ref<Value(Value)> body);

  rt::ContractionOp op;
  OpBuilder b;
  Location loc;
};

} // namespace

Value ContractionLoopsWriter::flat(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == 1)
    return tensor;
  auto flatType = RankedTensorType::get({type.getNumElements()}, type.getElementType());
  if (type.getRank() == 0)
    return tensor::ExpandShapeOp::create(b, loc, flatType, tensor,
                                         ArrayRef<ReassociationIndices>());
  return tensor::CollapseShapeOp::create(
      b, loc, flatType, tensor,
      ArrayRef<ReassociationIndices>{llvm::to_vector<2>(llvm::seq<int64_t>(type.getRank()))});
}

Value ContractionLoopsWriter::place(unsigned operand, ArrayRef<int64_t> strides,
                                    ArrayRef<Value> at) {
  Value result = index(op.getStarts()[operand]);
  for (auto [stride, loop] : llvm::zip_equal(strides, at))
    if (stride != 0)
      result =
          arith::AddIOp::create(b, loc, result, arith::MulIOp::create(b, loc, loop, index(stride)));
  return result;
}

Value ContractionLoopsWriter::nest(ArrayRef<unsigned> which, SmallVector<Value> &at, Value carried,
                                   function_ref<Value(Value)> body) {
  if (which.empty())
    return body(carried);
  auto loop = scf::ForOp::create(b, loc, index(0), index(op.getExtents()[which.front()]), index(1),
                                 carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  at[which.front()] = loop.getInductionVar();
  Value result = nest(which.drop_front(), at, loop.getRegionIterArgs()[0], body);
  scf::YieldOp::create(b, loc, result);
  return loop.getResult(0);
}

void ContractionLoopsWriter::run() {
  SmallVector<unsigned> parallel, sums;
  for (auto [loop, stride] : llvm::enumerate(op.getCStrides()))
    (stride != 0 ? parallel : sums).push_back(loop);
  Value left = flat(op.getA()), right = flat(op.getB());
  Type f32 = b.getF32Type();
  auto element = [&](Value tensor, Value at) -> Value {
    Value value = tensor::ExtractOp::create(b, loc, tensor, at);
    return value.getType() == f32 ? value : arith::ExtFOp::create(b, loc, f32, value).getResult();
  };
  SmallVector<Value> at(op.getExtents().size());
  Value result = nest(parallel, at, flat(op.getInit()), [&](Value init) -> Value {
    Value target = place(2, op.getCStrides(), at);
    Value first = op.getOverwrite()
                      ? arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0)).getResult()
                      : element(init, target);
    Value sum = nest(sums, at, first, [&](Value carried) -> Value {
      Value product = arith::MulFOp::create(b, loc, element(left, place(0, op.getAStrides(), at)),
                                            element(right, place(1, op.getBStrides(), at)));
      return arith::AddFOp::create(b, loc, carried, product);
    });
    Type narrow = cast<RankedTensorType>(init.getType()).getElementType();
    if (narrow != f32)
      sum = arith::TruncFOp::create(b, loc, narrow, sum);
    return tensor::InsertOp::create(b, loc, sum, init, target);
  });
  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (type.getRank() == 0)
    result =
        tensor::CollapseShapeOp::create(b, loc, type, result, ArrayRef<ReassociationIndices>());
  else if (type.getRank() > 1)
    result = tensor::ExpandShapeOp::create(
        b, loc, type, result,
        ArrayRef<ReassociationIndices>{llvm::to_vector<2>(llvm::seq<int64_t>(type.getRank()))});
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

void lowerContractions(func::FuncOp kernel) {
  SmallVector<rt::ContractionOp> ops;
  kernel.walk([&](rt::ContractionOp op) { ops.push_back(op); });
  for (rt::ContractionOp op : ops)
    ContractionLoopsWriter(op).run();
}

} // namespace tessera::codegen
