//===- PlantedPartialFaults.cpp - Faults in contributions -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
using sharding::PartialAxis;
using sharding::ReduceKind;
using sharding::TensorSharding;

//===----------------------------------------------------------------------===//
// Making contributions
//===----------------------------------------------------------------------===//

/// Whether a copy of the value on another device changes the result. Copies of a maximum are
/// harmless, and `avg` requires them.
static bool counts(dist::ReduceKind kind) {
  return kind == dist::ReduceKind::sum || kind == dist::ReduceKind::prod;
}

static bool dropMakePartial(ModuleOp local, llvm::function_ref<bool(dist::MakePartialOp)> where) {
  SmallVector<dist::MakePartialOp> dropped;
  local.walk([&](dist::MakePartialOp op) {
    if (counts(op.getReduction()) && op.getOperandTypes() == op.getResultTypes() && where(op))
      dropped.push_back(op);
  });
  for (dist::MakePartialOp op : dropped) {
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  }
  return !dropped.empty();
}

/// Whether a linalg op that uses it accumulates into it.
static bool isInit(dist::MakePartialOp op) {
  return llvm::any_of(op->getUses(), [](OpOperand &use) {
    auto linalg = dyn_cast<linalg::LinalgOp>(use.getOwner());
    return linalg && linalg.isDpsInit(&use);
  });
}

/// The other devices contribute zeros for any reduction.
static bool zeroIdentity(ModuleOp local) {
  return editAll<dist::MakePartialOp>(local, [](PlantedMove &move) {
    bool any = false;
    for (PartialAxis &axis : move.target.partial)
      if (axis.kind != ReduceKind::sum && axis.kind != ReduceKind::avg &&
          !llvm::is_contained(move.source.partial, axis)) {
        axis.kind = ReduceKind::sum;
        any = true;
      }
    // Kinds may not be mixed.
    return any && move.source.partial.empty();
  });
}

/// Reductions that start from the identity of max, min or product start from zero.
static bool zeroFills(ModuleOp local) {
  bool any = false;
  local.walk([&](linalg::FillOp fill) {
    Attribute value;
    if (!matchPattern(fill.getInputs()[0], m_Constant(&value)))
      return;
    bool identity = false;
    if (auto number = dyn_cast<FloatAttr>(value))
      identity = number.getValue().isInfinity() || number.getValue().isExactlyValue(1.0);
    if (auto number = dyn_cast<IntegerAttr>(value))
      identity = number.getValue().isMinSignedValue() || number.getValue().isMaxSignedValue() ||
                 number.getValue().isOne();
    bool starts = llvm::any_of(fill->getUses(), [](OpOperand &use) {
      auto linalg = dyn_cast<linalg::LinalgOp>(use.getOwner());
      return linalg && linalg.isDpsInit(&use) && linalg.getNumReductionLoops() > 0;
    });
    if (!identity || !starts)
      return;
    OpBuilder b(fill);
    Type element = fill.getInputs()[0].getType();
    fill.getInputsMutable().assign(
        arith::ConstantOp::create(b, fill.getLoc(), b.getZeroAttr(element)));
    any = true;
  });
  return any;
}

//===----------------------------------------------------------------------===//
// Reducing contributions
//===----------------------------------------------------------------------===//

/// Replaces the reduction by another one.
static bool wrongKind(PlantedMove &move) {
  bool any = false;
  for (PartialAxis &axis : move.source.partial)
    if (llvm::none_of(move.target.partial,
                      [&](const PartialAxis &kept) { return kept.axis.overlaps(axis.axis); })) {
      axis.kind = axis.kind == ReduceKind::sum ? ReduceKind::max : ReduceKind::sum;
      any = true;
    }
  return any && move.target.partial.empty();
}

static bool averageUnscaled(PlantedMove &move) {
  bool any = false;
  for (auto *list : {&move.source.partial, &move.target.partial})
    for (PartialAxis &axis : *list)
      if (axis.kind == ReduceKind::avg) {
        axis.kind = ReduceKind::sum;
        any = true;
      }
  return any;
}

/// Reduces over all axes but one.
static bool missingAxis(PlantedMove &move) {
  if (move.source.partial.size() < 2 || move.target.isPartial())
    return false;
  move.source.partial.pop_back();
  return true;
}

/// Reduces over other axes of the mesh, which hold copies.
static bool otherAxes(PlantedMove &move) {
  if (!move.source.isPartial() || move.target.isPartial())
    return false;
  ReduceKind kind = move.source.partial.front().kind;
  std::vector<PartialAxis> others;
  for (int64_t axis = 0; axis < move.mesh.numAxes(); ++axis) {
    auto ref = sharding::AxisRef::full(move.mesh, axis);
    if (ref.size > 1 && move.source.isFree(ref) && move.target.isFree(ref))
      others.push_back({ref, kind});
  }
  if (others.empty())
    return false;
  move.source.partial = others;
  return true;
}

static bool dropAllReduce(ModuleOp local) {
  SmallVector<dist::AllReduceOp> dropped;
  local.walk([&](dist::AllReduceOp op) { dropped.push_back(op); });
  for (dist::AllReduceOp op : dropped) {
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  }
  return !dropped.empty();
}

/// Reduces a reduced value again.
static bool reduceTwice(ModuleOp local, llvm::function_ref<bool(Operation *)> where) {
  SmallVector<dist::AllReduceOp> ops;
  local.walk([&](dist::AllReduceOp op) {
    if (counts(op.getReduction()) && where(op))
      ops.push_back(op);
  });
  for (dist::AllReduceOp op : ops) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Operation *again = b.clone(*op);
    op->replaceUsesWithIf(again, [&](OpOperand &use) { return use.getOwner() != again; });
    again->setOperands(op->getResults());
  }
  return !ops.empty();
}

