//===- Portfolio.cpp - Standard plans to compile beside the search's ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan has two parts: a dimension of an argument (in a training step the batch)
// with the mesh axes that cut it, and the axes that cut the weights. The batch is
// the dimension whose propagated cut minimizes the computation per device. Weights
// are the arguments that results feed, or else those that the cut of the batch does
// not reach.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Portfolio.h"

#include "ArgumentCuts.h"
#include "MeshShapes.h"

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Limit on the ops visited for one tensor-parallel plan, once per weight.
static constexpr int64_t kOpsForWeights = 400000;

namespace {

/// Creates the plans for one function on one mesh.
class PlanMaker : ArgumentCuts {
public:
  using ArgumentCuts::ArgumentCuts, ArgumentCuts::findSeeds;

  /// Adds plans with these seeds. `isFirst`: for the first grid; on others only those that cut
  /// arguments over some of the axes.
  void addPlans(ArrayRef<Seed> seeds, bool isFirst, std::vector<BaselinePlan> &plans) {
    for (auto [index, seed] : llvm::enumerate(seeds)) {
      AxisList data = axesFor(graph.tensors[tensors[seed.argument]], seed.dim);
      if (data.empty())
        continue;
      AxisList rest;
      llvm::copy_if(axes, std::back_inserter(rest),
                    [&](const AxisRef &axis) { return !llvm::is_contained(data, axis); });
      if (isFirst || !rest.empty()) {
        add(&seed, index, data, {}, plans);
        add(&seed, index, data, data, plans);
        addCutState(&seed, index, data, data, plans);
      }
      if (!rest.empty()) {
        add(&seed, index, data, rest, plans);
        add(&seed, index, data, axes, plans);
        addTensorParallel(&seed, index, data, rest, plans);
      }
      for (size_t outer = 1; outer < data.size(); ++outer)
        addTensorParallel(&seed, index, AxisList(data.begin(), data.begin() + outer),
                          AxisList(data.begin() + outer, data.end()), plans);
      if (data.size() < 2)
        continue;
      AxisList inner{data.back()}, outer(data.begin(), data.end() - 1);
      add(&seed, index, data, inner, plans);
      add(&seed, index, outer, inner, plans);
    }
    if (isFirst)
      addTensorParallel(seeds.empty() ? nullptr : &seeds.front(), 0, {}, axes, plans);
    if (isFirst || axes.size() > 1)
      addCutWeights(isFirst, plans);
  }

private:
  void addCutWeights(bool isFirst, std::vector<BaselinePlan> &plans) {
    bool isAnnotated = llvm::any_of(graph.tensors, [&](const TensorState &tensor) {
      return tensor.given != TensorSharding::allOpen(mesh, tensor.type.getRank());
    });
    if (isFirst && isAnnotated) // else it equals propagation's plan
      add(nullptr, 0, {}, {}, plans);
    if (isFirst) {
      add(nullptr, 0, {}, axes, plans);
      addCutState(nullptr, 0, {}, axes, plans);
    }
    if (axes.size() < 2)
      return;
    for (const AxisRef &axis : axes)
      add(nullptr, 0, {}, {axis}, plans);
    if (!isFirst)
      return;
    const AxisList reversed(axes.rbegin(), axes.rend());
    add(nullptr, 0, {}, reversed, plans);
    addCutState(nullptr, 0, {}, reversed, plans);
  }

  /// Cached spreadFrom.
  const Spread &spreadOf(const Seed &seed, const AxisList &data) {
    auto key = std::tuple(seed.argument, seed.dim, data);
    auto it = spreads.find(key);
    if (it == spreads.end())
      it = spreads.emplace(key, spreadFrom(seed.argument, seed.dim, data)).first;
    return it->second;
  }

  std::string listOf(const AxisList &list) const {
    std::string text;
    for (const AxisRef &axis : list)
      text += (text.empty() ? "" : ", ") + mesh.axisNames[axis.axis];
    return text;
  }

  /// The usual name of the plan; `index` of the seed: the first is the batch.
  std::string nameOf(const Seed *seed, size_t index, const AxisList &data,
                     const AxisList &weights) const {
    if (!seed)
      return weights.empty() ? "replicated" : "weights over " + listOf(weights);
    if (index == 0 && data == weights)
      return "ZeRO-3 over " + listOf(data);
    std::string name = index == 0 ? "data parallel over "
                                  : "dimension " + std::to_string(seed->dim) + " of '" +
                                        argumentName(function, seed->argument) + "' over ";
    name += listOf(data);
    return weights.empty() ? name : name + ", weights over " + listOf(weights);
  }

  /// Adds the plan that cuts the seed over `data` and the weights over `weights`, unless an equal
  /// one exists.
  void add(const Seed *seed, size_t index, const AxisList &data, const AxisList &weights,
           std::vector<BaselinePlan> &plans) {
    add(seed, index, data, weights, weights, nameOf(seed, index, data, weights), plans);
  }

