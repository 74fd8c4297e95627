//===- Describe.cpp - Describe a plan by its parallelisms -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"

#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Transforms/Search.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// Tensors that depend on a single argument: the weights of contractions.
class Weights {
public:
  explicit Weights(const PropagationGraph &graph) : argument(graph.tensors.size(), -1) {
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      if (!graph.tensors[t].name.empty() &&
          !llvm::is_contained(graph.results, static_cast<int64_t>(t)))
        argument[t] = static_cast<int64_t>(t);
    for (int64_t tensor : graph.fed)
      if (tensor >= 0)
        fed.insert(tensor);
    // A training step replaces its weights; other arguments are data.
    for (int64_t &tensor : argument)
      if (!fed.empty() && !fed.count(tensor))
        tensor = -1;
    for (const RuleNode &node : graph.nodes) {
      int64_t only = -1;
      bool isSingle = node.op != nullptr;
      for (size_t i = 0; i < node.rule.operands.size(); ++i) {
        int64_t tensor = node.tensors[i];
        if (tensor < 0 || isMadeHere(tensor))
          continue;
        isSingle = isSingle && argument[tensor] >= 0 && (only < 0 || only == argument[tensor]);
        only = argument[tensor];
      }
      for (size_t i = node.rule.operands.size(); i < node.tensors.size() && isSingle; ++i)
        if (node.tensors[i] >= 0 && argument[node.tensors[i]] < 0)
          argument[node.tensors[i]] = only;
      for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
        if (node.tensors[i] >= 0 && isMadeOfScalars(node.op))
          made.insert(node.tensors[i]);
    }
  }

  /// The operand of a contraction that is a weight, or -1: of two arguments the replaced one, else
  /// the one that is no index of a look-up, else the later one.
  int64_t operandOf(const RuleNode &node) const {
    int64_t weight = -1;
    auto rankOf = [&](int64_t operand) {
      bool isReal = node.op && isa<FloatType>(getElementTypeOrSelf(node.op->getOperand(operand)));
      return std::pair(fed.count(argument[node.tensors[operand]]) > 0, isReal);
    };
    for (int64_t i = 0; i < std::ssize(node.rule.operands); ++i) {
      int64_t tensor = node.tensors[i];
      if (tensor < 0 || node.rule.accumulatorOf[i] >= 0 || argument[tensor] < 0)
        continue;
      if (weight < 0 || rankOf(i) >= rankOf(weight))
        weight = i;
    }
    return weight;
  }

private:
  bool isMadeHere(int64_t tensor) const { return made.count(tensor) > 0; }

  std::vector<int64_t> argument; ///< by tensor
  std::set<int64_t> fed, made;
};

bool hasFactor(const TensorRule &tensor, int64_t factor) {
  return llvm::any_of(tensor,
                      [&](const DimRule &dim) { return llvm::is_contained(dim.factors, factor); });
}

/// Whether a factor is the height, width or depth of the result of a convolution or pooling: an
/// operand is read through a window of it, possibly of one element.
bool isSpatial(const RuleNode &node, int64_t factor) {
  for (const TensorRule &operand : node.rule.operands)
    for (const DimRule &dim : operand)
      if (dim.isWindow && llvm::is_contained(dim.factors, factor))
        return true;
  auto op = dyn_cast<linalg::LinalgOp>(node.op);
  if (!op || op.getNumLoops() != node.rule.factors.size())
    return false;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  return succeeded(dims) && llvm::is_contained(dims->outputImage, static_cast<unsigned>(factor));
}

/// The role of a cut of one factor of a contraction.
StringRef nameOf(const RuleNode &node, int64_t factor, int64_t weight) {
  bool isLeading = false;
  size_t having = 0, inputs = 0;
  for (size_t i = 0; i < node.rule.operands.size(); ++i) {
    if (node.tensors[i] < 0 || node.rule.accumulatorOf[i] >= 0)
      continue;
    ++inputs;
    const TensorRule &rule = node.rule.operands[i];
    having += hasFactor(rule, factor);
    if (static_cast<int64_t>(i) != weight && !rule.empty())
      isLeading = isLeading || llvm::is_contained(rule.front().factors, factor);
  }
  if (weight >= 0 && hasFactor(node.rule.operands[weight], factor)) {
    bool inResult = hasFactor(node.rule.results.front(), factor);
    return having == inputs && inResult ? "expert" : "tensor";
  }
  if (isSpatial(node, factor))
    return "spatial";
  if (weight < 0 && node.rule.factors[factor].kind == FactorKind::parallel)
    return isLeading && having == inputs ? "data" : "";
  return isLeading ? "data" : "sequence";
}

