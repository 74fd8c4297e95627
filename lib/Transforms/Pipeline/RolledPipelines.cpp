//===- RolledPipelines.cpp - Pipelines that are loops ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Pipeline/RolledPipelines.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::pipeline;

namespace {

/// Follows a dimension of a loop's yielded value back to the same carry.
class StageDim {
public:
  StageDim(scf::ForOp loop, unsigned carry) : loop(loop), carry(carry) {}

  /// Whether it is one of stages: its elements move by one on the way, only some of them come from
  /// the carry, and a product has different weights for each.
  bool leadsBack(int64_t dim) {
    push(loop.getYieldedValues()[carry], dim, false);
    while (!todo.empty()) {
      Place place = todo.pop_back_val();
      if (place.value == loop.getRegionIterArg(carry))
        isCarried |= place.dim == dim && place.hasMoved;
      else if (Operation *op = place.value.getDefiningOp())
        visit(op, place);
      else
        leave(cast<BlockArgument>(place.value), place);
    }
    return isCarried && isReplaced && hasProduct;
  }

private:
  struct Place {
    Value value;
    int64_t dim;
    bool hasMoved;
  };

  void push(Value value, int64_t dim, bool hasMoved) {
    if (seen.insert({value, 2 * dim + hasMoved}).second)
      todo.push_back({value, dim, hasMoved});
  }
  void visit(Operation *op, const Place &place);
  void visitLinalg(linalg::LinalgOp op, const Place &place);
  void visitRearrange(RearrangeOp op, const Place &place);
  /// The initial value of an inner loop's argument.
  void leave(BlockArgument argument, const Place &place) {
    auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (inner && inner != loop && argument != inner.getInductionVar())
      push(inner.getTiedLoopInit(argument)->get(), place.dim, place.hasMoved);
  }

  scf::ForOp loop;
  unsigned carry;
  bool isCarried = false, isReplaced = false, hasProduct = false;
  SmallVector<Place> todo;
  llvm::DenseSet<std::pair<Value, int64_t>> seen; // looked up only
};

} // namespace

void StageDim::visit(Operation *op, const Place &place) {
  if (isa<ShardTensorOp, ReshardOp>(op)) {
    push(op->getOperand(0), place.dim, place.hasMoved);
  } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    visitLinalg(linalgOp, place);
  } else if (auto rearrange = dyn_cast<RearrangeOp>(op)) {
    visitRearrange(rearrange, place);
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    bool isWhole = insert.getStaticSizes()[place.dim] == insert.getDestType().getDimSize(place.dim);
    if (isWhole && insert.getSourceType().getRank() == insert.getDestType().getRank())
      push(insert.getSource(), place.dim, place.hasMoved);
    isReplaced |= !isWhole;
    push(insert.getDest(), place.dim, place.hasMoved);
  } else if (auto inner = dyn_cast<scf::ForOp>(op)) {
    unsigned result = cast<OpResult>(place.value).getResultNumber();
    push(inner.getYieldedValues()[result], place.dim, place.hasMoved);
    push(inner.getInitArgs()[result], place.dim, place.hasMoved);
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices()))
      if (group == ReassociationIndices{place.dim})
        push(expand.getSrc(), static_cast<int64_t>(dim), place.hasMoved);
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    if (auto group = collapse.getReassociationIndices()[place.dim]; group.size() == 1)
      push(collapse.getSrc(), group[0], place.hasMoved);
  }
}

void StageDim::visitLinalg(linalg::LinalgOp op, const Place &place) {
  AffineMap made = op.getIndexingMapMatchingResult(cast<OpResult>(place.value));
  auto stages = dyn_cast<AffineDimExpr>(made.getResult(place.dim));
  if (!stages || op.getIteratorTypesArray()[stages.getPosition()] != utils::IteratorType::parallel)
    return;
  int64_t factors = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(input).getResults()))
      if (expr == stages) {
        push(input->get(), static_cast<int64_t>(dim), place.hasMoved);
        ++factors;
      }
  hasProduct |= factors > 1 && op.getNumReductionLoops() > 0;
}

