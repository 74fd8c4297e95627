//===- WindowReshards.cpp - Reshards to windows of a value ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WindowReshards.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/Collective.h"
#include "tessera/Sharding/Selections.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

TensorSharding WindowReshards::shardingOf(Value value) const {
  return sharding::canonical(resolveVerified(getSharding(value), meshes, value.getType()));
}

ReshardOp WindowReshards::reshard(Operation *before, Location loc, Value value,
                                  FlatSymbolRefAttr mesh, const TensorSharding &target,
                                  Attribute fill, DictionaryAttr attributes) const {
  OpBuilder builder(before);
  auto sharding = ShardingAttr::get(mesh, meshes.get(mesh), target, builder.getContext());
  auto op = ReshardOp::create(builder, loc, value.getType(), value, sharding);
  op->setDiscardableAttrs(attributes);
  if (fill)
    op.setFillAttr(cast<TypedAttr>(fill));
  setSharding(op.getResult(), sharding);
  return op;
}

Value WindowReshards::sourceOf(Value value, FlatSymbolRefAttr mesh) {
  if (auto reshard = value.getDefiningOp<ReshardOp>())
    value = reshard.getOperand(); // the reshard is for another reader
  ShardingAttr sharding = getSharding(value);
  return sharding && sharding.getMesh() == mesh ? value : Value();
}

std::optional<sharding::OpSharding>
WindowReshards::opShardingFor(Operation *op, const sharding::Mesh &mesh,
                              const sharding::ShardingRule &rule, const TensorSharding &target) {
  sharding::OpSharding result{sharding::project(rule, rule.results[0], target), {}};
  for (sharding::Window window : target.windows) {
    ArrayRef<int64_t> factors = rule.results[0][window.dim].factors;
    if (factors.size() != 1)
      return std::nullopt;
    window.dim = factors.front();
    result.windows.push_back(window);
  }
  llvm::sort(result.windows);
  if (!sharding::findContradiction(mesh, rule, result).empty() ||
      sharding::resultSharding(rule, 0, result) != target)
    return std::nullopt;
  return result;
}

int64_t WindowReshards::exchangedBytes(Value value, const TensorSharding &target,
                                       const sharding::Mesh &mesh) const {
  auto type = cast<RankedTensorType>(value.getType());
  sharding::Layout wants = sharding::makeLayout(target, shapeOf(type));
  sharding::Layout has =
      sharding::selectLike(sharding::makeLayout(shardingOf(value), shapeOf(type)), wants);
  return sharding::trafficOf(sharding::CollectiveKind::exchange, mesh.numDevices(),
                             bytesPerElement(type.getElementType()), mesh, has, mesh, wants)
      .wireBytes;
}
