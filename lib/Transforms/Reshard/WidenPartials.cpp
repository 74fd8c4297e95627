//===- WidenPartials.cpp - Keep contributions of 16-bit floats in f32 -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction over n devices would round each contribution to 16 bits, and the
// sum of n roundings is less accurate than on one device. So the ops between a cut
// reduction and the reshard that reduces it compute in f32, and the result is
// rounded once:
//
//   %p = matmul … : bf16, partial(sum)     %p = generic … : f32, partial(sum)
//   %q = transpose %p                  ->  %q = generic … : f32
//   %r = dist.reshard %q to replicate      %r = dist.reshard %q to replicate
//                                          %s = truncf %r : bf16
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Planning/OpenResults.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTWIDENPARTIALS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

static Type widened(Type type) {
  if (!isNarrow(type))
    return type;
  Type f32 = Float32Type::get(type.getContext());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(f32);
  return f32;
}

/// Whether a body can compute in f32: it has only elementwise float ops, and ops without 16-bit
/// floats.
static bool hasWideBody(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &inner) {
    if (inner.getNumRegions() > 0)
      return false;
    bool touches = llvm::any_of(inner.getOperandTypes(), isNarrow) ||
                   llvm::any_of(inner.getResultTypes(), isNarrow);
    return !touches || isa<arith::ConstantOp, tensor::ExtractOp>(inner) ||
           (inner.hasTrait<OpTrait::Elementwise>() && !isa<arith::BitcastOp>(inner));
  });
}

namespace {

class Widening {
public:
  Widening(func::FuncOp function, const MeshTable &meshes) : function(function), meshes(meshes) {}

  void run() {
    function.walk([&](Operation *op) {
      if (mayWiden(op))
        wide.insert(op);
    });
    keepWhatIsReadNarrow();
    SmallVector<ReshardOp> ends;
    function.walk([&](ReshardOp op) {
      if (endsChain(op))
        ends.push_back(op);
    });
    for (ReshardOp op : ends)
      reduceWide(op);
    // Users come after their operands.
    for (Operation *op : llvm::reverse(wide))
      if (op->use_empty())
        op->erase();
  }

private:
  TensorSharding shardingOf(Value value) const {
    ShardingAttr attr = getSharding(value);
    return attr ? resolveVerified(attr, meshes, value.getType())
                : TensorSharding::replicated(cast<RankedTensorType>(value.getType()).getRank());
  }

  ShardingAttr withoutPartial(ShardingAttr sharding, Type type) const {
    return ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                             resolveVerified(sharding, meshes, type).withoutPartial(),
                             sharding.getContext());
  }

  /// Whether a value is partial by a reduction that rounding would affect; the maximum of rounded
  /// values is the rounded maximum.
  bool isNarrowSum(Value value) const {
    return isa<RankedTensorType>(value.getType()) && isNarrow(value.getType()) &&
           llvm::any_of(shardingOf(value).partial, [](const sharding::PartialAxis &partial) {
             return partial.kind != sharding::ReduceKind::max &&
                    partial.kind != sharding::ReduceKind::min;
           });
  }

  bool mayWiden(Operation *op) const {
    if (op->getNumResults() != 1 || !isNarrowSum(op->getResult(0)))
      return false;
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return hasWideBody(linalgOp);
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      return paddingOf(pad).has_value();
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return onOneMesh(reshard);
    return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
               tensor::InsertSliceOp, tensor::ConcatOp>(op);
  }

  static std::optional<double> paddingOf(tensor::PadOp op) {
    FloatAttr number;
    Value value = op.getConstantPaddingValue();
    if (!value || !matchPattern(value, m_Constant(&number)))
      return std::nullopt;
    return number.getValueAsDouble();
  }

  bool onOneMesh(ReshardOp op) const {
    ShardingAttr from = getSharding(op.getOperand());
    return !from || from.getMesh() == op.getSharding().getMesh();
  }

  bool isWide(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && wide.contains(op);
  }

  /// A reshard that reduces a wide chain.
  bool endsChain(ReshardOp op) const {
    return isWide(op.getOperand()) && !isNarrowSum(op.getResult());
  }

