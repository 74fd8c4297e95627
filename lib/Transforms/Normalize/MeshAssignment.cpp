//===- MeshAssignment.cpp - Which mesh a value lies on ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeshAssignment.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// Union-find over values; a class knows the mesh that an annotation gave it and where.
class Classes {
public:
  unsigned of(Value value) {
    auto [it, inserted] = index.try_emplace(value, parent.size());
    if (inserted) {
      parent.push_back(parent.size());
      mesh.emplace_back();
    }
    return find(it->second);
  }

  LogicalResult unite(Operation *at, Value a, Value b) {
    unsigned x = of(a), y = of(b);
    if (x == y)
      return success();
    if (mesh[x] && mesh[y] && mesh[x] != mesh[y])
      return at->emitError() << "'" << at->getName() << "' has operands on mesh '"
                             << mesh[x].getValue() << "' and on mesh '" << mesh[y].getValue()
                             << "'; move one with dist.reshard";
    parent[std::max(x, y)] = std::min(x, y);
    if (!mesh[std::min(x, y)])
      mesh[std::min(x, y)] = mesh[std::max(x, y)];
    return success();
  }

  LogicalResult pin(Operation *at, Value value, FlatSymbolRefAttr name) {
    unsigned x = of(value);
    if (mesh[x] && mesh[x] != name)
      return at->emitError() << "'" << at->getName() << "' puts a value of mesh '"
                             << mesh[x].getValue() << "' on mesh '" << name.getValue()
                             << "'; move it with dist.reshard";
    mesh[x] = name;
    return success();
  }

  FlatSymbolRefAttr meshOf(Value value) { return mesh[of(value)]; }

private:
  unsigned find(unsigned x) {
    while (parent[x] != x)
      x = parent[x] = parent[parent[x]];
    return x;
  }
  llvm::DenseMap<Value, unsigned> index;
  std::vector<unsigned> parent;
  std::vector<FlatSymbolRefAttr> mesh;
};

bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

/// All tensors that an op ties to one mesh: operands, results, what its regions read and yield.
void collectTied(Operation *op, SmallVectorImpl<Value> &tied) {
  auto add = [&](ValueRange values) {
    for (Value value : values)
      if (isTensor(value))
        tied.push_back(value);
  };
  add(op->getOperands());
  add(op->getResults());
  if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op)) {
    // Values that only pass through a loop's body need not lie where its carries do.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
    return;
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  add(captured.getArrayRef());
}

/// Loops tie carry by carry: two carries may lie on two meshes.
LogicalResult tieLoop(Operation *op, Classes &classes) {
  auto tie = [&](Value a, Value b) -> LogicalResult {
    return isTensor(a) ? classes.unite(op, a, b) : success();
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, argument, yielded, result] :
         llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                   loop.getResults()))
      if (failed(tie(init, argument)) || failed(tie(argument, yielded)) ||
          failed(tie(yielded, result)))
        return failure();
    return success();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [init, argument, yielded] :
         llvm::zip(loop.getInits(), loop.getBeforeArguments(), loop.getYieldOp()->getOperands()))
      if (failed(tie(init, argument)) || failed(tie(argument, yielded)))
        return failure();
    for (auto [passed, argument, result] :
         llvm::zip(loop.getConditionOp().getArgs(), loop.getAfterArguments(), loop.getResults()))
      if (failed(tie(passed, argument)) || failed(tie(argument, result)))
        return failure();
    return success();
  }
  auto branch = cast<scf::IfOp>(op);
  for (auto [index, result] : llvm::enumerate(branch.getResults()))
    if (failed(tie(result, branch.thenYield()->getOperand(index))) ||
        failed(tie(result, branch.elseYield()->getOperand(index))))
      return failure();
  return success();
}