/// Each device keeps its part of its own contribution without a reduction.
static bool sliceForScatter(ModuleOp local) {
  SmallVector<dist::ReduceScatterOp> ops;
  local.walk([&](dist::ReduceScatterOp op) {
    if (op.getSourcesAttr())
      ops.push_back(op);
  });
  for (dist::ReduceScatterOp op : ops) {
    (void)editMoves(op, [](PlantedMove &move) {
      move.source = move.source.withoutPartial();
      move.target = move.target.withoutPartial();
      return true;
    });
    OpBuilder b(op);
    auto slice = dist::SliceOp::create(
        b, op.getLoc(), op.getResultTypes(), op.getOperands(), op.getMeshAttr(), op.getAxesAttr(),
        op.getDimAttr(), op.getSourcesAttr(), op.getTargetsAttr(), op.getGlobalTypesAttr());
    op->replaceAllUsesWith(slice->getResults());
    op->erase();
  }
  return !ops.empty();
}

//===----------------------------------------------------------------------===//
// Contributions at the edge of the program
//===----------------------------------------------------------------------===//

static dist::ShardingAttr withoutPartial(dist::ShardingAttr attr, const dist::MeshTable &meshes,
                                         Type type) {
  TensorSharding sharding = dist::resolveVerified(attr, meshes, type);
  if (!sharding.isPartial())
    return {};
  return dist::ShardingAttr::get(attr.getMesh(), meshes.get(attr.getMesh()),
                                 sharding.withoutPartial(), attr.getContext());
}

static bool forgetPartialArguments(ModuleOp local) {
  dist::MeshTable meshes(local);
  bool any = false;
  for (auto function : local.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (dist::ShardingAttr attr = dist::getSharding(argument))
        if (auto whole = withoutPartial(attr, meshes, dist::getGlobalType(argument))) {
          function.setArgAttr(argument.getArgNumber(), dist::DistDialect::kSharding, whole);
          any = true;
        }
  return any;
}

static bool forgetPartialResults(ModuleOp local) {
  dist::MeshTable meshes(local);
  bool any = false;
  for (auto function : local.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto attr = function.getResultAttrOfType<dist::ShardingAttr>(i, dist::DistDialect::kSharding);
      auto type = function.getResultAttrOfType<TypeAttr>(i, dist::DistDialect::kGlobalType);
      if (!attr || !type)
        continue;
      if (auto whole = withoutPartial(attr, meshes, type.getValue())) {
        function.setResultAttr(i, dist::DistDialect::kSharding, whole);
        any = true;
      }
    }
  return any;
}

static bool inLoop(Operation *op) {
  return op->getParentOfType<scf::ForOp>() || op->getParentOfType<scf::WhileOp>();
}

void fuzz::addPartialFaults(std::vector<PlantedFault> &faults) {
  faults.push_back({"init-counted-on-all", "an accumulator's start is counted on every device",
                    [](ModuleOp m) { return dropMakePartial(m, isInit); }});
  faults.push_back(
      {"value-counted-on-all", "a value made partial is kept by every device",
       [](ModuleOp m) { return dropMakePartial(m, [](auto op) { return !isInit(op); }); }});
  faults.push_back(
      {"identity-of-sum", "contributions to max, min and product are zeros", zeroIdentity});
  faults.push_back({"fill-of-zero", "max, min and product start from zero", zeroFills});
  faults.push_back({"all-reduce-kind", "an all-reduce combines by another operation",
                    [](ModuleOp m) { return editAll<dist::AllReduceOp>(m, wrongKind); }});
  faults.push_back({"all-reduce-dropped", "a contribution is taken for the value", dropAllReduce});
  faults.push_back({"all-reduce-twice", "a reduced value is reduced again",
                    [](ModuleOp m) { return reduceTwice(m, [](auto *) { return true; }); }});
  faults.push_back({"loop-reduces-twice", "the same, only inside loops",
                    [](ModuleOp m) { return reduceTwice(m, inLoop); }});
  faults.push_back({"all-reduce-missing-axis", "an all-reduce leaves out the last of its axes",
                    [](ModuleOp m) { return editAll<dist::AllReduceOp>(m, missingAxis); }});
  faults.push_back({"all-reduce-other-axes", "an all-reduce goes over the axes that hold copies",
                    [](ModuleOp m) { return editAll<dist::AllReduceOp>(m, otherAxes); }});
  faults.push_back({"average-unscaled", "a mean is a sum", [](ModuleOp m) {
                      bool any = editAll<dist::AllReduceOp>(m, averageUnscaled);
                      return editAll<dist::ReduceScatterOp>(m, averageUnscaled) || any;
                    }});
  faults.push_back({"reduce-scatter-kind", "a reduce-scatter combines by another operation",
                    [](ModuleOp m) { return editAll<dist::ReduceScatterOp>(m, wrongKind); }});
  faults.push_back(
      {"slice-for-reduce-scatter", "parts of contributions are never combined", sliceForScatter});
  faults.push_back({"partial-argument-forgotten",
                    "every device gets a whole argument, and all "
                    "are counted",
                    forgetPartialArguments});
  faults.push_back({"partial-result-forgotten", "a contribution is returned as the value",
                    forgetPartialResults});
}