  /// Values with other readers than the chain and its ends stay narrow: a result annotated partial,
  /// a loop carry. So do values that lead only to these.
  void keepWhatIsReadNarrow() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *op : llvm::to_vector(wide)) {
        bool inChain = llvm::all_of(op->getUsers(), [&](Operation *user) {
          return wide.contains(user) || (isa<ReshardOp>(user) && !isNarrowSum(user->getResult(0)));
        });
        if (!inChain || op->use_empty())
          changed |= wide.remove(op);
      }
    }
  }

  //===--- Writing -------------------------------------------------------===//

  /// Annotates an op whose result and first operand, if any, have the same sharding.
  void setShardings(Operation *op, ShardingAttr sharding) const {
    TensorSharding value = resolveVerified(sharding, meshes, op->getResult(0).getType());
    sharding::OpSharding own{value.dims, {}};
    for (const sharding::PartialAxis &partial : value.partial)
      own.forwards.push_back({partial, {0}});
    setOpSharding(op, sharding.getMesh(), meshes.get(sharding.getMesh()), own);
    setSharding(op->getResult(0), sharding);
  }

  /// An elementwise cast of a tensor with `sharding`.
  Value castElements(OpBuilder &b, Location loc, Value value, Type type,
                     ShardingAttr sharding) const {
    int64_t rank = mlir::cast<RankedTensorType>(type).getRank();
    Type element = getElementTypeOrSelf(type);
    auto empty =
        tensor::EmptyOp::create(b, loc, mlir::cast<RankedTensorType>(type).getShape(), element);
    auto op = linalg::GenericOp::create(
        b, loc, TypeRange{type}, ValueRange{value}, ValueRange{empty},
        ArrayRef<AffineMap>(SmallVector<AffineMap>(2, b.getMultiDimIdentityMap(rank))),
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [&](OpBuilder &inner, Location at, ValueRange arguments) {
          Value result = isNarrow(element)
                             ? arith::TruncFOp::create(inner, at, element, arguments[0]).getResult()
                             : arith::ExtFOp::create(inner, at, element, arguments[0]).getResult();
          linalg::YieldOp::create(inner, at, result);
        });
    if (sharding) {
      setShardings(empty, withoutPartial(sharding, type)); // it is not read
      setShardings(op, sharding);
    }
    return op.getResult(0);
  }

  /// The value of a constant or a fill: it is emitted in f32 instead of a cast, so that later
  /// passes recognize it.
  static std::optional<double> fillOf(Value value) {
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      value = fill.getInputs().front();
    else if (auto splat = value.getDefiningOp<tensor::SplatOp>())
      value = splat.getInput();
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (!constant || !isNarrow(constant.getType())) // a fill may round its value
      return std::nullopt;
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return number.getValueAsDouble();
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return mlir::cast<FloatAttr>(splat.getSplatValue<Attribute>()).getValueAsDouble();
    return std::nullopt;
  }

  /// The value in f32: the rewritten result of a wide op, otherwise an exact cast.
  Value wideOf(Value value) {
    if (!isNarrow(value.getType()))
      return value;
    Value &made = wideValues[value];
    if (made)
      return made;
    Operation *op = value.getDefiningOp();
    if (op && wide.contains(op))
      return wideValues[value] = rewrite(op);
    OpBuilder b(function.getContext());
    b.setInsertionPointAfterValue(value);
    auto type = mlir::cast<RankedTensorType>(widened(value.getType()));
    Location loc = value.getLoc();
    Value result;
    if (std::optional<double> number = fillOf(value)) {
      FloatAttr element = b.getF32FloatAttr(static_cast<float>(*number));
      result = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, element));
      if (ShardingAttr sharding = getSharding(value))
        setShardings(result.getDefiningOp(), sharding);
    } else {
      result = castElements(b, loc, value, type, getSharding(value));
    }
    return wideValues[value] = result;
  }

  Value rewrite(Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return rewriteLinalg(linalgOp);
    IRMapping mapping;
    OpBuilder b(op);
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        mapping.map(operand, wideOf(operand));
    Operation *made = b.clone(*op, mapping);
    made->getResult(0).setType(widened(op->getResult(0).getType()));
    if (auto pad = dyn_cast<tensor::PadOp>(made)) {
      Operation *yield = pad.getRegion().front().getTerminator();
      OpBuilder inner(yield);
      double number = *paddingOf(mlir::cast<tensor::PadOp>(op));
      yield->setOperand(
          0, arith::ConstantOp::create(inner, op->getLoc(),
                                       inner.getF32FloatAttr(static_cast<float>(number))));
    }
    return made->getResult(0);
  }

  static Value wideElement(OpBuilder &b, Location loc, Value element) {
    return arith::ExtFOp::create(b, loc, b.getF32Type(), element);
  }

  /// The same loops. Wide operands and the accumulator are f32; other 16-bit operands are cast in
  /// the body, so that libraries still support their products.
  Value rewriteLinalg(linalg::LinalgOp op) {
    OpBuilder b(op);
    SmallVector<Value> inputs, inits;
    for (Value input : op.getDpsInputs())
      inputs.push_back(isWide(input) ? wideOf(input) : input);
    for (Value init : op.getDpsInits())
      inits.push_back(wideOf(init));
    auto made =
        linalg::GenericOp::create(b, op.getLoc(), TypeRange{inits.front().getType()}, inputs, inits,
                                  op.getIndexingMapsArray(), op.getIteratorTypesArray(),
                                  [&](OpBuilder &inner, Location, ValueRange arguments) {
                                    writeBody(inner, *op.getBlock(), arguments);
                                  });
    if (OpShardingAttr own = getOpSharding(op))
      made->setAttr(DistDialect::kOpSharding, own);
    setSharding(made.getResult(0), getSharding(op->getResult(0)));
    return made.getResult(0);
  }

  static void writeBody(OpBuilder &b, Block &body, ValueRange arguments) {
    IRMapping mapping;
    auto map = [&](Value from, Value to) {
      mapping.map(from, isNarrow(to.getType()) ? wideElement(b, from.getLoc(), to) : to);
    };
    for (auto [from, to] : llvm::zip_equal(body.getArguments(), arguments))
      map(from, to);
    for (Operation &op : body.without_terminator()) {
      for (Value operand : op.getOperands()) // scalars from outside
        if (!isa<ShapedType>(operand.getType()) && !mapping.contains(operand))
          map(operand, operand);
      bool rounds = isa<arith::TruncFOp>(op) && isNarrow(op.getResult(0).getType());
      bool extends = isa<arith::ExtFOp>(op) && isNarrow(op.getOperand(0).getType());
      if (rounds || extends) {
        Value operand = mapping.lookup(op.getOperand(0));
        if (operand.getType() == widened(op.getResult(0).getType())) {
          mapping.map(op.getResult(0), operand);
          continue;
        }
      }
      if (auto constant = dyn_cast<arith::ConstantOp>(op);
          constant && isNarrow(constant.getType())) {
        double number = mlir::cast<FloatAttr>(constant.getValue()).getValueAsDouble();
        mapping.map(constant.getResult(),
                    arith::ConstantOp::create(b, op.getLoc(),
                                              b.getF32FloatAttr(static_cast<float>(number))));
        continue;
      }
      Operation *made = b.clone(op, mapping);
      for (auto [from, to] : llvm::zip_equal(op.getResults(), made->getResults())) {
        if (isa<tensor::ExtractOp>(op))
          map(from, to);
        else
          to.setType(widened(to.getType()));
      }
    }
    Value yielded = body.getTerminator()->getOperand(0);
    if (!mapping.contains(yielded))
      map(yielded, yielded);
    linalg::YieldOp::create(b, yielded.getLoc(), mapping.lookup(yielded));
  }

  /// Reduces in f32, rounds, and applies the rest of the reshard to the rounded value.
  void reduceWide(ReshardOp op) {
    OpBuilder b(op);
    Value value = op.getOperand();
    ShardingAttr own = getSharding(value), target = op.getSharding();
    ShardingAttr middle = target;
    if (!onOneMesh(op) || !refines(shardingOf(op.getResult()), shardingOf(value)))
      middle = withoutPartial(own, value.getType());
    middle = scatteredFor(value, middle);
    auto reduced =
        ReshardOp::create(b, op.getLoc(), widened(value.getType()), wideOf(value), middle);
    setSharding(reduced.getResult(), middle);
    if (Attribute reason = op->getAttr(DistDialect::kReason))
      reduced->setAttr(DistDialect::kReason, reason);
    Value rounded = castElements(b, op.getLoc(), reduced, value.getType(), middle);
    if (middle == target) {
      op.getResult().replaceAllUsesWith(rounded);
      op.erase();
    } else {
      op.getOperandMutable().assign(rounded);
    }
  }

  /// Where a value is reduced that is whole in `target`: in parts, which are rounded, then
  /// gathered: six bytes an element instead of the eight of an all-reduce in f32.
  ShardingAttr scatteredFor(Value value, ShardingAttr target) const {
    TensorSharding own = shardingOf(value),
                   whole = resolveVerified(target, meshes, value.getType());
    if (whole != own.withoutPartial())
      return target;
    sharding::AxisList axes;
    for (const sharding::PartialAxis &partial : own.partial)
      axes.push_back(partial.axis);
    TensorSharding parts =
        scattered(own, mlir::cast<RankedTensorType>(value.getType()).getShape(), axes);
    return ShardingAttr::get(target.getMesh(), meshes.get(target.getMesh()), parts,
                             target.getContext());
  }

  /// Whether each dimension is cut at least as in `coarse`: a reduction leads there without a
  /// gather.
  static bool refines(const TensorSharding &fine, const TensorSharding &coarse) {
    for (auto [f, c] : llvm::zip_equal(fine.dims, coarse.dims))
      if (!sharding::isPrefix(c, f))
        return false;
    return fine.windows.empty();
  }

  func::FuncOp function;
  const MeshTable &meshes;
  llvm::SetVector<Operation *> wide;       // in program order
  llvm::DenseMap<Value, Value> wideValues; // looked up, never iterated
};

struct DistWidenPartials : dist::impl::DistWidenPartialsBase<DistWidenPartials> {
  void runOnOperation() override {
    MeshTable meshes(getOperation());
    if (meshes.empty())
      return;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        Widening(function, meshes).run();
  }
};

} // namespace
