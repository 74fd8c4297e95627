//===- Portfolio.cpp - Plain plans to compile beside the search's ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan has two parts: a dimension of an argument that some mesh axes cut (of a
// training step the batch), and the axes that cut the weights. The batch is the
// dimension whose cut, carried through the program by propagation, leaves least
// computing to a device. Weights are the arguments that results feed; where there
// are no such results, those that the cut of the batch does not reach.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Portfolio.h"

#include "../Propagate/Propagation.h"
#include "MeshShapes.h"

#include "tessera/Transforms/OpShardings.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Dimensions of arguments whose cut is carried through the program, at most; of larger programs
/// fewer, so that all of them together visit about so many ops.
static constexpr int64_t kMostTried = 32, kLeastTried = 6, kOpsVisited = 200000;
/// Dimensions of which plans are made.
static constexpr size_t kMostSeeds = 2;
/// A cut that saves less of the computing than this part of it is no plan's.
static constexpr double kLeastGain = 0.01;
/// Of the least computing that a cut leaves, what one leaves that is about as good.
static constexpr double kAsGood = 1.1;
/// Ops that are visited for one tensor-parallel plan at most, once for each weight.
static constexpr int64_t kOpsForWeights = 400000;

namespace {

/// A dimension of an argument.
struct Seed {
  unsigned argument;
  size_t dim;
  double seconds = 0; ///< of computing on a device when it is cut
};

/// Makes the plans for one function on one mesh.
class PlanMaker {
public:
  PlanMaker(func::FuncOp function, const MeshTable &meshes, const OpCosts &costs)
      : function(function), graph(function, meshes), costs(costs), mesh(meshes.begin()->second),
        meshName(FlatSymbolRefAttr::get(meshes.begin()->first)) {
    for (BlockArgument argument : function.getArguments())
      tensors.push_back(graph.tensorOf(argument));
    for (int64_t a = 0; a < mesh.numAxes(); ++a)
      if (mesh.shape[a] > 1)
        axes.push_back(AxisRef::full(mesh, a));
    for (int64_t tensor : graph.fed)
      if (tensor >= 0)
        fed.insert(tensor);
  }

  /// The dimensions whose cuts help most, the best first. One that follows from another's cut is
  /// the same as that.
  std::vector<Seed> findSeeds() const {
    std::vector<Seed> seeds;
    std::set<std::pair<unsigned, size_t>> reached;
    const double whole = secondsOf(graph);
    auto left = std::clamp<int64_t>(
        kOpsVisited / std::max<int64_t>(1, static_cast<int64_t>(graph.nodes.size())), kLeastTried,
        kMostTried);
    for (unsigned argument : byFirstUse()) {
      const TensorState &state = graph.tensors[tensors[argument]];
      if (!fed.empty() && fed.count(tensors[argument]))
        continue;
      for (size_t dim = 0; dim < state.given.dims.size(); ++dim) {
        AxisList cut = axesFor(state, dim);
        if (cut.empty() || reached.count({argument, dim}) || left-- <= 0)
          continue;
        const PropagationGraph spread = spreadFrom(argument, dim, cut).graph;
        for (unsigned other = 0; other < tensors.size(); ++other)
          for (size_t d = 0; tensors[other] >= 0 && d < rankOf(other); ++d)
            if (gained(spread, other, d))
              reached.insert({other, d});
        if (double seconds = secondsOf(spread); seconds < (1 - kLeastGain) * whole)
          seeds.push_back({argument, dim, seconds});
      }
    }
    // Among those that are about equally good the batch comes first, and so it does in a program.
    double best = std::numeric_limits<double>::infinity();
    for (const Seed &seed : seeds)
      best = std::min(best, seed.seconds);
    auto isAsGood = [&](const Seed &seed) { return seed.seconds <= kAsGood * best; };
    llvm::stable_sort(seeds, [&](const Seed &a, const Seed &b) {
      return isAsGood(a) != isAsGood(b) ? isAsGood(a) : !isAsGood(a) && a.seconds < b.seconds;
    });
    seeds.resize(std::min(seeds.size(), kMostSeeds), Seed{0, 0});
    return seeds;
  }

