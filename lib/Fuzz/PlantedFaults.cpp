//===- PlantedFaults.cpp - The list of faults, and the pass ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planting.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
using sharding::TensorSharding;

const std::vector<PlantedFault> &fuzz::plantedFaults() {
  static const std::vector<PlantedFault> faults = [] {
    std::vector<PlantedFault> list;
    addIndexFaults(list);
    addPartialFaults(list);
    addMoveFaults(list);
    return list;
  }();
  return faults;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

bool fuzz::editMoves(dist::CollectiveOpInterface op, llvm::function_ref<bool(PlantedMove &)> edit) {
  ArrayAttr sources = op.getSourcesAttr(), targets = op.getTargetsAttr();
  if (!sources || !targets)
    return false;
  MLIRContext *context = op->getContext();
  dist::MeshTable meshes(op->getParentOfType<ModuleOp>());
  const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
  SmallVector<Attribute> newSources(sources.getValue()), newTargets(targets.getValue());
  bool changed = false;
  for (size_t i = 0; i < newSources.size(); ++i) {
    auto source = cast<dist::ShardingAttr>(newSources[i]);
    auto target = cast<dist::ShardingAttr>(newTargets[i]);
    if (source.getMesh() != target.getMesh())
      continue;
    Type global = cast<TypeAttr>(op.getGlobalTypesAttr()[i]).getValue();
    PlantedMove move{mesh, dist::shapeOf(global), dist::resolveVerified(source, meshes, global),
                     dist::resolveVerified(target, meshes, global)};
    if (!edit(move))
      continue;
    newSources[i] = dist::ShardingAttr::get(source.getMesh(), mesh, move.source, context);
    newTargets[i] = dist::ShardingAttr::get(target.getMesh(), mesh, move.target, context);
    changed = true;
  }
  if (changed) {
    op->setAttr("sources", ArrayAttr::get(context, newSources));
    op->setAttr("targets", ArrayAttr::get(context, newTargets));
  }
  return changed;
}

bool fuzz::rotate(Value value, FlatSymbolRefAttr mesh, const sharding::Mesh &axesOf,
                  const sharding::AxisList &axes) {
  int64_t size = sharding::sizeOf(axes);
  if (size < 2)
    return false;
  SmallVector<int64_t> next;
  for (int64_t i = 0; i < size; ++i)
    next.push_back((i + 1) % size);
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  auto permute =
      dist::PermuteOp::create(b, value.getLoc(), TypeRange{value.getType()}, ValueRange{value},
                              mesh, dist::toIR(b.getContext(), axesOf, axes),
                              b.getDenseI64ArrayAttr(next), ArrayAttr(), ArrayAttr(), ArrayAttr());
  value.replaceAllUsesExcept(permute->getResult(0), permute);
  return true;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TestPlantFault : PassWrapper<TestPlantFault, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlantFault)

  TestPlantFault() = default;
  TestPlantFault(const TestPlantFault &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "test-plant-fault"; }
  StringRef getDescription() const override {
    return "Makes one mistake in the local view, to see whether checks find it";
  }

  void runOnOperation() override {
    for (const PlantedFault &fault : plantedFaults())
      if (fault.name == name) {
        (void)fault.plant(getOperation());
        return;
      }
    getOperation().emitError() << "unknown fault '" << name
                               << "'; tessera-fuzz --planted-faults=help lists them";
    signalPassFailure();
  }

  Option<std::string> name{*this, "fault", llvm::cl::desc("Which one")};
};

} // namespace

void fuzz::registerPlantFaultPass() {
  PassRegistration<TestPlantFault>();
}
