//===- Normalize.cpp - The canonical form of the global view --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Recognize/SelectProducts.h"
#include "CancelSorts.h"
#include "CopyIndices.h"
#include "DecideBranches.h"
#include "DecideIndices.h"
#include "DecideRows.h"
#include "FoldSplats.h"
#include "FollowLoops.h"
#include "FormLookups.h"
#include "FormRearrangements.h"
#include "GrowInteriors.h"
#include "InterleaveParts.h"
#include "MergeSums.h"
#include "MultiplyLookedUp.h"
#include "NarrowBands.h"
#include "PadReshapes.h"
#include "PeelLastMoves.h"
#include "ReadByMap.h"
#include "ReadDiagonals.h"
#include "ReadNarrow.h"
#include "RefineReshapes.h"
#include "SelectParts.h"
#include "SinkPads.h"
#include "SinkProducts.h"
#include "SinkUpdates.h"
#include "SliceIndices.h"
#include "SliceWindows.h"
#include "SortedGroups.h"
#include "SplitBlockedDims.h"
#include "SplitFlatIndices.h"
#include "SplitMergedDims.h"
#include "SplitRepeats.h"
#include "SplitShared.h"
#include "SplitSorts.h"
#include "UpdateLookedUp.h"
#include "WriteByMap.h"
#include "tessera/Planning/MeshAssignment.h"
#include "tessera/Transforms/Elementwise.h"
#include "tessera/Transforms/HoistInvariants.h"
#include "tessera/Transforms/Inline.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTNORMALIZE
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether each use should have its own copy: computing it is free, and sharing it would tie the
/// shardings of its users together.
static bool isCheap(Operation *op) {
  if (isa<tensor::EmptyOp>(op))
    return true;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (isa<tensor::SplatOp>(op))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>() != nullptr;
  return false;
}

/// The op itself, or the linalg op or pad whose body contains it.
static Operation *outOfBodies(Operation *op) {
  Operation *result = op;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<linalg::LinalgOp, tensor::PadOp>(parent))
      result = parent;
  return result;
}

/// Copies cheap ops in front of each of their uses beyond the first in their block, users before
/// producers, so that a copied fill gets its own tensor.empty.
static void copyCheapOps(func::FuncOp function) {
  SmallVector<Operation *> cheap;
  function.walk([&](Operation *op) {
    if (isCheap(op))
      cheap.push_back(op);
  });
  for (Operation *op : llvm::reverse(cheap)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getResult(0).getUses())
      uses.push_back(&use);
    // Uses are listed last first; the first one in the program keeps the original, unless it is in
    // a loop or branch, so that the copy is not live outside.
    if (!uses.empty() && outOfBodies(uses.back()->getOwner())->getBlock() == op->getBlock())
      uses.pop_back();
    for (OpOperand *use : uses) {
      OpBuilder builder(outOfBodies(use->getOwner()));
      use->set(builder.clone(*op)->getResult(0));
    }
    if (op->use_empty())
      op->erase();
  }
}

