//===- Propagate.cpp - Assign a sharding to every value -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"
#include "tessera/Planning/Strategies.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Support/Location.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/ShardingActions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/BitVector.h"
#include <set>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTPROPAGATE
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// Propagates axes over the graph to a fixpoint. It terminates, since tensors only gain axes.
class Propagation {
public:
  Propagation(PropagationGraph &graph, MLIRContext *context)
      : graph(graph), context(context && context->hasActionHandler() ? context : nullptr) {}

  void run() {
    if (context)
      reportAnnotations();
    std::set<int64_t> rounds{0};
    for (const TensorState &state : graph.tensors)
      rounds.insert(state.priority);
    const llvm::BitVector all(graph.nodes.size(), true);
    const llvm::BitVector elementwise =
        selectNodes([](const RuleNode &node) { return node.rule.isElementwise(); });
    const llvm::BitVector broadcasting = selectNodes([](const RuleNode &node) {
      for (size_t i = 0; i < node.tensors.size(); ++i)
        if (node.tensors[i] >= 0 && isBroadcast(node, i))
          return true;
      return false;
    });
    for (int64_t round : rounds) {
      // Nodes with new priorities in this round; all other nodes are up to date.
      llvm::BitVector fresh =
          round == *rounds.begin() ? all : selectNodes([&](const RuleNode &node) {
            return llvm::any_of(node.tensors, [&](int64_t tensor) {
              return tensor >= 0 && graph.tensors[tensor].priority == round;
            });
          });
      // Ops that only move elements first: they never need communication.
      llvm::BitVector first = fresh, rest = fresh;
      first &= elementwise;
      rest.reset(elementwise);
      spread(round, /*broadcasts=*/false, elementwise, first);
      spread(round, /*broadcasts=*/false, all, round == *rounds.begin() ? rest : all);
      spread(round, /*broadcasts=*/true, all, broadcasting);
    }
  }

private:
  /// Axes start at the user's annotations.
  void reportAnnotations() {
    for (size_t index = 0; index < graph.tensors.size(); ++index) {
      const TensorState &state = graph.tensors[index];
      for (size_t d = 0; d < state.sharding->dims.size(); ++d)
        for (const AxisRef &axis : state.sharding->dims[d])
          report([]() {}, state, static_cast<int64_t>(index), static_cast<int64_t>(d), axis, -1);
    }
  }