void StageDim::visitRearrange(RearrangeOp op, const Place &place) {
  for (auto [index, input] : llvm::enumerate(op.getInputs())) {
    if (static_cast<int64_t>(op.getDim()) != place.dim) {
      push(input, place.dim, place.hasMoved);
      continue;
    }
    sharding::Segment segment = op.getSegment(index);
    int64_t extent = cast<RankedTensorType>(input.getType()).getDimSize(place.dim);
    bool movesByOne = segment.fromStep == 1 && segment.toStep == 1 && segment.count == extent - 1 &&
                      std::abs(segment.to - segment.from) == 1;
    if (movesByOne && !place.hasMoved)
      push(input, place.dim, true);
    isReplaced |= movesByOne && op.getInputs().size() > 1 &&
                  llvm::any_of(op.getInputs(), [&](Value other) { return other != input; });
    isReplaced |= movesByOne && op.getInputs().size() == 1; // by a constant
  }
}

bool pipeline::isOfStages(scf::ForOp loop, unsigned carry, int64_t dim) {
  return StageDim(loop, carry).leadsBack(dim);
}

std::vector<RolledPipeline> pipeline::findRolledPipelines(ModuleOp module) {
  std::vector<RolledPipeline> found;
  MeshTable meshes(module);
  auto add = [&](scf::ForOp loop) {
    std::optional<llvm::APInt> trips = loop.getStaticTripCount();
    if (!trips || trips->getActiveBits() > 32)
      return;
    for (auto [carry, result] : llvm::enumerate(loop.getResults())) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      ShardingAttr sharding = type ? getSharding(result) : ShardingAttr();
      if (!sharding)
        continue;
      sharding::TensorSharding own = resolveVerified(sharding, meshes, type);
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        if (own.dims[dim].empty() || type.getDimSize(dim) > trips->getSExtValue() ||
            !isOfStages(loop, static_cast<unsigned>(carry), dim))
          continue;
        std::string where;
        if (auto place = loop.getLoc()->findInstanceOf<FileLineColLoc>())
          where = place.getFilename().str() + ":" + std::to_string(place.getLine()) + ":" +
                  std::to_string(place.getColumn());
        found.push_back({where, type.getDimSize(dim), trips->getSExtValue()});
        return;
      }
    }
  };
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!isLocalView(function))
      function.walk<WalkOrder::PreOrder>(add);
  return found;
}

void pipeline::setRolledPipelines(ModuleOp module, const std::vector<RolledPipeline> &pipelines) {
  module->removeAttr(kRolledPipelines);
  Builder b(module.getContext());
  SmallVector<Attribute> list;
  for (const RolledPipeline &each : pipelines)
    list.push_back(
        b.getDictionaryAttr({b.getNamedAttr("iterations", b.getI64IntegerAttr(each.iterations)),
                             b.getNamedAttr("loc", b.getStringAttr(each.loc)),
                             b.getNamedAttr("stages", b.getI64IntegerAttr(each.stages))}));
  if (!list.empty())
    module->setAttr(kRolledPipelines, b.getArrayAttr(list));
}

std::vector<RolledPipeline> pipeline::getRolledPipelines(ModuleOp module) {
  std::vector<RolledPipeline> result;
  auto list = module->getAttrOfType<ArrayAttr>(kRolledPipelines);
  if (!list)
    return result;
  for (Attribute each : list)
    if (auto entry = dyn_cast<DictionaryAttr>(each)) {
      auto loc = entry.getAs<StringAttr>("loc");
      auto stages = entry.getAs<IntegerAttr>("stages"),
           iterations = entry.getAs<IntegerAttr>("iterations");
      if (loc && stages && iterations && iterations.getInt() > 0)
        result.push_back({loc.str(), stages.getInt(), iterations.getInt()});
    }
  return result;
}
