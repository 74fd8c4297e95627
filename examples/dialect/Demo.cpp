//===- Demo.cpp - A dialect that Tessera knows nothing of -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

using namespace mlir; // what the generated declarations of AggregatedOpInterface expect

#include "DemoDialect.h.inc"
#define GET_OP_CLASSES
#include "Demo.h.inc"

#include "DemoDialect.cpp.inc"
#define GET_OP_CLASSES
#include "Demo.cpp.inc"

using namespace tessera::dist;
using namespace tessera::sharding;
using Results = SmallVector<Value>;

void demo::DemoDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Demo.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Value constant(OpBuilder &b, Location loc, FloatType type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// Elementwise over operands of one shape; `body` gets their elements.
static Value elementwise(OpBuilder &b, Location loc, ValueRange operands,
                         ArrayRef<AffineMap> operandMaps, RankedTensorType type,
                         function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> maps(operandMaps);
  maps.push_back(b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return linalg::GenericOp::create(b, loc, type, operands, init, maps, parallel,
                                   [&](OpBuilder &b, Location loc, ValueRange elements) {
                                     linalg::YieldOp::create(b, loc, body(b, loc, elements));
                                   })
      .getResult(0);
}

/// Reduces the last dimension of `x` from `init` on; `body` gets an element and the accumulator.
static Value reduceLast(OpBuilder &b, Location loc, Value x, double init,
                        function_ref<Value(OpBuilder &, Location, Value, Value)> body) {
  RankedTensorType type = typeOf(x);
  auto element = cast<FloatType>(type.getElementType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape().drop_back(), element);
  Value start = linalg::FillOp::create(b, loc, constant(b, loc, element, init), empty).getResult(0);
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  return linalg::GenericOp::create(
             b, loc, start.getType(), x, start,
             ArrayRef<AffineMap>{all, all.dropResult(type.getRank() - 1)}, iterators,
             [&](OpBuilder &b, Location loc, ValueRange elements) {
               linalg::YieldOp::create(b, loc, body(b, loc, elements[0], elements[1]));
             })
      .getResult(0);
}

static Value sumSquares(OpBuilder &b, Location loc, Value x) {
  return reduceLast(b, loc, x, 0, [](OpBuilder &b, Location loc, Value element, Value sum) {
    return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, element, element), sum);
  });
}

/// Whether a result has the shape of an operand without its last dimension.
static LogicalResult verifyReduction(Operation *op) {
  RankedTensorType from = typeOf(op->getOperand(0)), to = typeOf(op->getResult(0));
  if (from.getRank() == 0 || from.getShape().drop_back() != to.getShape())
    return op->emitOpError() << "reduces " << from << " to " << to << "; drop the last dimension";
  return success();
}

/// The rule of an op that reduces the last dimension.
static ShardingRule reductionRule(Operation *op, ReduceKind combiner) {
  RuleBuilder builder(op);
  RankedTensorType type = typeOf(op->getOperand(0));
  int64_t last = type.getRank() - 1;
  for (int64_t dim = 0; dim < last; ++dim) {
    int64_t factor = builder.factor(type.getDimSize(dim));
    builder.operand(0, dim, factor).result(0, dim, factor);
  }
  return builder
      .operand(0, last, builder.factor(type.getDimSize(last), FactorKind::reduction, combiner))
      .take();
}

//===----------------------------------------------------------------------===//
// scaled_add
//===----------------------------------------------------------------------===//

std::optional<ShardingRule> demo::ScaledAddOp::getShardingRule() {
  RuleBuilder builder(*this);
  for (auto [dim, extent] : llvm::enumerate(typeOf(getX()).getShape())) {
    int64_t factor = builder.factor(extent);
    builder.operand(0, dim, factor).operand(1, dim, factor).result(0, dim, factor);
  }
  return builder.take();
}

/// Jointly linear: if only one operand were a contribution, the other would be added n times.
bool demo::ScaledAddOp::passesPartial(ReduceKind kind, ArrayRef<int64_t> operands,
                                      ArrayRef<int64_t> unknown) {
  return kind == ReduceKind::sum && operands.size() + unknown.size() == 2;
}