/// The axes of each role, "data" and so on, both in the order of discovery.
class Roles {
public:
  void add(const std::string &name, const std::string &axis) {
    auto role = llvm::find_if(roles, [&](const Role &each) { return each.name == name; });
    if (role == roles.end())
      role = roles.insert(roles.end(), Role{name, {}});
    if (!llvm::is_contained(role->axes, axis))
      role->axes.push_back(axis);
  }
  void add(const Roles &others) {
    for (const Role &role : others.roles)
      for (const std::string &axis : role.axes)
        add(role.name, axis);
  }
  /// "data over dp, ep", one text per role.
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const Role &role : roles)
      result.push_back(role.name + " over " + llvm::join(role.axes, ", "));
    return result;
  }

private:
  struct Role {
    std::string name;
    std::vector<std::string> axes;
  };
  std::vector<Role> roles;
};

} // namespace

/// The roles of the axes. `axesOf` gives the axes of a node's factors, null if it is whole or not
/// in the plan; `layOf` the sharding of an argument, none for other tensors.
static Roles rolesOf(const PropagationGraph &graph,
                     llvm::function_ref<const OpSharding *(size_t)> axesOf,
                     llvm::function_ref<std::optional<TensorSharding>(int64_t)> layOf) {
  Weights weights(graph);
  std::map<std::string, std::map<std::string, double>> work; // by axis, by name
  std::map<std::string, double> total;
  std::map<std::string, double> laid, gathered; // bytes of arguments by axis
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const RuleNode &node = graph.nodes[n];
    const OpSharding *strategy = axesOf(n);
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(node.op);
    if (!strategy || !linalgOp || linalgOp.getNumReductionLoops() == 0 ||
        linalgOp.getNumDpsInputs() < 2)
      continue;
    const Mesh &mesh = *graph.tensors[node.tensors.back()].mesh;
    double iterations = tripsOf(node.op);
    for (const Factor &factor : node.rule.factors)
      iterations *= static_cast<double>(factor.size);
    int64_t weight = weights.operandOf(node);
    for (size_t f = 0; f < strategy->factors.size(); ++f)
      for (const AxisRef &axis : strategy->factors[f])
        if (StringRef name = nameOf(node, static_cast<int64_t>(f), weight);
            axis.size > 1 && !name.empty()) {
          work[mesh.axisNames[axis.axis]][name.str()] += iterations;
          total[mesh.axisNames[axis.axis]] += iterations;
        }
    std::optional<TensorSharding> own = weight < 0 ? std::nullopt : layOf(node.tensors[weight]);
    if (!own)
      continue;
    TensorSharding need = shardingUnder(node, weight, *strategy);
    for (const AxisRef &axis : own->usedAxes()) {
      if (axis.size == 1)
        continue;
      laid[mesh.axisNames[axis.axis]] += 1;
      if (need.isFree(axis))
        gathered[mesh.axisNames[axis.axis]] += 1;
    }
  }
  Roles found;
  for (auto &[axis, names] : work)
    for (auto &[name, amount] : names)
      if (amount >= 0.1 * total[axis])
        found.add(name, axis);
  for (auto &[axis, count] : gathered)
    if (count >= 0.1 * laid[axis])
      found.add("ZeRO", axis);
  return found;
}

std::vector<std::string> dist::parallelismsOf(const StrategyGraph &strategies,
                                              const PropagationGraph &graph,
                                              const std::vector<int64_t> &choice) {
  return rolesOf(
             graph,
             [&](size_t node) { return strategies.strategyOf(static_cast<int64_t>(node), choice); },
             [&](int64_t tensor) -> std::optional<TensorSharding> {
               if (strategies.homeOf(tensor) < 0)
                 return std::nullopt;
               return strategies.shardingOf(tensor, choice);
             })
      .texts();
}