  /// The same with separate axes for the optimizer state (the first stages of ZeRO).
  void addCutState(const Seed *seed, size_t index, const AxisList &data, const AxisList &cut,
                   std::vector<BaselinePlan> &plans) {
    std::string name = "ZeRO-1 over " + listOf(cut);
    if (!seed || index > 0 || data != cut)
      name = (seed ? nameOf(seed, index, data, {}) + ", " : "") + "optimizer state over " +
             listOf(cut);
    add(seed, index, data, {}, cut, name, plans);
  }

  void add(const Seed *seed, size_t index, const AxisList &data, const AxisList &weights,
           const AxisList &optimizer, const std::string &name, std::vector<BaselinePlan> &plans) {
    BaselinePlan plan;
    plan.name = name;
    plan.arguments.resize(tensors.size());
    const Spread *spread = seed ? &spreadOf(*seed, data) : nullptr;
    bool cutsAny = false;
    for (unsigned argument = 0; argument < tensors.size(); ++argument) {
      if (tensors[argument] < 0 || graph.tensors[tensors[argument]].given.open.empty())
        continue;
      const TensorState &state = graph.tensors[tensors[argument]];
      bool follows = spread && gained(spread->graph, argument);
      std::optional<TensorSharding> sharding;
      if (spread && spread->cut.count(argument))
        sharding = spread->cut.at(argument);
      else if (fed.empty() ? !follows : fed.count(tensors[argument]) > 0)
        sharding = cutWeight(state, unneeded.count(tensors[argument]) ? optimizer : weights);
      else if (!seed && weights.empty() && optimizer.empty())
        sharding = canonical(state.given.closed());
      if (!sharding)
        continue;
      cutsAny = cutsAny || sharding->dims != state.given.dims;
      annotate(plan, argument, *sharding);
    }
    bool isNew = llvm::none_of(plans, [&](const BaselinePlan &other) {
      return other.arguments == plan.arguments && (!other.mesh || other.mesh->shape == mesh.shape);
    });
    if (isNew && (cutsAny || plan.name == "replicated"))
      plans.push_back(std::move(plan));
  }

  /// Adds the plan that cuts the seed over `data`, and the weights over `cut` as M. Shoeybi et al.
  /// do ("Megatron-LM", 2019): each weight whose cut does not follow from earlier ones along
  /// tensorParallelDim. The contracted dimension of the next weight follows.
  void addTensorParallel(const Seed *seed, size_t index, const AxisList &data, const AxisList &cut,
                         std::vector<BaselinePlan> &plans) {
    if (static_cast<int64_t>(graph.nodes.size() * tensors.size()) > kOpsForWeights)
      return;
    if (!seed && fed.empty())
      return; // weights and data cannot be distinguished
    Spread spread = data.empty() ? Spread{graph, {}} : spreadOf(*seed, data);
    const Spread *batch = fed.empty() ? &spreadOf(*seed, axes) : nullptr;
    bool cutsAny = false;
    for (unsigned argument : byFirstUse()) {
      bool isWeight = batch ? !gained(batch->graph, argument) : fed.count(tensors[argument]) > 0;
      if (!isWeight || gained(spread.graph, argument))
        continue;
      std::optional<size_t> dim = tensorParallelDim(argument, cut);
      if (!dim)
        continue;
      TensorState &state = spread.graph.tensors[tensors[argument]];
      state.sharding = spread.graph.keep(cutBy(state, *dim, cut));
      spread.cut.emplace(argument, *state.sharding);
      propagateAxes(spread.graph, nullptr);
      cutsAny = true;
    }
    if (!cutsAny)
      return;
    BaselinePlan plan;
    plan.name = (data.empty() ? "" : nameOf(seed, index, data, {}) + ", ") +
                "tensor parallel over " + listOf(cut);
    plan.arguments.resize(tensors.size());
    for (const auto &[argument, sharding] : spread.cut)
      annotate(plan, argument, sharding);
    plans.push_back(std::move(plan));
  }

  /// The largest dimension of a weight that the axes divide, among those in the result of its first
  /// contraction; for a table, among its indexed dimensions.
  std::optional<size_t> tensorParallelDim(unsigned argument, const AxisList &cut) const {
    const int64_t tensor = tensors[argument];
    const TensorState &state = graph.tensors[tensor];
    if (graph.nodesOf[tensor].empty() ||
        !llvm::all_of(cut, [&](const AxisRef &axis) { return isOpen(state, axis); }))
      return std::nullopt;
    auto contracts = [&](int64_t n) {
      return graph.nodes[n].op && combinesTensors(graph.nodes[n].op);
    };
    auto looksUp = [&](int64_t n) {
      return graph.nodes[n].op && llvm::any_of(graph.nodes[n].op->getOperandTypes(), [](Type type) {
               return isa<IntegerType>(getElementTypeOrSelf(type));
             });
    };
    const auto *reader =
        llvm::find_if(graph.nodesOf[tensor], [&](int64_t n) { return contracts(n) || looksUp(n); });
    if (reader == graph.nodesOf[tensor].end())
      return std::nullopt;
    const bool isTable = looksUp(*reader);
    const RuleNode &node = graph.nodes[*reader];
    const auto position =
        static_cast<size_t>(llvm::find(node.tensors, tensor) - node.tensors.begin());
    if (position >= node.rule.operands.size())
      return std::nullopt;
    auto isInResult = [&](int64_t factor) {
      return llvm::any_of(node.rule.results, [&](const TensorRule &result) {
        return llvm::any_of(
            result, [&](const DimRule &dim) { return llvm::is_contained(dim.factors, factor); });
      });
    };
    const TensorRule &rule = node.rule.operands[position];
    std::optional<size_t> best;
    for (size_t dim = 0; dim < rule.size(); ++dim) {
      const int64_t extent = state.type.getDimSize(dim);
      if (llvm::all_of(rule[dim].factors,
                       [&](int64_t factor) { return isInResult(factor) != isTable; }) &&
          extent % (sizeOf(state.given.dims[dim]) * sizeOf(cut)) == 0 &&
          (!best || extent > state.type.getDimSize(*best)))
        best = dim;
    }
    return best;
  }

