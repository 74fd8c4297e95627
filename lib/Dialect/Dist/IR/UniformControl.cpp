//===- UniformControl.cpp - Uniform control flow (rule C5) ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A forward dataflow analysis of a local function. The lattice value is the set of mesh
// axes along which devices may hold different values; empty: uniform. Sets only grow,
// so passes over the function in program order reach a fixpoint, also with loops.
//
//   dist.axis_index over ["x"]                         {x}
// an argument with [shard(0), replicate]             {x} of a mesh x, y
//   arith.addi of a {x} and a {y}                      {x, y}
//   dist.all_reduce of a {x, y} over ["x"]             {y}
//   the results of an scf.if with an {x} condition     at least {x}
//
//===----------------------------------------------------------------------===//

#include "UniformControl.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// Axes by mesh name.
using Axes = std::set<std::pair<StringRef, sharding::AxisRef>>;

class Divergence {
public:
  explicit Divergence(FunctionOpInterface function) {
    for (BlockArgument argument : function.getArguments())
      if (ShardingAttr own = getSharding(argument))
        join(argument, axesOf(function, own, getGlobalTypeOf(argument)));
    settle(function.getFunctionBody().front());
  }

  /// For a called function, with the sets of the operands for its arguments, at this call depth.
  Divergence(Block &body, ArrayRef<Axes> operands, int depth) : depth(depth) {
    for (auto [argument, axes] : llvm::zip(body.getArguments(), operands))
      join(argument, axes);
    settle(body);
  }

  const Axes &of(Value value) const {
    static const Axes none;
    auto it = facts.find(value);
    return it == facts.end() ? none : it->second;
  }

private:
  void settle(Block &body) {
    while (std::exchange(changed, false))
      visit(body);
  }

  static Type getGlobalTypeOf(Value value) {
    return isa<RankedTensorType>(value.getType()) ? Type(getGlobalType(value)) : value.getType();
  }

  void join(Value value, const Axes &axes) {
    if (axes.empty())
      return;
    Axes &own = facts[value];
    size_t before = own.size();
    own.insert(axes.begin(), axes.end());
    changed |= own.size() != before;
  }
  void joinAll(ValueRange values, const Axes &axes) {
    for (Value value : values)
      join(value, axes);
  }
  /// Each target takes the set of the source at its position. Results of control flow end here.
  void joinEach(ValueRange targets, ValueRange sources) {
    for (auto [target, source] : llvm::zip(targets, sources))
      join(target, Axes(of(source)));
  }

  static std::optional<sharding::Mesh> meshAt(Operation *at, FlatSymbolRefAttr name) {
    ProcessMeshOp declared = lookupMesh(at, name);
    if (!declared)
      return std::nullopt;
    return declared.getMesh();
  }

  static Axes named(FlatSymbolRefAttr mesh, const sharding::AxisList &axes) {
    Axes result;
    for (const sharding::AxisRef &axis : axes)
      if (axis.size > 1)
        result.insert({mesh.getValue(), axis});
    return result;
  }

  /// The axes along which a tensor of this sharding differs.
  static Axes axesOf(Operation *at, ShardingAttr sharding, Type global) {
    std::optional<sharding::Mesh> mesh = meshAt(at, sharding.getMesh());
    if (!mesh)
      return {}; // reported at its place
    ScopedDiagnosticHandler silence(at->getContext(), [](Diagnostic &) { return success(); });
    auto resolved = sharding.resolve(*mesh, global, [&]() { return at->emitError(); });
    return succeeded(resolved) ? named(sharding.getMesh(), resolved->usedAxes()) : Axes();
  }

  static sharding::AxisList groupOf(Operation *op, AxisListAttr axes, const sharding::Mesh &mesh) {
    sharding::AxisList all;
    for (size_t axis = 0; axis < mesh.shape.size(); ++axis)
      all.push_back(sharding::AxisRef::full(mesh, axis));
    if (!axes)
      return all;
    ScopedDiagnosticHandler silence(op->getContext(), [](Diagnostic &) { return success(); });
    auto list = resolveAxes(axes, mesh, [&]() { return op->emitError(); });
    return succeeded(list) ? *list : all;
  }