  /// Plans with these seeds. `isFirst`: of the first grid; on others only those that cut arguments
  /// by some of the axes alone.
  void addPlans(ArrayRef<Seed> seeds, bool isFirst, std::vector<PlainPlan> &plans) {
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
  void addCutWeights(bool isFirst, std::vector<PlainPlan> &plans) {
    bool isAnnotated = llvm::any_of(graph.tensors, [&](const TensorState &tensor) {
      return tensor.given != TensorSharding::allOpen(mesh, tensor.type.getRank());
    });
    if (isFirst && isAnnotated) // else it is what propagation says
      add(nullptr, 0, {}, {}, plans);
    if (isFirst)
      add(nullptr, 0, {}, axes, plans);
    if (axes.size() < 2)
      return;
    for (const AxisRef &axis : axes)
      add(nullptr, 0, {}, {axis}, plans);
    if (isFirst)
      add(nullptr, 0, {}, AxisList(axes.rbegin(), axes.rend()), plans);
  }

  size_t rankOf(unsigned argument) const {
    return graph.tensors[tensors[argument]].given.dims.size();
  }

  /// Tensors among the arguments, those first that ops meet first: data, then weights by layer.
  SmallVector<unsigned> byFirstUse() const {
    llvm::DenseMap<int64_t, unsigned> argumentOf; // looked up only
    for (unsigned argument = 0; argument < tensors.size(); ++argument)
      if (tensors[argument] >= 0)
        argumentOf[tensors[argument]] = argument;
    SmallVector<unsigned> order;
    for (const RuleNode &node : graph.nodes)
      for (int64_t tensor : node.tensors)
        if (auto it = argumentOf.find(tensor); it != argumentOf.end()) {
          order.push_back(it->second);
          argumentOf.erase(it);
        }
    return order;
  }

  static bool isOpen(const TensorState &tensor, const AxisRef &axis) {
    return llvm::any_of(tensor.given.open,
                        [&](const AxisRef &open) { return open.contains(axis); });
  }

  /// The open axes that may cut a dimension: those that divide it, else those that it has a part
  /// for each device of.
  AxisList axesFor(const TensorState &tensor, size_t dim) const {
    AxisList taken;
    for (bool divides : {true, false}) {
      int64_t parts = sizeOf(tensor.given.dims[dim]), extent = tensor.type.getDimSize(dim);
      for (const AxisRef &axis : axes)
        if (isOpen(tensor, axis) &&
            (divides ? extent % (parts * axis.size) == 0 : parts * axis.size <= extent)) {
          taken.push_back(axis);
          parts *= axis.size;
        }
      if (!taken.empty())
        break;
    }
    return taken;
  }

  /// What is given of a tensor, and a dimension cut by axes beside; those that are not open stay as
  /// they are.
  static TensorSharding cutBy(const TensorState &tensor, size_t dim, const AxisList &cut) {
    TensorSharding sharding = tensor.given;
    for (const AxisRef &axis : cut)
      if (isOpen(tensor, axis))
        sharding.dims[dim].push_back(axis);
    sharding.dims[dim] = mergeAxes(std::move(sharding.dims[dim]));
    return canonical(sharding.closed());
  }

  /// A weight whose largest dimension is cut that the axes divide; whole where there is none.
  static TensorSharding cutWeight(const TensorState &tensor, const AxisList &cut) {
    SmallVector<size_t> dims = llvm::to_vector(llvm::seq<size_t>(0, tensor.given.dims.size()));
    llvm::stable_sort(dims, [&](size_t a, size_t b) {
      return tensor.type.getDimSize(a) > tensor.type.getDimSize(b);
    });
    AxisList open;
    llvm::copy_if(cut, std::back_inserter(open),
                  [&](const AxisRef &axis) { return isOpen(tensor, axis); });
    for (size_t dim : dims)
      if (tensor.type.getDimSize(dim) % (sizeOf(tensor.given.dims[dim]) * sizeOf(open)) == 0)
        return cutBy(tensor, dim, open);
    return canonical(tensor.given.closed());
  }

  /// What follows from the cut of a dimension of an argument, beside what the program says.
  struct Spread {
    PropagationGraph graph;
    std::map<unsigned, TensorSharding> cut; ///< by argument: what does not follow from others
  };

  /// Carries a cut through the program. Data of a training step that it does not reach is cut where
  /// it has as many elements.
  Spread spreadFrom(unsigned argument, size_t dim, const AxisList &cut) const {
    Spread spread{graph, {}};
    auto begin = [&](unsigned at, size_t d) {
      TensorState &state = spread.graph.tensors[tensors[at]];
      state.sharding = spread.graph.keep(cutBy(state, d, cut));
      spread.cut.emplace(at, *state.sharding);
      propagateAxes(spread.graph, nullptr);
    };
    begin(argument, dim);
    const int64_t extent = graph.tensors[tensors[argument]].type.getDimSize(dim);
    for (unsigned other = 0; other < tensors.size() && !fed.empty(); ++other) {
      if (tensors[other] < 0 || fed.count(tensors[other]) || gained(spread.graph, other))
        continue;
      const TensorState &state = graph.tensors[tensors[other]];
      for (size_t d = 0; d < state.given.dims.size(); ++d)
        if (state.type.getDimSize(d) == extent && !state.given.open.empty()) {
          begin(other, d);
          break;
        }
    }
    return spread;
  }

  /// Whether a dimension of an argument is cut further than the program says.
  bool gained(const PropagationGraph &spread, unsigned argument, size_t dim) const {
    const TensorState &state = spread.tensors[tensors[argument]];
    return state.sharding->dims[dim] != state.given.dims[dim];
  }

  bool gained(const PropagationGraph &spread, unsigned argument) const {
    return llvm::any_of(llvm::seq<size_t>(0, rankOf(argument)),
                        [&](size_t dim) { return gained(spread, argument, dim); });
  }

  /// Seconds of computing on a device when every op is cut as far as its tensors are.
  double secondsOf(const PropagationGraph &spread) const {
    double seconds = 0;
    for (const RuleNode &node : spread.nodes) {
      if (!node.op || node.op->getNumResults() == 0 ||
          !(isa<linalg::LinalgOp>(node.op) || isa<tensor::TensorDialect>(node.op->getDialect())))
        continue;
      Strategy strategy{Strategies::merge(spread, node, std::numeric_limits<int64_t>::max(), true),
                        {}};
      seconds += tripsOf(node.op) * secondsUnder(costs, spread, node, strategy);
    }
    return seconds;
  }

  std::string listOf(const AxisList &list) const {
    std::string text;
    for (const AxisRef &axis : list)
      text += (text.empty() ? "" : ", ") + mesh.axisNames[axis.axis];
    return text;
  }

  /// What people call the plan; `index` of the seed: the first is the batch.
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

  /// Adds the plan that cuts the seed by `data` and the weights by `weights`, unless there is one
  /// that says the same.
  void add(const Seed *seed, size_t index, const AxisList &data, const AxisList &weights,
           std::vector<PlainPlan> &plans) {
    PlainPlan plan;
    plan.name = nameOf(seed, index, data, weights);
    plan.arguments.resize(tensors.size());
    std::optional<Spread> spread;
    if (seed)
      spread.emplace(spreadFrom(seed->argument, seed->dim, data));
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
        sharding = cutWeight(state, weights);
      else if (!seed && weights.empty())
        sharding = canonical(state.given.closed());
      if (!sharding)
        continue;
      cutsAny = cutsAny || sharding->dims != state.given.dims;
      annotate(plan, argument, *sharding);
    }
    bool isNew = llvm::none_of(plans, [&](const PlainPlan &other) {
      return other.arguments == plan.arguments && (!other.mesh || other.mesh->shape == mesh.shape);
    });
    if (isNew && (cutsAny || plan.name == "replicated"))
      plans.push_back(std::move(plan));
  }

