//===- PartitionControlFlow.cpp - Loops and branches, part by part ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over tensors of two meshes becomes a loop in each of their functions. All are opened, then
// the body is lowered once, each op going where it belongs, then all are closed.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

SmallVector<unsigned> Partitioner::keptBy(Part &part, ValueRange values) {
  SmallVector<unsigned> result;
  for (auto [index, value] : llvm::enumerate(values))
    if (has(part, value))
      result.push_back(index);
  return result;
}

FailureOr<SmallVector<Part *>> Partitioner::activeParts(Operation *op, ValueRange steering) {
  SmallVector<Part *> withTensors = partsOf(op), result;
  auto outer = executed.find(op->getParentOp());
  auto comesTo = [&](Part &part) {
    return outer == executed.end() || llvm::is_contained(outer->second, &part);
  };
  for (auto &part : parts) {
    auto isOurScalar = [&](Value value) {
      return !isa<RankedTensorType>(value.getType()) && has(*part, value);
    };
    bool steered = llvm::all_of(steering, [&](Value value) { return has(*part, value); });
    if (llvm::is_contained(withTensors, part.get())) {
      if (!steered)
        return op->emitError()
               << "'" << op->getName() << "' on mesh '" << part->mesh.getValue()
               << "' is steered by a scalar that another mesh computes; reshard the "
               << "tensor that it comes from";
      result.push_back(part.get());
    } else if (steered && comesTo(*part) && llvm::any_of(op->getResults(), isOurScalar)) {
      result.push_back(part.get());
    }
  }
  executed[op] = result;
  return result;
}

/// What a part makes of a loop or branch.
namespace {
template <typename Op> struct Open {
  Part *part;
  Op op;
  SmallVector<unsigned> kept;   ///< positions of the results that the part has
  SmallVector<unsigned> before; ///< of a while: positions of the values that enter its condition
};
} // namespace

static SmallVector<Value> lookup(Part &part, ValueRange values, ArrayRef<unsigned> kept) {
  return llvm::map_to_vector(kept,
                             [&](unsigned index) { return part.mapping.lookup(values[index]); });
}

static void mapKept(Part &part, ValueRange originals, ArrayRef<unsigned> kept, ValueRange locals) {
  for (auto [index, local] : llvm::zip_equal(kept, locals))
    part.mapping.map(originals[index], local);
}

/// The global types and shardings of a control flow op's results, written on its local op.
static void annotateResults(Operation *from, ArrayRef<unsigned> kept, Operation *to) {
  for (auto [local, original] : llvm::enumerate(kept))
    if (auto type = dyn_cast<RankedTensorType>(from->getResult(original).getType())) {
      setSharding(to->getResult(local), getSharding(from->getResult(original)));
      setGlobalType(to->getResult(local), type);
    }
}

LogicalResult Partitioner::lowerFor(scf::ForOp op) {
  SmallVector<Value> bounds{op.getLowerBound(), op.getUpperBound(), op.getStep()};
  FailureOr<SmallVector<Part *>> active = activeParts(op, bounds);
  if (failed(active))
    return failure();
  SmallVector<Open<scf::ForOp>> opened;
  for (Part *part : *active) {
    SmallVector<unsigned> kept = keptBy(*part, op.getResults());
    auto loop = scf::ForOp::create(part->builder, op.getLoc(), part->mapping.lookup(bounds[0]),
                                   part->mapping.lookup(bounds[1]), part->mapping.lookup(bounds[2]),
                                   lookup(*part, op.getInitArgs(), kept));
    part->mapping.map(op.getInductionVar(), loop.getInductionVar());
    mapKept(*part, op.getRegionIterArgs(), kept, loop.getRegionIterArgs());
    annotateResults(op, kept, loop);
    if (kept.empty()) // the builder has put a yield there already
      loop.getBody()->getTerminator()->erase();
    part->builder.setInsertionPointToEnd(loop.getBody());
    opened.push_back({part, loop, kept, {}});
  }
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  for (auto &[part, loop, kept, before] : opened) {
    scf::YieldOp::create(part->builder, op.getLoc(), lookup(*part, op.getYieldedValues(), kept));
    part->builder.setInsertionPointAfter(loop);
    mapKept(*part, op.getResults(), kept, loop.getResults());
  }
  return success();
}

