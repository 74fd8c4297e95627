//===- ConnectedDims.cpp - Dimensions that a cut reaches ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConnectedDims.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

std::optional<ConnectedDims> ConnectedDims::of(func::FuncOp function, const MeshTable &meshes,
                                               bool throughParts) {
  ScopedDiagnosticHandler silence(function.getContext(), [](Diagnostic &) { return success(); });
  FailureOr<std::unique_ptr<PropagationGraph>> graph = PropagationGraph::build(function, meshes);
  if (failed(graph))
    return std::nullopt;
  return ConnectedDims(std::move(*graph), throughParts);
}

ConnectedDims::ConnectedDims(std::unique_ptr<PropagationGraph> owned, bool throughParts)
    : graph(std::move(owned)) {
  unsigned count = 0;
  for (const TensorState &tensor : graph->tensors) {
    first.push_back(count);
    count += static_cast<unsigned>(tensor.type.getRank());
  }
  classes.grow(count);
  for (const RuleNode &node : graph->nodes)
    connect(node, throughParts);
  classes.compress();
  axes.resize(classes.getNumClasses());
  for (auto [tensor, state] : llvm::enumerate(graph->tensors))
    for (auto [d, given] : llvm::enumerate(state.given.dims)) {
      sharding::AxisList &most = axes[classes[first[tensor] + static_cast<unsigned>(d)]];
      if (sharding::sizeOf(given) > sharding::sizeOf(most))
        most = given;
    }
}

sharding::AxisList ConnectedDims::axesOf(std::pair<Value, int64_t> dim) const {
  int64_t tensor = graph->tensorOf(dim.first);
  return tensor < 0 ? sharding::AxisList()
                    : axes[classes[first[tensor] + static_cast<unsigned>(dim.second)]];
}

void ConnectedDims::connect(const RuleNode &node, bool throughParts) {
  SmallVector<int64_t> known(node.rule.factors.size(), -1); // a dimension by factor
  auto visit = [&](const sharding::TensorRule &rule, int64_t tensor) {
    if (tensor < 0)
      return;
    for (auto [d, dim] : llvm::enumerate(rule)) {
      auto major =
          llvm::find_if(dim.factors, [&](int64_t f) { return node.rule.factors[f].size != 1; });
      if (major == dim.factors.end() ||
          node.rule.factors[*major].kind == sharding::FactorKind::replicate ||
          (!throughParts && (dim.segment || dim.isWindow)))
        continue;
      unsigned position = first[tensor] + static_cast<unsigned>(d);
      if (known[*major] < 0)
        known[*major] = position;
      else
        classes.join(static_cast<unsigned>(known[*major]), position);
    }
  };
  for (auto [index, rule] : llvm::enumerate(node.rule.operands))
    visit(rule, node.tensors[index]);
  for (auto [index, rule] : llvm::enumerate(node.rule.results))
    visit(rule, node.tensors[node.rule.operands.size() + index]);
}