std::vector<std::string> dist::parallelismsOf(ModuleOp module) {
  if (module.getOps<ProcessMeshOp>().empty())
    return {};
  MeshTable meshes(module);
  OpShardings shardings(meshes);
  Roles found;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    PropagationGraph graph(function, meshes);
    found.add(rolesOf(
        graph,
        [&](size_t node) {
          Operation *op = graph.nodes[node].op;
          bool isPlaced = op && graph.tensors[graph.nodes[node].tensors.back()].mesh;
          return isPlaced ? &shardings.of(op).sharding : nullptr;
        },
        [&](int64_t tensor) -> std::optional<TensorSharding> {
          if (graph.tensors[tensor].name.empty())
            return std::nullopt;
          return graph.tensors[tensor].given;
        }));
  }
  return found.texts();
}

std::map<int64_t, std::string> dist::reasonsOf(const StrategyGraph &strategies,
                                               const PropagationGraph &graph,
                                               const std::vector<int64_t> &choice) {
  const solver::Problem &problem = strategies.problem();
  std::vector<std::vector<const solver::Edge *>> edgesOf(problem.nodes.size());
  for (const solver::Edge &edge : problem.edges) {
    edgesOf[edge.from].push_back(&edge);
    edgesOf[edge.to].push_back(&edge);
  }
  // The cost of a strategy of a node with its neighbors fixed; places are re-optimized.
  std::function<double(int64_t, int64_t, int64_t, bool)> costOf =
      [&](int64_t node, int64_t strategy, int64_t but, bool placesFollow) {
        double cost = problem.nodes[node].cost[strategy];
        for (const solver::Edge *edge : edgesOf[node]) {
          int64_t other = edge->from == node ? edge->to : edge->from;
          if (other == but)
            continue;
          const solver::EdgeTable &table = problem.tables[edge->table];
          auto between = [&](int64_t s) {
            return edge->from == node ? table.at(strategy, s) : table.at(s, strategy);
          };
          if (!placesFollow || strategies.propagatedChoice()[other] >= 0) {
            cost += between(choice[other]);
            continue;
          }
          double least = std::numeric_limits<double>::infinity();
          for (int64_t s = 0; s < problem.nodes[other].numStrategies(); ++s)
            least = std::min(least, between(s) + costOf(other, s, node, false));
          cost += least;
        }
        return cost;
      };
  std::map<int64_t, std::string> reasons;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const TensorState &state = graph.tensors[t];
    auto tensor = static_cast<int64_t>(t);
    int64_t node = strategies.homeOf(tensor);
    if (state.name.empty() || llvm::is_contained(graph.results, tensor) || state.given.open.empty())
      continue;
    auto write = [&](const TensorSharding &sharding) {
      std::string text;
      llvm::raw_string_ostream os(text);
      ShardingAttr::get(state.meshName, *state.mesh, sharding, state.type.getContext()).print(os);
      return text;
    };
    std::vector<int64_t> at = choice;
    const TensorSharding &own = strategies.shardingOf(tensor, choice);
    double chosen = costOf(node, choice[node], -1, true);
    int64_t second = -1;
    double next = std::numeric_limits<double>::infinity();
    for (int64_t s = 0; s < problem.nodes[node].numStrategies(); ++s)
      if (double cost = costOf(node, s, -1, true); s != choice[node] && cost < next) {
        next = cost;
        second = s;
      }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "'" << state.name << "': chose " << write(own);
    int64_t parts = 1;
    for (const AxisList &dim : own.dims)
      parts *= sizeOf(dim);
    if (parts > 1)
      os << llvm::format(": saves %.3g MiB per device compared with replicate",
                         static_cast<double>(state.bytes - state.bytes / parts) / (1 << 20));
    if (second >= 0) {
      at[node] = second;
      os << "; runner-up " << write(strategies.shardingOf(tensor, at))
         << llvm::format(" costs %.4g us more", 1e6 * (next - chosen));
    }
    reasons[tensor] = text;
  }
  return reasons;
}
