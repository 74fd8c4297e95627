//===- MemoryBound.cpp - Lower bound on the memory of all plans -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/MemoryBound.h"

#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/MemoryProfile.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/BitVector.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Smaller products (in multiplications per device) may be computed within a kernel.
static constexpr double kLeastProduct = 4096;
/// Limit on the ops of a function with a dependence matrix.
static constexpr size_t kMostOps = 8000;

/// Whether an op only moves the elements of one operand: readers may read them from the operand.
static bool isMover(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumDpsInputs() == 1 &&
         (isa<linalg::TransposeOp, linalg::BroadcastOp>(op) ||
          linalgOp.getBlock()->getTerminator()->getOperand(0) ==
              linalgOp.getBlock()->getArgument(0));
}

/// The value from which the elements of a value may be read.
static Value sourceOf(Value value) {
  for (Operation *op = value.getDefiningOp(); op && (Liveness::isView(op) || isMover(op));
       op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

namespace {

class Bounder {
public:
  Bounder(func::FuncOp function, const PropagationGraph &graph, const StrategyGraph &strategies);
  MemoryBound run();

private:
  bool isProduct(const RuleNode &node);
  double ownBytes(int64_t node) const;
  double operandBytes(Value value, const TensorSharding &need, RankedTensorType type) const;
  double bytesBeside(Operation *op) const;
  bool takesBytes(Operation *op) const;
  void findDependences();

  func::FuncOp function;
  const PropagationGraph &graph;
  const StrategyGraph &strategies;
  Liveness lives;
  std::vector<Operation *> ops;                                ///< of the function's block
  llvm::DenseMap<Operation *, size_t> number;                  ///< looked up, never iterated
  std::vector<llvm::BitVector> behind;                         ///< by op: ops on which it depends
  std::vector<std::pair<size_t, std::vector<size_t>>> readers; ///< of results, by op
};

} // namespace

Bounder::Bounder(func::FuncOp function, const PropagationGraph &graph,
                 const StrategyGraph &strategies)
    : function(function), graph(graph), strategies(strategies), lives(function) {
  for (Operation &op : function.front()) {
    number[&op] = ops.size();
    ops.push_back(&op);
  }
  if (ops.size() <= kMostOps)
    findDependences();
}

void Bounder::findDependences() {
  behind.assign(ops.size(), llvm::BitVector(ops.size()));
  for (size_t i = 0; i < ops.size(); ++i) {
    SetVector<Value> used(ops[i]->operand_begin(), ops[i]->operand_end());
    getUsedValuesDefinedAbove(ops[i]->getRegions(), used);
    for (Value value : used)
      if (Operation *producer = value.getDefiningOp())
        if (auto it = number.find(producer); it != number.end()) {
          behind[i] |= behind[it->second];
          behind[i].set(it->second);
        }
  }
  // Readers of an op's result, through views and moves.
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!takesBytes(ops[i]))
      continue;
    std::vector<size_t> users;
    SmallVector<Value> values(ops[i]->result_begin(), ops[i]->result_end());
    for (size_t next = 0; next < values.size(); ++next)
      for (Operation *user : values[next].getUsers()) {
        Operation *place = function.front().findAncestorOpInBlock(*user);
        if (place == user && (Liveness::isView(user) || isMover(user)))
          llvm::append_range(values, user->getResults());
        else
          users.push_back(number.lookup(place));
      }
    readers.push_back({i, std::move(users)});
  }
}

/// Whether the op produces one tensor that must be in memory until its last read.
bool Bounder::takesBytes(Operation *op) const {
  if (op->getNumResults() != 1 || !isa<linalg::LinalgOp>(op) || isMover(op))
    return false;
  Liveness::LiveRange life = lives.of(op->getResult(0));
  return life.to >= life.from && life.kind != Liveness::Kind::view &&
         graph.tensorOf(op->getResult(0)) >= 0;
}

bool Bounder::isProduct(const RuleNode &node) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(node.op);
  if (!linalgOp || node.op->getBlock() != &function.front() ||
      !linalg::isaContractionOpInterface(linalgOp) || !takesBytes(node.op))
    return false;
  double products = 1;
  for (int64_t extent : linalgOp.getStaticLoopRanges())
    products *= static_cast<double>(extent);
  auto devices = static_cast<double>(graph.tensors[node.tensors.back()].mesh->numDevices());
  return products >= kLeastProduct * devices;
}