LogicalResult Partitioner::lowerWhile(scf::WhileOp op) {
  FailureOr<SmallVector<Part *>> active = activeParts(op, op.getConditionOp().getCondition());
  if (failed(active))
    return failure();
  auto typesOf = [&](ValueRange values, ArrayRef<unsigned> kept) {
    return llvm::map_to_vector(kept, [&](unsigned index) -> Type {
      Value value = values[index];
      return isa<RankedTensorType>(value.getType()) ? Type(localTypeOf(value)) : value.getType();
    });
  };
  auto openBlock = [&](Part &part, Region &region, ValueRange originals, ArrayRef<unsigned> kept) {
    SmallVector<Type> types = typesOf(originals, kept);
    Block *block = part.builder.createBlock(&region, region.end(), types,
                                            SmallVector<Location>(types.size(), op.getLoc()));
    mapKept(part, originals, kept, block->getArguments());
  };
  SmallVector<Open<scf::WhileOp>> opened;
  for (Part *part : *active) {
    SmallVector<unsigned> kept = keptBy(*part, op.getResults());
    SmallVector<unsigned> before = keptBy(*part, op.getBeforeArguments());
    auto loop = scf::WhileOp::create(part->builder, op.getLoc(), typesOf(op.getResults(), kept),
                                     lookup(*part, op.getInits(), before));
    openBlock(*part, loop.getBefore(), op.getBeforeArguments(), before);
    if (auto shardings = op->getAttrOfType<ArrayAttr>(DistDialect::kBeforeShardings))
      loop->setAttr(DistDialect::kBeforeShardings,
                    part->builder.getArrayAttr(llvm::map_to_vector(
                        before, [&](unsigned index) { return shardings[index]; })));
    opened.push_back({part, loop, kept, before});
  }
  if (failed(lowerBlock(*op.getBeforeBody())))
    return failure();
  auto condition = op.getConditionOp();
  for (auto &[part, loop, kept, before] : opened) {
    scf::ConditionOp::create(part->builder, op.getLoc(),
                             part->mapping.lookup(condition.getCondition()),
                             lookup(*part, condition.getArgs(), kept));
    openBlock(*part, loop.getAfter(), op.getAfterArguments(), kept);
  }
  if (failed(lowerBlock(*op.getAfterBody())))
    return failure();
  for (auto &[part, loop, kept, before] : opened) {
    scf::YieldOp::create(part->builder, op.getLoc(),
                         lookup(*part, op.getYieldOp()->getOperands(), before));
    part->builder.setInsertionPointAfter(loop);
    mapKept(*part, op.getResults(), kept, loop.getResults());
    annotateResults(op, kept, loop);
  }
  return success();
}

LogicalResult Partitioner::lowerIf(scf::IfOp op) {
  FailureOr<SmallVector<Part *>> active = activeParts(op, op.getCondition());
  if (failed(active))
    return failure();
  SmallVector<Open<scf::IfOp>> opened;
  for (Part *part : *active) {
    SmallVector<unsigned> kept = keptBy(*part, op.getResults());
    SmallVector<Type> types = llvm::map_to_vector(kept, [&](unsigned index) -> Type {
      Value result = op.getResult(index);
      return isa<RankedTensorType>(result.getType()) ? Type(localTypeOf(result)) : result.getType();
    });
    auto branch = scf::IfOp::create(part->builder, op.getLoc(), types,
                                    part->mapping.lookup(op.getCondition()),
                                    /*withElseRegion=*/!op.getElseRegion().empty());
    annotateResults(op, kept, branch);
    opened.push_back({part, branch, kept, {}});
  }
  for (bool isThen : {true, false}) {
    Region &from = isThen ? op.getThenRegion() : op.getElseRegion();
    if (from.empty())
      continue;
    for (auto &[part, branch, kept, before] : opened) {
      Block &block = isThen ? *branch.thenBlock() : *branch.elseBlock();
      if (!block.empty())
        block.getTerminator()->erase();
      part->builder.setInsertionPointToEnd(&block);
    }
    if (failed(lowerBlock(from.front())))
      return failure();
    for (auto &[part, branch, kept, before] : opened)
      scf::YieldOp::create(part->builder, op.getLoc(),
                           lookup(*part, from.front().getTerminator()->getOperands(), kept));
  }
  for (auto &[part, branch, kept, before] : opened) {
    part->builder.setInsertionPointAfter(branch);
    mapKept(*part, op.getResults(), kept, branch.getResults());
  }
  return success();
}
