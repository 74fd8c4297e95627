//===- Coverage.cpp - Coverage of a set of programs -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Coverage.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

Coverage &Coverage::operator+=(const Coverage &other) {
  programs += other.programs;
  withCollectives += other.withCollectives;
  withUneven += other.withUneven;
  withEmpty += other.withEmpty;
  weak += other.weak;
  directions += other.directions;
  kinks += other.kinks;
  for (const auto &[kind, count] : other.collectives)
    collectives[kind] += count;
  for (const auto &[kind, count] : other.placements)
    placements[kind] += count;
  return *this;
}

/// Counts the sharding of one value; sets `uneven` and `empty` if it has such parts.
static void count(Coverage &coverage, StringRef what, dist::ShardingAttr attr, Type type,
                  const dist::MeshTable &meshes, bool &uneven, bool &empty) {
  const sharding::Mesh &mesh = meshes.get(attr.getMesh());
  sharding::TensorSharding sharding = dist::resolveVerified(attr, meshes, type);
  auto add = [&](const char *placement) { ++coverage.placements[(what + " " + placement).str()]; };
  bool cut = llvm::any_of(sharding.dims, [](const auto &axes) { return sizeOf(axes) > 1; });
  bool partial =
      llvm::any_of(sharding.partial, [](const auto &part) { return part.axis.size > 1; });
  if (cut)
    add("shard");
  if (partial)
    add("partial");
  if (!cut && !partial)
    add("replicate");
  std::vector<int64_t> shape = dist::shapeOf(type);
  for (auto [extent, axes] : llvm::zip_equal(shape, sharding.dims))
    if (extent % sizeOf(axes) != 0) {
      add("uneven");
      uneven = true;
      break;
    }
  sharding::Layout layout = sharding::makeLayout(sharding, shape);
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    if (layout.valid(mesh, mesh.coordinate(position)).empty()) {
      add("empty");
      empty = true;
      break;
    }
}

void fuzz::countShardings(Coverage &coverage, ModuleOp module) {
  dist::MeshTable meshes(module);
  bool uneven = false, empty = false;
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (dist::ShardingAttr attr = dist::getSharding(argument))
        count(coverage, "argument", attr, argument.getType(), meshes, uneven, empty);
  module.walk([&](Operation *op) {
    auto list = op->getAttrOfType<ArrayAttr>(dist::DistDialect::kShardings);
    if (!list)
      return;
    for (auto [result, element] : llvm::zip(op->getResults(), list))
      if (auto attr = dyn_cast<dist::ShardingAttr>(element))
        count(coverage, op->getName().getStringRef(), attr, result.getType(), meshes, uneven,
              empty);
  });
  coverage.withUneven += uneven;
  coverage.withEmpty += empty;
}

void fuzz::countCollectives(Coverage &coverage, ModuleOp module) {
  bool any = false;
  module.walk([&](Operation *op) {
    if (!isa<dist::CollectiveOpInterface, dist::SendOp>(op))
      return;
    ++coverage.collectives[op->getName().stripDialect().str()];
    any |= !isa<dist::SliceOp, dist::MakePartialOp>(op);
  });
  coverage.withCollectives += any;
}
