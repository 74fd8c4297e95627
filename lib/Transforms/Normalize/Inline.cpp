//===- Inline.cpp - Inline all calls --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Inline.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class Inliner {
public:
  Inliner(ModuleOp module, bool keepCustom) : symbols(module), keepCustom(keepCustom) {}

  /// Inlines every call in a function, callees first.
  LogicalResult run(func::FuncOp function) {
    if (failed(count(function)))
      return failure();
    inlineCallsOf(function);
    return success();
  }

private:
  enum class State { fresh, counting, counted, inlined };

  SmallVector<func::CallOp> callsOf(func::FuncOp function) const {
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) {
      if (!keepCustom || !call->hasAttr(DistDialect::kCustomVjp))
        calls.push_back(call);
    });
    return calls;
  }

  /// Checks the transitive calls of a function, and counts its operations after inlining: nested
  /// calls multiply, so that a short program may exceed the memory.
  LogicalResult count(func::FuncOp function) {
    if (State state = states[function]; state != State::fresh) {
      if (state == State::counting)
        return function.emitError() << "'" << function.getSymName()
                                    << "' calls itself; recursion is not supported, write a loop";
      return success();
    }
    states[function] = State::counting;
    int64_t size = 0;
    function.walk([&](Operation *) { ++size; });
    for (func::CallOp call : callsOf(function)) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee)
        return call.emitError() << "calls '" << call.getCallee()
                                << "', which is not a function of the module";
      if (callee.isExternal())
        return call.emitError() << "calls '" << call.getCallee() << "', which has no body";
      if (failed(count(callee)))
        return failure();
      size += sizes.lookup(callee);
      if (size > kMaxSize)
        return call.emitError() << "calls '" << call.getCallee() << "', and with it '"
                                << function.getSymName() << "' has more than " << kMaxSize
                                << " operations; write a loop";
    }
    sizes[function] = size;
    states[function] = State::counted;
    return success();
  }

  void inlineCallsOf(func::FuncOp function) {
    if (states[function] == State::inlined)
      return;
    states[function] = State::inlined;
    for (func::CallOp call : callsOf(function)) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      inlineCallsOf(callee);
      inlineOne(call, callee);
    }
  }

  static Value constrain(OpBuilder &builder, Location loc, Value value, Attribute sharding) {
    if (!sharding)
      return value;
    return ShardTensorOp::create(builder, loc, value.getType(), value,
                                 cast<ShardingAttr>(sharding));
  }

  void inlineOne(func::CallOp call, func::FuncOp callee) {
    OpBuilder builder(call);
    IRMapping mapping;
    for (auto [index, argument] : llvm::enumerate(callee.getArguments()))
      mapping.map(argument, constrain(builder, call.getLoc(), call.getOperand(index),
                                      callee.getArgAttr(index, DistDialect::kSharding)));
    for (Operation &op : callee.getBody().front().without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      copy->setLoc(CallSiteLoc::get(op.getLoc(), call.getLoc()));
      copyPipelineMarks(call, copy);
    }
    Operation *terminator = callee.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands()))
      call.getResult(index).replaceAllUsesWith(
          constrain(builder, call.getLoc(), mapping.lookup(value),
                    callee.getResultAttr(index, DistDialect::kSharding)));
    call.erase();
  }

  static constexpr int64_t kMaxSize = 1000000;

  SymbolTable symbols;
  bool keepCustom;
  llvm::DenseMap<Operation *, int64_t> sizes; // looked up, never iterated
  llvm::MapVector<Operation *, State> states; // looked up, never iterated
};

} // namespace

LogicalResult dist::inlineCalls(ModuleOp module) {
  Inliner inliner(module, /*keepCustom=*/false);
  llvm::SmallPtrSet<Operation *, 8> called;
  SymbolTable symbols(module);
  module.walk([&](func::CallOp call) {
    if (Operation *callee = symbols.lookup(call.getCallee()))
      called.insert(callee);
    if (auto custom = call->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kCustomVjp))
      if (Operation *derivative = symbols.lookup(custom.getValue()))
        called.insert(derivative);
  });
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (failed(inliner.run(function)))
      return failure();
  for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function.isPrivate() && called.contains(function))
      function.erase();
  return success();
}

LogicalResult dist::inlineCallsForDerivative(func::FuncOp function) {
  return Inliner(function->getParentOfType<ModuleOp>(), /*keepCustom=*/true).run(function);
}
