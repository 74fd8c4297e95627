//===- InterpretPass.cpp - Running a program from tessera-opt -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/Interpreter.h"
#include "tessera/Interpreter/Passes.h"
#include "tessera/Interpreter/RandomInput.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::interpreter;

namespace tessera::interpreter {
#define GEN_PASS_DEF_INTERPRET
#include "tessera/Interpreter/Passes.h.inc"
} // namespace tessera::interpreter

namespace {

struct Interpret : tessera::interpreter::impl::InterpretBase<Interpret> {
  using InterpretBase::InterpretBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Options> options = getOptions();
    if (failed(options))
      return signalPassFailure();
    SmallVector<std::string> names = runnableFunctions(getOperation());
    if (!function.empty())
      names = {function};
    for (const std::string &name : names)
      if (failed(runOne(name, *options)))
        return signalPassFailure();
  }

private:
  FailureOr<Options> getOptions() {
    static const std::pair<StringRef, Poison> kinds[] = {
        {"nan", Poison::nan}, {"high", Poison::high}, {"low", Poison::low}, {"zero", Poison::zero}};
    for (auto [text, kind] : kinds)
      if (poison == text)
        return Options{kind};
    return mlir::emitError(getOperation().getLoc())
           << "poison '" << poison << "' is not one of nan, high, low, zero";
  }

  LogicalResult runOne(StringRef name, const Options &options) {
    ModuleOp module = getOperation();
    FailureOr<SmallVector<Argument>> arguments = globalArguments(module, name);
    if (failed(arguments))
      return failure();
    SmallVector<Tensor> inputs = randomInputs(*arguments, seed);
    FailureOr<SmallVector<Tensor>> results =
        hasLocalView(module) ? runLocal(module, name, inputs, options)
                             : runGlobal(module.lookupSymbol<func::FuncOp>(name), inputs, options);
    if (failed(results))
      return failure();
    llvm::outs() << "@" << name << "\n";
    for (auto [index, result] : llvm::enumerate(*results))
      printResult(index, result);
    llvm::outs().flush();
    return success();
  }

  void printResult(size_t index, const Tensor &result) {
    llvm::raw_ostream &os = llvm::outs();
    os << "result" << index << " : ";
    if (result.rank() == 0)
      os << result.getElementType();
    else
      os << result.tensorType();
    os << " = ";
    if (result.numElements() > elements)
      os << "<" << result.numElements() << " elements>";
    else
      print(os, result);
    os << "\n";
  }
};

} // namespace
