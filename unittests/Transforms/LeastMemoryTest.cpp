//===- LeastMemoryTest.cpp - Least memory against all plans ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Must precede the headers of dialects, which depend on it.
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "Propagate/Propagation.h"
#include "tessera/Planning/PlanMemory.h"
#include "tessera/Transforms/Search.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A program of products, transpositions and elementwise ops over square matrices and others.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string program() {
    for (int64_t argument = 0; argument < 1 + below(3); ++argument)
      values.push_back({"%a" + std::to_string(argument), {extent(), extent()}});
    std::string arguments, body;
    for (const Matrix &value : values) {
      const char *placement =
          std::array<const char *, 4>{"", "shard(0)", "shard(1)", "replicate"}[below(4)];
      arguments += (arguments.empty() ? "" : ", ") + value.name + ": " + typeOf(value);
      if (*placement)
        arguments += std::string(" {dist.sharding = #dist.sharding<@m, [") + placement + "]>}";
    }
    for (int64_t op = 0; op < 3 + below(2); ++op)
      body += addOp();
    const Matrix &last = values.back();
    return "dist.process_mesh @m(shape = [" + std::to_string(2 << below(2)) +
           "], dim_names = [\"d\"])\nfunc.func @main(" + arguments + ") -> " + typeOf(last) +
           " {\n" + body + "  return " + last.name + " : " + typeOf(last) + "\n}\n";
  }

private:
  struct Matrix {
    std::string name;
    std::array<int64_t, 2> shape;
  };
  int64_t below(int64_t limit) { return static_cast<int64_t>(random() % limit); }
  int64_t extent() { return std::array<int64_t, 3>{32, 64, 96}[below(3)]; }
  static std::string typeOf(const Matrix &value) {
    return "tensor<" + std::to_string(value.shape[0]) + "x" + std::to_string(value.shape[1]) +
           "xf32>";
  }
  /// Prefers later values.
  const Matrix &any() {
    return values[std::max(below(std::ssize(values)), below(std::ssize(values)))];
  }

  std::string addOp() {
    std::string number = std::to_string(values.size()), name = "%v" + number;
    Matrix x = any();
    for (int attempt = 0; attempt < 20; ++attempt) {
      Matrix y = any();
      int64_t kind = below(4);
      if (kind == 0 && x.shape[1] == y.shape[0]) {
        Matrix result{name, {x.shape[0], y.shape[1]}};
        values.push_back(result);
        return "  %z" + number + " = arith.constant dense<0.0> : " + typeOf(result) + "\n  " +
               name + " = linalg.matmul ins(" + x.name + ", " + y.name + " : " + typeOf(x) + ", " +
               typeOf(y) + ") outs(%z" + number + " : " + typeOf(result) + ") -> " +
               typeOf(result) + "\n";
      }
      if (kind == 1 && x.shape == y.shape) {
        values.push_back({name, x.shape});
        return "  " + name + " = arith.addf " + x.name + ", " + y.name + " : " + typeOf(x) + "\n";
      }
      if (kind == 2) {
        Matrix result{name, {x.shape[1], x.shape[0]}};
        values.push_back(result);
        return "  %z" + number + " = tensor.empty() : " + typeOf(result) + "\n  " + name +
               " = linalg.transpose ins(" + x.name + " : " + typeOf(x) + ") outs(%z" + number +
               " : " + typeOf(result) + ") permutation = [1, 0]\n";
      }
    }
    values.push_back({name, x.shape});
    return "  " + name + " = math.tanh " + x.name + " : " + typeOf(x) + "\n";
  }

  std::mt19937 random;
  std::vector<Matrix> values;
};

/// The least peak of all plans; empty if there are too many plans.
std::optional<double> bruteForce(func::FuncOp function, const sharding::Topology &topology,
                                 double mostPlans) {
  MeshTable meshes(function->getParentOfType<ModuleOp>());
  PropagationGraph graph(function, meshes);
  PropagationGraph copy = graph;
  propagateAxes(copy, function.getContext());
  PropagatedPlan propagated;
  for (const std::shared_ptr<const Strategy> &strategy : decide(copy, topology).strategies)
    propagated.strategies.push_back(strategy ? *strategy : Strategy());
  for (const TensorState &state : copy.tensors)
    propagated.shardings.push_back(canonical(state.sharding->closed()));
  StrategyGraph strategies(graph, propagated, topology, {});
  std::vector<int64_t> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    nodes.push_back(strategies.problemNodeOf(static_cast<int64_t>(n)));
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    nodes.push_back(strategies.homeOf(static_cast<int64_t>(t)));
    nodes.push_back(strategies.placeNodeOf(static_cast<int64_t>(t)));
  }
  llvm::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::erase(nodes, -1);
  double plans = 1;
  auto strategiesOf = [&](int64_t node) {
    return std::ssize(strategies.problem().nodes[node].cost);
  };
  for (int64_t node : nodes)
    plans *= static_cast<double>(strategiesOf(node));
  if (plans > mostPlans)
    return std::nullopt;
  std::vector<int64_t> choice(strategies.problem().nodes.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    PlanLiveness lives(function, graph, strategies, choice);
    least = std::min(least, fitInto(0, strategies, graph, lives, choice).peak.bytes);
    size_t at = 0;
    while (at < nodes.size() && ++choice[nodes[at]] == strategiesOf(nodes[at]))
      choice[nodes[at++]] = 0;
    if (at == nodes.size())
      return least;
  }
}

} // namespace

TEST(LeastMemory, EqualToBruteForce) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, scf::SCFDialect, tensor::TensorDialect, DistDialect>();
  constexpr int kPrograms = 160;
  int compared = 0, proved = 0;
  for (unsigned seed = 0; seed < 3000 && compared < kPrograms; ++seed) {
    std::string text = Generator(seed).program();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    PassManager manager(&context, ModuleOp::getOperationName());
    manager.addPass(createDistNormalize());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    SearchSettings settings;
    settings.minimiseMemory();
    auto function = *module->getOps<func::FuncOp>().begin();
    std::optional<double> least = bruteForce(function, settings.topology, 8000);
    if (!least)
      continue;
    ModuleSearch search(*module, settings);
    ASSERT_TRUE(succeeded(search.run()));
    const SearchedPlan &plan = search.plans().front();
    EXPECT_EQ(plan.memory, *least) << "seed " << seed << "\n" << text;
    EXPECT_LE(plan.provedMemory, *least) << "seed " << seed << "\n" << text;
    ++compared;
    proved += plan.provedMemory == *least;
  }
  EXPECT_EQ(compared, kPrograms);
  EXPECT_GT(proved, 0);
}