/// The bytes of a product's operand in addition to the smallest form of the arguments.
double Bounder::operandBytes(Value value, const TensorSharding &need, RankedTensorType type) const {
  double bytes = bytesOnDevice(need, type);
  if (!isa<BlockArgument>(value))
    return isa<BlockArgument>(sourceOf(value)) ? 0 : bytes;
  // The argument is larger, or a separate copy is needed.
  int64_t tensor = graph.tensorOf(value);
  double least = std::numeric_limits<double>::infinity();
  for (const TensorSharding *home : strategies.homesOf(tensor)) {
    bool isSent = false;
    for (size_t dim = 0; dim < home->dims.size(); ++dim)
      isSent |= !home->dims[dim].empty() && need.dims[dim].empty();
    least = std::min(least, bytesOnDevice(*home, type) + (isSent ? bytes : 0));
  }
  return least - strategies.leastBytes(tensor);
}

double Bounder::ownBytes(int64_t index) const {
  const RuleNode &node = graph.nodes[index];
  double least = std::numeric_limits<double>::infinity();
  for (const Strategy &strategy : strategies.strategiesOf(index)) {
    std::vector<std::pair<Value, double>> operands; // one per source
    for (size_t i = 0; i < 2; ++i) {
      Value value = node.op->getOperand(static_cast<unsigned>(i)), source = sourceOf(value);
      Liveness::LiveRange life = lives.of(source);
      bool isMoved = value.getDefiningOp() && isMover(value.getDefiningOp());
      if (node.tensors[i] < 0 || isMoved || life.to < life.from)
        continue;
      double bytes = operandBytes(value, shardingUnder(node, i, strategy),
                                  graph.tensors[node.tensors[i]].type);
      auto known = llvm::find_if(operands, [&](auto &other) { return other.first == source; });
      if (known == operands.end())
        operands.push_back({source, bytes});
      else
        known->second = std::max(known->second, bytes);
    }
    size_t result = node.tensors.size() - 1;
    double bytes = bytesOnDevice(shardingUnder(node, result, strategy),
                                 graph.tensors[node.tensors[result]].type);
    // A result may reuse the buffer of an argument or an accumulator.
    if (lives.of(node.op->getResult(0)).kind != Liveness::Kind::own ||
        llvm::any_of(node.op->getUsers(),
                     [](Operation *user) { return isa<func::ReturnOp>(user); }))
      bytes = 0;
    for (auto &[source, size] : operands)
      bytes += size;
    least = std::min(least, bytes);
  }
  return std::isfinite(least) ? least : 0;
}

/// The bytes live while the op runs, in any order of ops, besides its operands and results.
double Bounder::bytesBeside(Operation *op) const {
  size_t at = number.lookup(op);
  if (behind.empty())
    return 0;
  std::vector<Value> own{sourceOf(op->getOperand(0)), sourceOf(op->getOperand(1))};
  double bytes = 0;
  for (auto &[made, users] : readers) {
    Value value = ops[made]->getResult(0);
    bool isRead = llvm::any_of(users, [&](size_t reader) { return behind[reader].test(at); });
    if (!behind[at].test(made) || !isRead || llvm::is_contained(own, value))
      continue;
    const TensorState &state = graph.tensors[graph.tensorOf(value)];
    double whole = static_cast<double>(state.type.getNumElements()) *
                   static_cast<double>(bytesPerElement(state.type.getElementType()));
    auto devices = static_cast<double>(state.mesh->numDevices());
    bytes += alignedBytes(whole / devices);
  }
  return bytes;
}

MemoryBound Bounder::run() {
  MemoryBound bound;
  for (Value argument : function.getArguments())
    if (int64_t tensor = graph.tensorOf(argument); tensor >= 0)
      bound.bytes += strategies.leastBytes(tensor);
  double arguments = bound.bytes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!isProduct(graph.nodes[n]))
      continue;
    Operation *op = graph.nodes[n].op;
    double bytes = arguments + ownBytes(static_cast<int64_t>(n)) + bytesBeside(op);
    if (bytes > bound.bytes)
      bound = {bytes, op};
  }
  return bound;
}

MemoryBound dist::provedMemory(func::FuncOp function, const PropagationGraph &graph,
                               const StrategyGraph &strategies) {
  return Bounder(function, graph, strategies).run();
}
