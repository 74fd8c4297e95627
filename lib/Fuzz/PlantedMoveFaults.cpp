//===- PlantedMoveFaults.cpp - Faults in collectives and windows ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
using sharding::AxisList;
using sharding::TensorSharding;

//===----------------------------------------------------------------------===//
// Wrong order, wrong device
//===----------------------------------------------------------------------===//

/// Reverses the axes of each dimension with several axes.
static bool reverseAxes(TensorSharding &sharding) {
  bool any = false;
  for (AxisList &axes : sharding.dims)
    if (axes.size() > 1) {
      std::reverse(axes.begin(), axes.end());
      any = true;
    }
  return any;
}

static bool reverseSource(PlantedMove &move) {
  return reverseAxes(move.source);
}
static bool reverseTarget(PlantedMove &move) {
  return reverseAxes(move.target);
}

/// Each device gets its neighbor's part, for all results of one kind of collective.
template <typename Op> static bool rotateResults(ModuleOp local) {
  dist::MeshTable meshes(local);
  SmallVector<Op> ops;
  local.walk([&](Op op) { ops.push_back(op); });
  bool any = false;
  for (Op op : ops)
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      auto target = cast<dist::ShardingAttr>(op.getTargetsAttr()[index]);
      TensorSharding sharding = dist::resolveVerified(
          target, meshes, cast<TypeAttr>(op.getGlobalTypesAttr()[index]).getValue());
      AxisList cut;
      for (const AxisList &axes : sharding.dims)
        cut.insert(cut.end(), axes.begin(), axes.end());
      any |= rotate(result, target.getMesh(), meshes.get(target.getMesh()), cut);
    }
  return any;
}

static bool rotateTransfers(ModuleOp local) {
  dist::MeshTable meshes(local);
  SmallVector<dist::RecvOp> ops;
  local.walk([&](dist::RecvOp op) { ops.push_back(op); });
  bool any = false;
  for (dist::RecvOp op : ops) {
    TensorSharding target = dist::resolveVerified(op.getTarget(), meshes, op.getGlobalType());
    AxisList cut;
    for (const AxisList &axes : target.dims)
      cut.insert(cut.end(), axes.begin(), axes.end());
    any |=
        rotate(op.getResult(), op.getTarget().getMesh(), meshes.get(op.getTarget().getMesh()), cut);
  }
  return any;
}

/// Every device keeps the first part.
static bool sliceFirstPart(ModuleOp local) {
  SmallVector<dist::SliceOp> ops;
  local.walk([&](dist::SliceOp op) { ops.push_back(op); });
  bool any = false;
  for (dist::SliceOp op : ops)
    for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
      auto from = cast<RankedTensorType>(operand.getType());
      auto to = cast<RankedTensorType>(result.getType());
      if (from == to ||
          llvm::any_of(llvm::zip_equal(from.getShape(), to.getShape()),
                       [](auto both) { return std::get<0>(both) < std::get<1>(both); }))
        continue;
      OpBuilder b(op);
      SmallVector<OpFoldResult> zeros(to.getRank(), b.getIndexAttr(0)),
          ones(to.getRank(), b.getIndexAttr(1)), sizes;
      for (int64_t size : to.getShape())
        sizes.push_back(b.getIndexAttr(size));
      result.replaceAllUsesWith(
          tensor::ExtractSliceOp::create(b, op.getLoc(), to, operand, zeros, sizes, ones));
      any = true;
    }
  return any;
}

/// Replaces the second of two collectives of one kind and type by the first.
static bool mergeDifferent(ModuleOp local) {
  bool any = false;
  local.walk([&](Block *block) {
    SmallVector<Operation *> seen;
    for (Operation &op : *block) {
      if (!isa<dist::CollectiveOpInterface>(op))
        continue;
      auto same = llvm::find_if(seen, [&](Operation *other) {
        return other->getName() == op.getName() && other->getOperands() != op.getOperands() &&
               other->getOperandTypes() == op.getOperandTypes() &&
               other->getResultTypes() == op.getResultTypes() &&
               other->getAttr("targets") == op.getAttr("targets") &&
               other->getAttr("sources") == op.getAttr("sources");
      });
      if (same == seen.end()) {
        seen.push_back(&op);
        continue;
      }
      op.replaceAllUsesWith(*same);
      any = true;
    }
  });
  return any;
}

/// A fused collective returns its results in the wrong order.
static bool swapFused(ModuleOp local) {
  bool any = false;
  local.walk([&](dist::CollectiveOpInterface op) {
    for (unsigned i = 0; i + 1 < op->getNumResults(); ++i)
      if (op->getResult(i).getType() == op->getResult(i + 1).getType()) {
        Value first = op->getOperand(i), second = op->getOperand(i + 1);
        auto sources = op.getSourcesAttr(), targets = op.getTargetsAttr();
        if (first == second || sources[i] != sources[i + 1] || targets[i] != targets[i + 1])
          continue;
        op->setOperand(i, second);
        op->setOperand(i + 1, first);
        any = true;
        break;
      }
  });
  return any;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Windows begin one index late.
static bool shiftWindows(PlantedMove &move) {
  if (move.source.windows == move.target.windows)
    return false;
  for (sharding::Window &window : move.target.windows)
    ++window.offset;
  return !move.target.windows.empty();
}

/// Pads a value at one end of a dimension with zeros.
static Value padWithZeros(OpBuilder &b, Value value, int64_t dim, int64_t low, int64_t high) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] += low + high;
  SmallVector<OpFoldResult> lows(type.getRank(), b.getIndexAttr(0)), highs = lows;
  lows[dim] = b.getIndexAttr(low);
  highs[dim] = b.getIndexAttr(high);
  Value zero = arith::ConstantOp::create(b, value.getLoc(), b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, value.getLoc(),
                               RankedTensorType::get(shape, type.getElementType()), value, lows,
                               highs, zero);
}

