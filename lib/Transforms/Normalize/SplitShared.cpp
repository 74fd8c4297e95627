//===- SplitShared.cpp - One copy per mesh of shared values ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitShared.h"

#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Planning/MeshClasses.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isLooseArgument(func::FuncOp function, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &function.getBody().front() && !getSharding(value);
}

/// The mesh on which a use needs its value; null if undetermined.
static FlatSymbolRefAttr meshOfUse(func::FuncOp function, OpOperand &use, MeshClasses &classes) {
  Operation *owner = use.getOwner();
  if (isa<func::ReturnOp>(owner)) {
    auto sharding =
        function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(), DistDialect::kSharding);
    return sharding ? sharding.getMesh() : FlatSymbolRefAttr();
  }
  if (isa<ReshardOp>(owner))
    return {};
  if (owner->getParentOp() != function && isa<linalg::LinalgOp>(owner->getParentOp()))
    owner = owner->getParentOp();
  SmallVector<Value> tied;
  collectTied(owner, tied);
  for (Value value : tied)
    if (value != use.get())
      if (FlatSymbolRefAttr mesh = classes.meshOf(value))
        return mesh;
  return {};
}

/// Ops of the function's body that depend only on unannotated arguments and constants, in order: a
/// step count, a learning rate derived from it. They may run on every mesh that uses them.
static SetVector<Operation *> findLoose(func::FuncOp function) {
  SetVector<Operation *> loose;
  auto isLoose = [&](Value value) {
    return isLooseArgument(function, value) ||
           (value.getDefiningOp() && loose.contains(value.getDefiningOp()));
  };
  for (Operation &op : function.getBody().front()) {
    bool computes = isa<linalg::LinalgOp>(op) ||
                    (op.getNumRegions() == 0 && !isa<ShardTensorOp, ReshardOp>(op) &&
                     !op.hasTrait<OpTrait::IsTerminator>());
    if (!computes || !isMemoryEffectFree(&op) || llvm::any_of(op.getResults(), [](Value result) {
          return getSharding(result) != ShardingAttr();
        }))
      continue;
    SetVector<Value> read(op.operand_begin(), op.operand_end());
    getUsedValuesDefinedAbove(op.getRegions(), read);
    if (llvm::all_of(read, isLoose))
      loose.insert(&op);
  }
  return loose;
}