  Axes ofOperands(Operation *op) {
    Axes result;
    for (Value operand : op->getOperands())
      result.insert(of(operand).begin(), of(operand).end());
    return result;
  }

  void visit(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }

  void visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitFor(loop);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return visitWhile(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return visitIf(branch);
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return visitCollective(collective);
    if (auto recv = dyn_cast<RecvOp>(op))
      return join(recv.getResult(), axesOf(op, recv.getTarget(), recv.getGlobalType()));
    if (auto index = dyn_cast<AxisIndexOp>(op)) {
      if (std::optional<sharding::Mesh> mesh = meshAt(op, index.getMeshAttr()))
        join(index.getResult(), named(index.getMeshAttr(), groupOf(op, index.getAxes(), *mesh)));
      return;
    }
    if (auto start = dyn_cast<StartOp>(op)) {
      visit(start.getBody().front());
      return joinAll(op->getResults(), ofOperands(start.getBody().front().getTerminator()));
    }
    constexpr int kMostCalls = 8; // a function may call itself
    if (auto call = dyn_cast<CallOpInterface>(op); call && depth < kMostCalls)
      if (Block *body = calledBody(call)) {
        SmallVector<Axes> operands;
        for (Value operand : call.getArgOperands())
          operands.push_back(of(operand));
        Divergence inside(*body, operands, depth + 1);
        for (auto [result, returned] :
             llvm::zip(op->getResults(), body->getTerminator()->getOperands()))
          join(result, inside.of(returned));
        return;
      }
    if (Block *body = evaluatedBody(op)) {
      visit(*body);
      return joinEach(op->getResults(), body->getTerminator()->getOperands());
    }
    // Any other op depends on its operands and on the values that its regions read.
    Axes axes = ofOperands(op);
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) { axes.merge(ofOperands(inner)); });
    joinAll(op->getResults(), axes);
  }

  /// The body of the called function, if it is one block and in reach.
  static Block *calledBody(CallOpInterface call) {
    auto callee = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
    bool known = callee && callee->getNumRegions() == 1 && !callee.isExternal() &&
                 llvm::hasSingleElement(callee.getFunctionBody()) &&
                 call.getArgOperands().size() == callee.getNumArguments();
    return known ? &callee.getFunctionBody().front() : nullptr;
  }

  /// The block of an op that only evaluates it and yields its values, such as a group of ops that
  /// become one kernel.
  static Block *evaluatedBody(Operation *op) {
    if (op->getNumRegions() != 1 || !llvm::hasSingleElement(op->getRegion(0)) ||
        op->getNumOperands() > 0)
      return nullptr;
    Block &body = op->getRegion(0).front();
    bool handsOn = body.getNumArguments() == 0 && body.mightHaveTerminator() &&
                   body.getTerminator()->getOperandTypes() == op->getResultTypes();
    return handsOn ? &body : nullptr;
  }

  void visitFor(scf::ForOp loop) {
    Axes bounds;
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      bounds.insert(of(bound).begin(), of(bound).end());
    joinAll(loop.getRegionIterArgs(), bounds);
    join(loop.getInductionVar(), bounds);
    joinEach(loop.getRegionIterArgs(), loop.getInitArgs());
    visit(*loop.getBody());
    joinEach(loop.getRegionIterArgs(), loop.getYieldedValues());
    joinEach(loop.getResults(), loop.getRegionIterArgs());
  }

  void visitWhile(scf::WhileOp loop) {
    joinEach(loop.getBeforeArguments(), loop.getInits());
    visit(*loop.getBeforeBody());
    joinAll(loop.getBeforeArguments(), Axes(of(loop.getConditionOp().getCondition())));
    joinEach(loop.getAfterArguments(), loop.getConditionOp().getArgs());
    joinEach(loop.getResults(), loop.getConditionOp().getArgs());
    joinAll(loop.getResults(), Axes(of(loop.getConditionOp().getCondition())));
    visit(*loop.getAfterBody());
    joinEach(loop.getBeforeArguments(), loop.getYieldOp()->getOperands());
  }

  void visitIf(scf::IfOp branch) {
    joinAll(branch.getResults(), Axes(of(branch.getCondition())));
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      if (region->empty())
        continue;
      visit(region->front());
      joinEach(branch.getResults(), region->front().getTerminator()->getOperands());
    }
  }

  void visitCollective(CollectiveOpInterface op) {
    std::optional<sharding::Mesh> mesh = meshAt(op, op.getMeshAttr());
    if (!mesh)
      return;
    sharding::AxisList group = groupOf(op, op.getGroupAxes(), *mesh);
    bool whole = sharding::sizeOf(group) == mesh->numDevices();
    ArrayAttr targets = op.getTargetsAttr(), globals = op.getGlobalTypesAttr();
    for (auto [index, operand, result] : llvm::enumerate(op->getOperands(), op->getResults())) {
      // Members agree on values that all of them receive whole; their own parts differ.
      Axes axes;
      for (const auto &fact : of(operand)) {
        bool reduced = fact.first == op.getMeshAttr().getValue() &&
                       llvm::any_of(group, [&](const sharding::AxisRef &axis) {
                         return axis.contains(fact.second);
                       });
        if (!whole && !reduced)
          axes.insert(fact);
      }
      if (!isa<AllReduceOp, AllGatherOp, BroadcastOp>(op.getOperation())) {
        Axes own = targets && globals ? axesOf(op, cast<ShardingAttr>(targets[index]),
                                               cast<TypeAttr>(globals[index]).getValue())
                                      : named(op.getMeshAttr(), group);
        axes.merge(own);
      }
      join(result, axes);
    }
  }

  llvm::DenseMap<Value, Axes> facts; // looked up, never iterated
  bool changed = true;
  int depth = 0;
};