  /// Adds the plan that cuts the seed by `data`, and the weights by `cut` as M. Shoeybi et al. do
  /// ("Megatron-LM", 2019): those that do not follow from earlier ones along a dimension of the
  /// result of the contraction that reads them first. The next weight's contracted dimension
  /// follows.
  void addTensorParallel(const Seed *seed, size_t index, const AxisList &data, const AxisList &cut,
                         std::vector<PlainPlan> &plans) {
    if (static_cast<int64_t>(graph.nodes.size() * tensors.size()) > kOpsForWeights)
      return;
    if (!seed && fed.empty())
      return; // nothing tells weights from data
    Spread spread = data.empty() ? Spread{graph, {}} : spreadFrom(seed->argument, seed->dim, data);
    std::optional<Spread> batch;
    if (fed.empty())
      batch.emplace(spreadFrom(seed->argument, seed->dim, axes));
    bool cutsAny = false;
    for (unsigned argument : byFirstUse()) {
      bool isWeight = batch ? !gained(batch->graph, argument) : fed.count(tensors[argument]) > 0;
      if (!isWeight || gained(spread.graph, argument))
        continue;
      std::optional<size_t> dim = resultDimOf(argument, cut);
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
    PlainPlan plan;
    plan.name = (data.empty() ? "" : nameOf(seed, index, data, {}) + ", ") +
                "tensor parallel over " + listOf(cut);
    plan.arguments.resize(tensors.size());
    for (const auto &[argument, sharding] : spread.cut)
      annotate(plan, argument, sharding);
    plans.push_back(std::move(plan));
  }

  /// The largest dimension of an argument that is one of the result of the first contraction of it,
  /// and that the axes divide.
  std::optional<size_t> resultDimOf(unsigned argument, const AxisList &cut) const {
    const int64_t tensor = tensors[argument];
    const TensorState &state = graph.tensors[tensor];
    if (!llvm::all_of(cut, [&](const AxisRef &axis) { return isOpen(state, axis); }))
      return std::nullopt;
    for (int64_t n : graph.nodesOf[tensor]) {
      const RuleNode &node = graph.nodes[n];
      if (!node.op || !combinesTensors(node.op))
        continue;
      const TensorRule &rule =
          node.rule.operands[llvm::find(node.tensors, tensor) - node.tensors.begin()];
      std::optional<size_t> best;
      for (size_t dim = 0; dim < rule.size(); ++dim) {
        const int64_t extent = state.type.getDimSize(dim);
        if (rule[dim].factors.size() == 1 &&
            node.rule.factors[rule[dim].factors.front()].kind == FactorKind::parallel &&
            extent % (sizeOf(state.given.dims[dim]) * sizeOf(cut)) == 0 &&
            (!best || extent > state.type.getDimSize(*best)))
          best = dim;
      }
      return best;
    }
    return std::nullopt;
  }

  void annotate(PlainPlan &plan, unsigned argument, const TensorSharding &sharding) {
    ShardingAttr given = getSharding(function.getArgument(argument));
    plan.arguments[argument] = ShardingAttr::get(meshName, mesh, sharding, function.getContext(),
                                                 given ? given.getPriority() : -1);
  }

  func::FuncOp function;
  PropagationGraph graph;
  const OpCosts &costs;
  const Mesh &mesh;
  FlatSymbolRefAttr meshName;
  std::vector<int64_t> tensors; ///< by argument, -1 for what is no tensor
  AxisList axes;                ///< of more than one device
  std::set<int64_t> fed;        ///< tensors of arguments that results feed
};

} // namespace

/// The only function of the global view; null where there are several.
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

std::vector<PlainPlan> dist::plainPlans(ModuleOp module, const PortfolioOptions &options) {
  OwningOpRef<ModuleOp> scratch = module.clone();
  const std::string name = freeMeshName(module);
  const size_t declared = MeshTable(module).size();
  std::vector<PlainPlan> plans(1);
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

void dist::writePlan(ModuleOp module, const PlainPlan &plan) {
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
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa<linalg::LinalgOp>(op) && !isa<tensor::TensorDialect>(op->getDialect()))
        return WalkResult::advance();
      OpShardings cut = deriveOpShardings(op, meshes);
      if (!cut.mesh)
        return WalkResult::skip();
      double iterations = 1;
      for (auto [factor, axes] : llvm::zip(cut.rule.factors, cut.axes))
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
      seconds +=
          tripsOf(op) * costs.seconds(op, iterations, elements, meshes.get(cut.mesh).numDevices());
      return WalkResult::skip();
    });
  }
  return seconds;
}