/// Computes a loose value once per mesh if several meshes need it.
static void splitLooseValues(func::FuncOp function, const MeshTable &meshes) {
  SetVector<Operation *> loose = findLoose(function);
  MeshClasses classes;
  if (loose.empty() || failed(classify(function, classes, [&](Value value) {
        return isLooseArgument(function, value) ||
               (value.getDefiningOp() && loose.contains(value.getDefiningOp()));
      })))
    return;
  // The meshes that need an op, from its transitive users.
  llvm::DenseMap<Operation *, SmallVector<StringAttr>> needs; // looked up, never iterated
  auto add = [&](Operation *op, StringAttr mesh) {
    if (!llvm::is_contained(needs[op], mesh))
      needs[op].push_back(mesh);
  };
  SmallVector<std::pair<OpOperand *, StringAttr>> uses;
  for (Operation *op : llvm::reverse(loose)) {
    for (OpOperand &use : op->getUses()) {
      Operation *user = function.getBody().front().findAncestorOpInBlock(*use.getOwner());
      if (loose.contains(user)) {
        for (StringAttr mesh : SmallVector<StringAttr>(needs[user]))
          add(op, mesh);
      } else if (FlatSymbolRefAttr mesh = meshOfUse(function, use, classes)) {
        add(op, mesh.getAttr());
        uses.push_back({&use, mesh.getAttr()});
      }
    }
    llvm::sort(needs[op], [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  }
  if (llvm::none_of(loose, [&](Operation *op) { return needs[op].size() > 1; }))
    return;
  // The first mesh keeps the op itself.
  std::map<std::pair<Operation *, StringRef>, Operation *> made;
  for (Operation *op : loose)
    for (StringAttr mesh : llvm::reverse(needs[op])) {
      IRMapping copies;
      SetVector<Value> read(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), read);
      for (Value value : read)
        if (Operation *source = value.getDefiningOp())
          if (Operation *copy = made[{source, mesh.getValue()}]; copy && copy != source)
            copies.map(value, copy->getResult(cast<OpResult>(value).getResultNumber()));
      if (mesh == needs[op].front()) {
        made[{op, mesh.getValue()}] = op;
        op->walk([&](Operation *inner) {
          for (OpOperand &operand : inner->getOpOperands())
            operand.set(copies.lookupOrDefault(operand.get()));
        });
      } else {
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        made[{op, mesh.getValue()}] = builder.clone(*op, copies);
      }
    }
  for (auto [use, mesh] : uses)
    if (Operation *copy = made[{use->get().getDefiningOp(), mesh.getValue()}])
      use->set(copy->getResult(cast<OpResult>(use->get()).getResultNumber()));
}

void dist::splitSharedArguments(func::FuncOp function, const MeshTable &meshes) {
  if (meshes.size() < 2)
    return;
  splitLooseValues(function, meshes);
  MeshClasses classes;
  // Errors are reported by MeshAssignment::compute, with the arguments in place.
  ScopedDiagnosticHandler silence(function.getContext(), [](Diagnostic &) { return success(); });
  auto isLoose = [&](Value value) { return isLooseArgument(function, value); };
  if (failed(classify(function, classes, isLoose)))
    return;
  // A fed argument is on one mesh: other meshes fetch it in each step.
  std::set<int64_t> fed;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds))
      fed.insert(feeds.getInt());
  unsigned original = function.getNumArguments();
  SignatureAttrs signature(function);
  struct Copy {
    unsigned argument;
    DictionaryAttr attributes;
    SmallVector<OpOperand *> uses;
  };
  SmallVector<Copy> copies;
  for (unsigned index = 0; index < original; ++index) {
    BlockArgument argument = function.getArgument(index);
    if (!isa<RankedTensorType>(argument.getType()) || getSharding(argument))
      continue;
    llvm::MapVector<StringAttr, SmallVector<OpOperand *>> byMesh;
    for (OpOperand &use : argument.getUses())
      if (FlatSymbolRefAttr mesh = meshOfUse(function, use, classes))
        byMesh[mesh.getAttr()].push_back(&use);
    if (byMesh.size() < 2)
      continue;
    // In the order of declaration: the order of uses is not that of the program.
    bool first = true;
    for (auto &[name, mesh] : meshes) {
      auto it = byMesh.find(name);
      if (it == byMesh.end())
        continue;
      ShardingAttr whole =
          ShardingAttr::get(FlatSymbolRefAttr::get(name), mesh,
                            sharding::TensorSharding::replicated(
                                cast<RankedTensorType>(argument.getType()).getRank()),
                            function.getContext());
      if (std::exchange(first, false)) {
        signature.ofArgument(index).set(DistDialect::kSharding, whole);
      } else if (fed.count(index)) {
        OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
        Value copy =
            ReshardOp::create(builder, argument.getLoc(), argument.getType(), argument, whole);
        for (OpOperand *use : it->second)
          use->set(copy);
      } else {
        NamedAttrList attributes;
        attributes.set(DistDialect::kArgument,
                       IntegerAttr::get(IntegerType::get(function.getContext(), 64), index));
        attributes.set(DistDialect::kSharding, whole);
        if (Attribute range = function.getArgAttr(index, DistDialect::kRange))
          attributes.set(DistDialect::kRange, range);
        copies.push_back({index, attributes.getDictionary(function.getContext()), it->second});
      }
    }
  }
  signature.write();
  // All at once: each insertion rebuilds the lists of types and attributes.
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  for (Copy &copy : copies) {
    types.push_back(function.getArgumentTypes()[copy.argument]);
    attributes.push_back(copy.attributes);
    locations.push_back(function.getArgument(copy.argument).getLoc());
  }
  if (failed(function.insertArguments(SmallVector<unsigned>(copies.size(), original), types,
                                      attributes, locations)))
    return;
  for (auto [index, copy] : llvm::enumerate(copies))
    for (OpOperand *use : copy.uses)
      use->set(function.getArgument(original + index));
}