namespace {
struct DistNormalize : dist::impl::DistNormalizeBase<DistNormalize> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(inlineCalls(getOperation())))
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function) && failed(normalize(function)))
        return signalPassFailure();
  }

  LogicalResult normalize(func::FuncOp function) {
    dropDerivativeMarks(function);
    if (failed(checkUnusedConstraints(function)))
      return failure();
    decideBranches(function);
    decompose(function);
    foldSplats(function);
    readNarrow(function);
    selectProducts(function);
    sinkUpdates(function);
    hoistInvariants(function);
    sinkProducts(function);
    MeshTable meshes(getOperation());
    if (meshes.empty() && devices <= 0) {
      sliceWindows(function);
    } else {
      readDiagonals(function);
      mergeSums(function);
      selectParts(function);
      formLookups(function);
      sliceIndices(function);
      splitFlatIndices(function);
      readByMap(function);
      followLoops(function);
      decideIndices(function);
      updateLookedUp(function, meshes);
      multiplyLookedUp(function);
      takeSortedGroups(function);
      if (cancelSorts(function)) {
        readByMap(function);
        followLoops(function);
        decideRows(function);
      }
      splitRepeats(function);
      writeByMap(function);
      narrowBands(function);
      sliceWindows(function);
      sinkPads(function);
      growInteriors(function);
      formRearrangements(function);
      sinkRearrangements(function);
      peelLastMoves(function);
      interleaveParts(function, meshes);
      splitSorts(function, meshes);
      refineReshapes(function);
      splitMergedDims(function);
      refineReshapes(function);
      followLoops(function); // rows of merged dimensions are known now
      splitBlockedDims(function, meshes);
      padReshapes(function, meshes);
      copyIndices(function);
    }
    copyCheapOps(function);
    splitSharedArguments(function, meshes);
    FailureOr<MeshAssignment> assignment = MeshAssignment::compute(function, meshes);
    if (failed(assignment))
      return failure();
    if (!meshes.empty())
      canonicalizeSpelling(function, meshes, *assignment);
    return success();
  }

  /// An unused constraint has no effect, which is probably not what the user intended.
  LogicalResult checkUnusedConstraints(func::FuncOp function) {
    function.walk([](ShardTensorOp op) {
      if (op.getResult().use_empty())
        op.emitWarning()
            << "the result of 'dist.shard_tensor' is unused, so it constrains nothing; use "
            << "its result in place of its operand";
    });
    return success();
  }

  void decompose(func::FuncOp function) {
    SmallVector<Operation *> aggregates, elementwise;
    function.walk([&](Operation *op) {
      if (isa<linalg::SoftmaxOp>(op))
        aggregates.push_back(op);
      else if (isElementwiseOnTensors(op))
        elementwise.push_back(op);
    });
    for (Operation *op : aggregates) {
      OpBuilder builder(op);
      FailureOr<SmallVector<Value>> parts =
          cast<linalg::AggregatedOpInterface>(op).decomposeOperation(builder);
      if (failed(parts))
        continue; // it has a rule, or the guard has rejected it
      op->replaceAllUsesWith(*parts);
      op->erase();
    }
    llvm::for_each(elementwise, elementwiseToGeneric);
  }

  /// Every sharding in canonical form: dimensions are not negative, and every mesh axis has a
  /// placement (omitted axes become `?`).
  void canonicalizeSpelling(func::FuncOp function, const MeshTable &meshes,
                            const MeshAssignment &assignment) {
    auto spell = [&](ShardingAttr attr, Type type) {
      return ShardingAttr::get(attr.getMesh(), meshes.get(attr.getMesh()),
                               resolveVerified(attr, meshes, type), &getContext(),
                               attr.getPriority());
    };
    auto open = [&](FlatSymbolRefAttr mesh, Type type) {
      auto all = sharding::TensorSharding::allOpen(meshes.get(mesh),
                                                   cast<RankedTensorType>(type).getRank());
      return ShardingAttr::get(mesh, meshes.get(mesh), all, &getContext());
    };
    SignatureAttrs signature(function);
    for (BlockArgument argument : function.getArguments()) {
      if (!isa<RankedTensorType>(argument.getType()))
        continue;
      ShardingAttr attr = getSharding(argument);
      signature.ofArgument(argument.getArgNumber())
          .set(DistDialect::kSharding, attr
                                           ? spell(attr, argument.getType())
                                           : open(assignment.lookup(argument), argument.getType()));
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index) {
      Type type = function.getResultTypes()[index];
      if (!isa<RankedTensorType>(type))
        continue;
      auto attr = function.getResultAttrOfType<ShardingAttr>(index, DistDialect::kSharding);
      signature.ofResult(index).set(DistDialect::kSharding,
                                    attr ? spell(attr, type)
                                         : open(assignment.lookupResult(index), type));
    }
    signature.write();
    function.walk([&](Operation *op) {
      if (auto constraint = dyn_cast<ShardTensorOp>(op))
        constraint.setShardingAttr(spell(constraint.getSharding(), constraint.getType()));
      if (auto reshard = dyn_cast<ReshardOp>(op))
        reshard.setShardingAttr(spell(reshard.getSharding(), reshard.getType()));
      for (StringRef name : {DistDialect::kShardings, DistDialect::kBeforeShardings}) {
        auto list = op->getAttrOfType<ArrayAttr>(name);
        if (!list)
          continue;
        SmallVector<Attribute> spelled(list.begin(), list.end());
        for (auto [index, element] : llvm::enumerate(spelled))
          if (auto attr = dyn_cast<ShardingAttr>(element)) {
            Type type = name == DistDialect::kShardings
                            ? op->getResult(index).getType()
                            : cast<scf::WhileOp>(op).getBeforeArguments()[index].getType();
            element = spell(attr, type);
          }
        op->setAttr(name, ArrayAttr::get(&getContext(), spelled));
      }
    });
  }
};
} // namespace