static SmallVector<dist::HaloExchangeOp> halos(ModuleOp local) {
  SmallVector<dist::HaloExchangeOp> ops;
  local.walk([&](dist::HaloExchangeOp op) {
    if (op->getNumOperands() == 1)
      ops.push_back(op);
  });
  return ops;
}

/// Halos from the neighbors are missing.
static bool dropHalos(ModuleOp local) {
  SmallVector<dist::HaloExchangeOp> ops = halos(local);
  for (dist::HaloExchangeOp op : ops) {
    OpBuilder b(op);
    Value padded = padWithZeros(b, op->getOperand(0), op.getDim(), op.getLow(), op.getHigh());
    op->getResult(0).replaceAllUsesWith(padded);
    op->erase();
  }
  return !ops.empty();
}

/// Halos are one row short, from the next or the previous neighbor.
static bool shortHalos(ModuleOp local) {
  bool any = false;
  for (dist::HaloExchangeOp op : halos(local)) {
    bool atHigh = op.getHigh() > 0;
    if (!atHigh && op.getLow() == 0)
      continue;
    (void)editMoves(op, [&](PlantedMove &move) {
      for (sharding::Window &window : move.target.windows)
        if (window.dim == static_cast<int64_t>(op.getDim())) {
          --window.length;
          window.offset += !atHigh;
        }
      return true;
    });
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    --shape[op.getDim()];
    op->getResult(0).setType(RankedTensorType::get(shape, type.getElementType()));
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value padded = padWithZeros(b, op->getResult(0), op.getDim(), !atHigh, atHigh);
    op->getResult(0).replaceAllUsesExcept(padded, padded.getDefiningOp());
    any = true;
  }
  return any;
}

/// Padding outside of the tensor has a wrong fill value.
static bool wrongFill(ModuleOp local) {
  bool any = false;
  local.walk([&](Operation *op) {
    if (!isa<dist::HaloExchangeOp, dist::ExchangeOp>(op))
      return;
    Attribute fill = op->getAttr("fill");
    Builder b(op->getContext());
    if (auto number = dyn_cast_or_null<FloatAttr>(fill))
      op->setAttr("fill", b.getFloatAttr(number.getType(), number.getValue().isZero() ? 3 : 0));
    else if (auto number = dyn_cast_or_null<IntegerAttr>(fill))
      op->setAttr("fill", b.getIntegerAttr(number.getType(), number.getValue().isZero()));
    else
      return;
    any = true;
  });
  return any;
}

void fuzz::addMoveFaults(std::vector<PlantedFault> &faults) {
  faults.push_back({"all-gather-order", "parts over several axes are joined minor axis first",
                    [](ModuleOp m) { return editAll<dist::AllGatherOp>(m, reverseSource); }});
  faults.push_back({"all-gather-rotated", "a gathered value goes to the neighbor",
                    rotateResults<dist::AllGatherOp>});
  faults.push_back({"slice-order", "parts over several axes are counted minor axis first",
                    [](ModuleOp m) { return editAll<dist::SliceOp>(m, reverseTarget); }});
  faults.push_back({"slice-first-part", "every device keeps the first part", sliceFirstPart});
  faults.push_back(
      {"slice-rotated", "every device keeps its neighbor's part", rotateResults<dist::SliceOp>});
  faults.push_back({"reduce-scatter-rotated", "a reduced part goes to the neighbor",
                    rotateResults<dist::ReduceScatterOp>});
  faults.push_back({"all-to-all-order", "blocks over several axes are sent minor axis first",
                    [](ModuleOp m) { return editAll<dist::AllToAllOp>(m, reverseTarget); }});
  faults.push_back(
      {"all-to-all-rotated", "blocks go to the neighbor", rotateResults<dist::AllToAllOp>});
  faults.push_back({"permute-off-by-one", "buffers go to the neighbor of the right device",
                    rotateResults<dist::PermuteOp>});
  faults.push_back({"exchange-order", "rectangles are cut minor axis first",
                    [](ModuleOp m) { return editAll<dist::ExchangeOp>(m, reverseSource); }});
  faults.push_back(
      {"exchange-rotated", "rectangles go to the neighbor", rotateResults<dist::ExchangeOp>});
  faults.push_back(
      {"transfer-rotated", "a transfer from another mesh goes to the neighbor", rotateTransfers});
  faults.push_back({"window-shifted", "an exchanged window begins one index late",
                    [](ModuleOp m) { return editAll<dist::ExchangeOp>(m, shiftWindows); }});
  faults.push_back({"halo-shifted", "a halo begins one index late",
                    [](ModuleOp m) { return editAll<dist::HaloExchangeOp>(m, shiftWindows); }});
  faults.push_back({"halo-dropped", "borders are zeros", dropHalos});
  faults.push_back({"halo-one-short", "the last row of a border is zeros", shortHalos});
  faults.push_back({"fill-wrong", "a window is padded with another value", wrongFill});
  faults.push_back(
      {"different-merged", "two collectives over different values become one", mergeDifferent});
  faults.push_back({"fused-swapped", "a fused collective mixes up its operands", swapFused});
}
