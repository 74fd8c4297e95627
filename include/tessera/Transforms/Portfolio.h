//===- Portfolio.h - Standard plans beside the search's ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Standard hand-written plans, as annotations of a program's arguments that
// propagation completes. They are derived from the computation and from
// `dist.feeds`, never from names.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PORTFOLIO_H
#define TESSERA_TRANSFORMS_PORTFOLIO_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Sharding/Topology.h"

#include <optional>

namespace tessera::dist {

/// What a portfolio of plans is made for.
struct PortfolioOptions {
  sharding::Topology topology;
  int64_t devices = 0; ///< for a module without a mesh
  /// The grid that the search chose, if any: propagation's plan is tried there.
  std::vector<int64_t> searchedShape;
};

/// Annotations of the arguments of a module's function.
struct BaselinePlan {
  std::string name; ///< "data parallel over d0", "ZeRO-3 over d0", "propagation", …
  std::optional<sharding::Mesh> mesh;  ///< to declare; nothing if the module declares its meshes
  std::vector<ShardingAttr> arguments; ///< one per argument; null: as annotated
};

/// The standard plans for a normalized module, the most promising first. All keep the program's
/// annotations. A module with several functions or meshes has only propagation's plan. Emits only
/// remarks.
std::vector<BaselinePlan> baselinePlans(mlir::ModuleOp module, const PortfolioOptions &options);

/// Declares the plan's mesh and writes its annotations on the module's function.
void writePlan(mlir::ModuleOp module, const BaselinePlan &plan);

/// Modelled computation time of a module in phase `propagated`: an approximate lower bound for the
/// compiled program.
double computeSecondsOf(mlir::ModuleOp propagated, const sharding::Topology &topology);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_PORTFOLIO_H