  llvm::BitVector selectNodes(llvm::function_ref<bool(const RuleNode &)> holds) const {
    llvm::BitVector result(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      result[n] = holds(graph.nodes[n]);
    return result;
  }

  /// Visits the nodes of `work`, and the admitted nodes whose tensors changed, in program order.
  void spread(int64_t round, bool broadcasts, const llvm::BitVector &admitted,
              llvm::BitVector work) {
    for (int n = work.find_first(); n >= 0;) {
      work.reset(n);
      int next = work.find_next(n);
      for (int64_t tensor : visit(graph.nodes[n], round, broadcasts))
        for (int64_t other : graph.nodesOf[tensor])
          if (other != n && admitted[other]) {
            work.set(other);
            next = next < 0 ? static_cast<int>(other) : std::min(next, static_cast<int>(other));
          }
      n = next;
    }
  }

  /// Gives each tensor of the node the axes of the node's factors. Returns the changed tensors.
  llvm::SmallVector<int64_t, 4> visit(const RuleNode &node, int64_t round, bool broadcasts) {
    llvm::SmallVector<int64_t, 4> changed;
    auto isOpen = [&](int64_t tensor) {
      return tensor >= 0 && !graph.tensors[tensor].sharding->open.empty();
    };
    if (llvm::none_of(node.tensors, isOpen))
      return changed;
    // The result depends only on the rule, the shardings and the admitted tensors, so equal nodes
    // are computed once. Not when origins are reported, or if a node has a tensor twice.
    AddressKey key = graph.keyOf(node);
    key.push_back(broadcasts ? &node.rule : nullptr);
    for (int64_t tensor : node.tensors)
      key.push_back(tensor >= 0 && graph.tensors[tensor].priority > round ? &node.rule : nullptr);
    bool isShared = !context && areDistinct(node.tensors);
    if (auto it = isShared ? known.find(key) : known.end(); it != known.end()) {
      for (auto [tensor, sharding] : llvm::zip(node.tensors, it->second))
        if (tensor >= 0 && graph.tensors[tensor].sharding != sharding) {
          graph.tensors[tensor].sharding = sharding;
          changed.push_back(tensor);
        }
      return changed;
    }
    FactorAxes axes = Strategies::merge(graph, node, round, broadcasts);
    size_t numOperands = node.rule.operands.size();
    for (size_t i = 0; i < node.tensors.size(); ++i) {
      if (!isOpen(node.tensors[i]))
        continue;
      const TensorRule &rule =
          i < numOperands ? node.rule.operands[i] : node.rule.results[i - numOperands];
      if (extend(node, node.tensors[i], rule, axes))
        changed.push_back(node.tensors[i]);
    }
    if (isShared)
      for (int64_t tensor : node.tensors)
        known[key].push_back(tensor < 0 ? nullptr : graph.tensors[tensor].sharding);
    return changed;
  }

  static bool areDistinct(llvm::ArrayRef<int64_t> tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i] >= 0 && llvm::is_contained(tensors.drop_front(i + 1), tensors[i]))
        return false;
    return true;
  }

  bool extend(const RuleNode &node, int64_t index, const TensorRule &rule, const FactorAxes &axes) {
    TensorState &state = graph.tensors[index];
    bool changed = false;
    for (size_t d = 0; d < rule.size(); ++d) {
      AxisList wanted;
      for (int64_t factor : rule[d].factors)
        wanted.insert(wanted.end(), axes[factor].begin(), axes[factor].end());
      wanted = mergeAxes(std::move(wanted));
      const AxisList &has = state.sharding->dims[d];
      if (wanted == has || !isPrefix(has, wanted))
        continue;
      for (const AxisRef &axis : removePrefix(has, wanted)) {
        bool open = llvm::any_of(state.sharding->open,
                                 [&](const AxisRef &part) { return part.contains(axis); });
        if (!open || !state.sharding->isFree(axis))
          break;
        auto apply = [&]() {
          TensorSharding extended = *state.sharding;
          extended.dims[d].push_back(axis);
          extended.dims[d] = mergeAxes(std::move(extended.dims[d]));
          state.sharding = graph.keep(std::move(extended));
        };
        if (context)
          report(apply, state, index, d, axis, sourceOf(node, index, axis));
        else
          apply();
        changed = true;
      }
    }
    return changed;
  }

  /// The tensor of the node that the axis came from: the first other one that is cut by it.
  int64_t sourceOf(const RuleNode &node, int64_t target, const AxisRef &axis) const {
    for (int64_t tensor : node.tensors)
      if (tensor >= 0 && tensor != target && !graph.tensors[tensor].sharding->isFree(axis))
        return tensor;
    return -1;
  }

  void report(llvm::function_ref<void()> apply, const TensorState &state, int64_t index,
              int64_t dim, const AxisRef &axis, int64_t source) {
    std::string description;
    if (source >= 0) {
      const TensorState &from = graph.tensors[source];
      llvm::raw_string_ostream os(description);
      if (from.name.empty())
        os << "a value at " << tessera::toString(from.loc);
      else
        os << "'" << from.name << "'";
    }
    context->executeAction<ShardingAction>(apply, {}, state.loc, state.name, index, dim,
                                           toString(*state.mesh, axis), source, description);
  }

  PropagationGraph &graph;
  MLIRContext *context; ///< null without a listener
  /// The shardings of a node's tensors after a visit.
  AddressMap<llvm::SmallVector<const TensorSharding *, 4>> known;
};

} // namespace

void dist::propagateAxes(PropagationGraph &graph, MLIRContext *context) {
  Propagation(graph, context).run();
}

namespace {

struct DistPropagate : dist::impl::DistPropagateBase<DistPropagate> {
  using DistPropagateBase::DistPropagateBase;

  void runOnOperation() override {
    MeshTable meshes(getOperation());
    if (meshes.empty())
      return; // a program for one device
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), objective, topology);
    if (failed(cost))
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        if (failed(propagate(function, meshes, *cost)))
          return signalPassFailure();
  }

  LogicalResult propagate(func::FuncOp function, const MeshTable &meshes, const CostOptions &cost) {
    FailureOr<std::unique_ptr<PropagationGraph>> graph = PropagationGraph::build(function, meshes);
    if (failed(graph))
      return failure();
    propagateAxes(**graph, &getContext());
    Decision decision = decide(**graph, cost.topology, {cost.objective, recuts, latencies});
    if (markRecuts && decision.isRecut)
      getOperation()->setAttr(kRecut, UnitAttr::get(&getContext()));
    writeShardings(function, **graph, decision);
    leaveResultsOpen(function, **graph, decision);
    return success();
  }
};

} // namespace