FailureOr<Results> demo::ScaledAddOp::decomposeOperation(OpBuilder &b) {
  RankedTensorType type = typeOf(getX());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  double scale = getScale().convertToDouble();
  return Results{elementwise(
      b, getLoc(), {getX(), getY()}, {identity, identity}, type,
      [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
        Value factor = constant(b, loc, cast<FloatType>(type.getElementType()), scale);
        return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, factor, in[0]), in[1]);
      })};
}

//===----------------------------------------------------------------------===//
// rms_norm
//===----------------------------------------------------------------------===//

std::optional<ShardingRule> demo::RmsNormOp::getShardingRule() {
  RuleBuilder builder(*this);
  ArrayRef<int64_t> shape = typeOf(getX()).getShape();
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    bool isNormalized = dim + 1 == shape.size();
    int64_t factor =
        builder.factor(extent, isNormalized ? FactorKind::replicate : FactorKind::parallel);
    builder.operand(0, dim, factor).result(0, dim, factor);
  }
  return builder.take();
}

int64_t demo::RmsNormOp::getOperationsPerIteration() {
  return 3; // two for the sum, one for the scale
}

FailureOr<Results> demo::RmsNormOp::decomposeOperation(OpBuilder &b) {
  RankedTensorType type = typeOf(getX());
  auto element = cast<FloatType>(type.getElementType());
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  double extent = static_cast<double>(type.getShape().back());
  double epsilon = getEpsilon().convertToDouble();
  Value squares = sumSquares(b, getLoc(), getX());
  return Results{elementwise(
      b, getLoc(), {getX(), squares}, {all, all.dropResult(type.getRank() - 1)}, type,
      [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
        Value mean = arith::DivFOp::create(b, loc, in[1], constant(b, loc, element, extent));
        Value shifted = arith::AddFOp::create(b, loc, mean, constant(b, loc, element, epsilon));
        return arith::DivFOp::create(b, loc, in[0], math::SqrtOp::create(b, loc, shifted));
      })};
}

//===----------------------------------------------------------------------===//
// sum_squares
//===----------------------------------------------------------------------===//

LogicalResult demo::SumSquaresOp::verify() {
  return verifyReduction(*this);
}

std::optional<ShardingRule> demo::SumSquaresOp::getShardingRule() {
  return reductionRule(*this, ReduceKind::sum);
}

int64_t demo::SumSquaresOp::getOperationsPerIteration() {
  return 2;
}

/// Zeros in the padding do not change the sum.
FailureOr<Results> demo::SumSquaresOp::partition(PartitionContext &context) {
  Value x = context.getMaskedOperand(0);
  return Results{SumSquaresOp::create(context.builder, getLoc(), context.getLocalType(0), x)};
}

FailureOr<Results> demo::SumSquaresOp::decomposeOperation(OpBuilder &b) {
  return Results{sumSquares(b, getLoc(), getX())};
}

//===----------------------------------------------------------------------===//
// peak
//===----------------------------------------------------------------------===//

LogicalResult demo::PeakOp::verify() {
  return verifyReduction(*this);
}

std::optional<ShardingRule> demo::PeakOp::getShardingRule() {
  return reductionRule(*this, ReduceKind::max);
}

FailureOr<Results> demo::PeakOp::decomposeOperation(OpBuilder &b) {
  double least = -std::numeric_limits<double>::infinity();
  return Results{reduceLast(b, getLoc(), getX(), least,
                            [](OpBuilder &b, Location loc, Value element, Value peak) -> Value {
                              return arith::MaximumFOp::create(b, loc, element, peak);
                            })};
}

//===----------------------------------------------------------------------===//
// log
//===----------------------------------------------------------------------===//

std::optional<ShardingRule> demo::LogOp::getShardingRule() {
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The plug-in
//===----------------------------------------------------------------------===//

extern "C" ::mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "demo", "1",
          [](DialectRegistry *registry) { registry->insert<demo::DemoDialect>(); }};
}