  void annotate(BaselinePlan &plan, unsigned argument, const TensorSharding &sharding) {
    ShardingAttr given = getSharding(function.getArgument(argument));
    plan.arguments[argument] = ShardingAttr::get(meshName, mesh, sharding, function.getContext(),
                                                 given ? given.getPriority() : -1);
  }

  std::map<std::tuple<unsigned, size_t, AxisList>, Spread> spreads;
};

} // namespace

/// The only function of the global view; null if there are several.
static func::FuncOp onlyFunction(ModuleOp module) {
  func::FuncOp only;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (isLocalView(function) || function.isExternal())
      continue;
    if (only)
      return {};
    only = function;
  }
  return only;
}

std::vector<BaselinePlan> dist::baselinePlans(ModuleOp module, const PortfolioOptions &options) {
  OwningOpRef<ModuleOp> scratch = module.clone();
  const std::string name = freeMeshName(module);
  const size_t declared = MeshTable(module).size();
  std::vector<BaselinePlan> plans(1);
  plans.front().name = "propagation";
  if (declared == 0)
    plans.front().mesh = makeMesh(name, options.searchedShape);
  func::FuncOp function = onlyFunction(*scratch);
  if (!function || declared > 1)
    return plans;
  OpCosts costs(function, options.topology);
  auto addOn = [&](std::optional<Mesh> mesh, std::optional<std::vector<Seed>> &seeds) {
    ProcessMeshOp made = mesh ? declareMesh(*scratch, *mesh) : ProcessMeshOp();
    MeshTable meshes(*scratch);
    PlanMaker maker(function, meshes, costs);
    bool isFirst = !seeds;
    if (isFirst)
      seeds = maker.findSeeds();
    size_t before = plans.size();
    maker.addPlans(*seeds, isFirst, plans);
    for (size_t plan = before; plan < plans.size(); ++plan)
      plans[plan].mesh = mesh;
    if (made)
      made.erase();
  };
  std::optional<std::vector<Seed>> seeds;
  if (declared == 1)
    addOn(std::nullopt, seeds);
  else
    for (const std::vector<int64_t> &shape : meshShapes(options.devices, options.topology))
      addOn(makeMesh(name, shape), seeds);
  return plans;
}

void dist::writePlan(ModuleOp module, const BaselinePlan &plan) {
  if (plan.mesh)
    declareMesh(module, *plan.mesh);
  if (func::FuncOp function = onlyFunction(module))
    for (auto [argument, sharding] : llvm::zip(function.getArguments(), plan.arguments))
      if (sharding)
        setSharding(argument, sharding);
}

double dist::computeSecondsOf(ModuleOp propagated, const Topology &topology) {
  MeshTable meshes(propagated);
  double seconds = 0;
  for (func::FuncOp function : propagated.getOps<func::FuncOp>()) {
    if (isLocalView(function) || function.isExternal())
      continue;
    OpCosts costs(function, topology);
    OpShardings shardings(meshes);
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!hasCost(op))
        return WalkResult::advance();
      const ShardedOp &cut = shardings.of(op);
      if (!cut.mesh)
        return WalkResult::skip();
      double iterations = 1;
      for (auto [factor, axes] : llvm::zip(cut.rule.factors, cut.sharding.factors))
        iterations *= static_cast<double>(ceilDiv(factor.size, sizeOf(axes)));
      SmallVector<double> elements;
      auto add = [&](Type type, ShardingAttr sharding) {
        elements.push_back(1);
        if (sharding && isa<RankedTensorType>(type))
          elements.back() = static_cast<double>(
              localType(cast<RankedTensorType>(type), resolveVerified(sharding, meshes, type))
                  .getNumElements());
      };
      for (auto [type, sharding] : llvm::zip(op->getOperandTypes(), cut.operands))
        add(type, sharding);
      for (Value result : op->getResults())
        add(result.getType(), getSharding(result));
      seconds += tripsOf(op) *
                 (costs.seconds(op, iterations, elements, meshes.get(cut.mesh).numDevices()) +
                  OpCosts::communicationSeconds(costs.machine(), op, cut.sharding.factors,
                                                meshes.get(cut.mesh)));
      return WalkResult::skip();
    });
  }
  return seconds;
}
