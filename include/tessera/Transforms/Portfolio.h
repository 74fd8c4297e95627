//===- Portfolio.h - Plain plans to compile beside the search's -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plans that people write first, as annotations of a program's arguments that
// propagation completes. They are derived from what the program computes and from
// `dist.feeds`, never from names.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PORTFOLIO_H
#define TESSERA_TRANSFORMS_PORTFOLIO_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Sharding/Topology.h"

#include <optional>

namespace tessera::dist {

struct PortfolioOptions {
  sharding::Topology topology;
  int64_t devices = 0; ///< for a module without a mesh
  /// The grid that the search chose, where it chose one: what propagation alone says is tried
  /// there.
  std::vector<int64_t> searchedShape;
};

/// Annotations of the arguments of a module's function.
struct PlainPlan {
  std::string name; ///< "data parallel over d0", "ZeRO-3 over d0", "propagation", …
  std::optional<sharding::Mesh> mesh;  ///< to declare; nothing where the module declares its meshes
  std::vector<ShardingAttr> arguments; ///< one an argument; null: as the program says
};

/// The plain plans for a normalized module, those first that are worth most. What the program says
/// of an argument holds in each. Of a module with several functions or meshes there is only
/// propagation's. Emits only remarks.
std::vector<PlainPlan> plainPlans(mlir::ModuleOp module, const PortfolioOptions &options);

/// Declares the plan's mesh and writes its annotations on the module's function.
void writePlan(mlir::ModuleOp module, const PlainPlan &plan);

/// Modelled seconds of computing of a module in phase `propagated`: about what the compiled program
/// takes at least.
double computeSecondsOf(mlir::ModuleOp propagated, const sharding::Topology &topology);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_PORTFOLIO_H