LogicalResult classify(func::FuncOp function, Classes &classes, bool argumentsApart) {
  auto isLoose = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argumentsApart && argument && argument.getOwner() == &function.getBody().front() &&
           !getSharding(value);
  };
  for (BlockArgument argument : function.getArguments())
    if (ShardingAttr sharding = getSharding(argument))
      if (failed(classes.pin(function, argument, sharding.getMesh())))
        return failure();
  WalkResult walk = function.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (op == function || isa<scf::YieldOp, scf::ConditionOp>(op))
      return WalkResult::advance();
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      for (auto [index, value] : llvm::enumerate(ret.getOperands()))
        if (auto sharding =
                function.getResultAttrOfType<ShardingAttr>(index, DistDialect::kSharding))
          if (!isLoose(value) && failed(classes.pin(op, value, sharding.getMesh())))
            return WalkResult::interrupt();
      return WalkResult::advance();
    }
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return failed(classes.pin(op, reshard.getResult(), reshard.getSharding().getMesh()))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    if (auto constraint = dyn_cast<ShardTensorOp>(op))
      if (failed(classes.pin(op, constraint.getResult(), constraint.getSharding().getMesh())))
        return WalkResult::interrupt();
    for (Value result : op->getResults())
      if (ShardingAttr sharding = isTensor(result) ? getSharding(result) : ShardingAttr())
        if (failed(classes.pin(op, result, sharding.getMesh())))
          return WalkResult::interrupt();
    if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op))
      return failed(tieLoop(op, classes)) ? WalkResult::interrupt() : WalkResult::advance();
    // Scalars computed inside a linalg body belong to that op.
    if (isa<linalg::LinalgOp>(op->getParentOp()))
      return WalkResult::advance();
    SmallVector<Value> tied;
    collectTied(op, tied);
    llvm::erase_if(tied, isLoose);
    for (Value value : llvm::drop_begin(tied, tied.empty() ? 0 : 1))
      if (failed(classes.unite(op, tied.front(), value)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

} // namespace

FailureOr<MeshAssignment> MeshAssignment::compute(func::FuncOp function, const MeshTable &meshes) {
  MeshAssignment result;
  Classes classes;
  if (failed(classify(function, classes, /*argumentsApart=*/false)))
    return failure();
  FlatSymbolRefAttr fallback =
      meshes.empty() ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(meshes.begin()->first);
  auto assign = [&](Value value) {
    if (!isTensor(value))
      return;
    FlatSymbolRefAttr mesh = classes.meshOf(value);
    result.assigned[value] = mesh ? mesh : fallback;
  };
  for (BlockArgument argument : function.getArguments())
    assign(argument);
  function.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), assign);
    if (!isa<linalg::LinalgOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), assign);
  });
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    result.results.push_back(isTensor(value) ? result.assigned[value] : FlatSymbolRefAttr());
  return result;
}

FlatSymbolRefAttr MeshAssignment::lookup(Value value) const {
  return assigned.lookup(value);
}

void dist::splitSharedArguments(func::FuncOp function, const MeshTable &meshes) {
  if (meshes.size() < 2)
    return;
  Classes classes;
  // Errors are reported by MeshAssignment::compute, with the arguments in place.
  ScopedDiagnosticHandler silence(function.getContext(), [](Diagnostic &) { return success(); });
  if (failed(classify(function, classes, /*argumentsApart=*/true)))
    return;
  auto meshOfUse = [&](OpOperand &use) -> FlatSymbolRefAttr {
    Operation *owner = use.getOwner();
    SmallVector<Value> tied;
    if (auto ret = dyn_cast<func::ReturnOp>(owner)) {
      auto sharding = function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(),
                                                                 DistDialect::kSharding);
      return sharding ? sharding.getMesh() : FlatSymbolRefAttr();
    }
    if (isa<ReshardOp>(owner))
      return {};
    if (owner->getParentOp() != function && isa<linalg::LinalgOp>(owner->getParentOp()))
      owner = owner->getParentOp();
    collectTied(owner, tied);
    for (Value value : tied)
      if (value != use.get())
        if (FlatSymbolRefAttr mesh = classes.meshOf(value))
          return mesh;
    return {};
  };
  // What a step feeds has one home: on other meshes it is fetched in each step.
  llvm::SmallDenseSet<int64_t> fed;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds))
      fed.insert(feeds.getInt());
  unsigned original = function.getNumArguments();
  for (unsigned index = 0; index < original; ++index) {
    BlockArgument argument = function.getArgument(index);
    if (!isTensor(argument) || getSharding(argument))
      continue;
    llvm::MapVector<StringAttr, SmallVector<OpOperand *>> byMesh;
    for (OpOperand &use : argument.getUses())
      if (FlatSymbolRefAttr mesh = meshOfUse(use))
        byMesh[mesh.getAttr()].push_back(&use);
    if (byMesh.size() < 2)
      continue;
    // In the order of declaration: the order of uses is not that of the program.
    bool first = true;
    for (auto &[name, mesh] : meshes) {
      auto it = byMesh.find(name);
      if (it == byMesh.end())
        continue;
      Value copy = argument;
      ShardingAttr whole =
          ShardingAttr::get(FlatSymbolRefAttr::get(name), mesh,
                            sharding::TensorSharding::replicated(
                                cast<RankedTensorType>(argument.getType()).getRank()),
                            function.getContext());
      if (std::exchange(first, false)) {
        setSharding(argument, whole);
      } else if (fed.contains(index)) {
        OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
        copy = ReshardOp::create(builder, argument.getLoc(), argument.getType(), argument, whole);
      } else {
        unsigned at = function.getNumArguments();
        NamedAttrList attributes;
        attributes.set(DistDialect::kArgument,
                       IntegerAttr::get(IntegerType::get(function.getContext(), 64), index));
        if (Attribute range = function.getArgAttr(index, DistDialect::kRange))
          attributes.set(DistDialect::kRange, range);
        (void)function.insertArgument(at, argument.getType(),
                                      attributes.getDictionary(function.getContext()),
                                      argument.getLoc());
        copy = function.getArgument(at);
        setSharding(copy, whole);
      }
      for (OpOperand *use : it->second)
        use->set(copy);
    }
  }
}