/// Whether a device waits at this op for others.
bool waits(Operation *op) {
  return isa<SendOp, RecvOp>(op) ||
         (isa<CollectiveOpInterface>(op) && !isa<SliceOp, MakePartialOp>(op));
}

/// The values that control a loop or branch; empty for other ops.
SmallVector<Value> controlValues(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.getCondition()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getCondition()};
  return {};
}

/// Whether `op` is the first op in `parent` that waits. It represents the later ones, so that a
/// loop is analyzed once, not once per collective.
bool isFirst(Operation *op, Operation *parent) {
  Operation *first = nullptr;
  parent->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    first = inner;
    return inner != parent && waits(inner) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return first == op;
}

} // namespace

LogicalResult dist::verifyUniformControl(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!waits(op) || !function)
    return success();
  std::optional<Divergence> divergence; // created on demand
  for (Operation *parent = op->getParentOp(); parent && parent != function;
       parent = parent->getParentOp()) {
    SmallVector<Value> values = controlValues(parent);
    llvm::erase_if(values, [](Value value) {
      Operation *producer = value.getDefiningOp();
      return producer && producer->hasTrait<OpTrait::ConstantLike>();
    });
    if (values.empty() || !isFirst(op, parent))
      continue;
    if (!divergence)
      divergence.emplace(function);
    for (Value value : values) {
      const Axes &axes = divergence->of(value);
      if (axes.empty())
        continue;
      auto [name, axis] = *axes.begin();
      ProcessMeshOp mesh = lookupMesh(op, FlatSymbolRefAttr::get(op->getContext(), name));
      return op->emitOpError() // (C5)
             << "is nested in '" << parent->getName() << "', whose control flow may differ between "
             << "devices along axis '" << mesh.getMesh().axisNames[axis.axis] << "' of mesh '"
             << name << "': some would wait forever; use a condition that is equal on all devices";
    }
  }
  return success();
}
