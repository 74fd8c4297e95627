//===- Check.cpp - Sharded execution equals unsharded execution -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Fuzz/Check.h"

#include "CheckTools.h"
#include "Coverage.h"
#include "tessera/Interpreter/Compare.h"
#include "tessera/Interpreter/RandomInput.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
using interpreter::Tensor;

const char *fuzz::toString(CheckResult::Status status) {
  switch (status) {
  case CheckResult::passed:
    return "passed";
  case CheckResult::referenceFailed:
    return "reference";
  case CheckResult::pipelineFailed:
    return "pipeline";
  case CheckResult::localFailed:
    return "local";
  case CheckResult::mismatch:
    return "mismatch";
  }
  llvm_unreachable("all statuses are listed");
}

LogicalResult fuzz::runPasses(ModuleOp module, StringRef pipeline) {
  PassManager manager(module->getName());
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline);
  if (failed(parsed))
    return mlir::emitError(module.getLoc()) << "pipeline '" << pipeline << "' does not parse";
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  return manager.run(module);
}

/// Steps by which a result of the widest floats may err like the narrowest that it was computed
/// from: the tolerance grows with their square root, f32 allows 1e6 times what f64 does.
static int64_t stepsOfPrecision(ModuleOp module, Type result) {
  if (!result.isF64())
    return 1;
  bool narrow = false;
  module.walk([&](arith::ExtFOp op) { narrow = true; });
  return narrow ? int64_t(1000000) * 1000000 : 1;
}

/// What differs in one result, or nothing.
static std::string compareResult(const Tensor &actual, const Tensor &expected,
                                 const GeneratedProgram::Result &known, int64_t steps) {
  if (actual.tensorType() != expected.tensorType())
    return "has another type";
  interpreter::Comparison comparison = interpreter::compare(actual, expected, steps);
  if (known.exact) {
    // Zeros of either sign are the same: contributions of a partial are added to zeros.
    if (comparison.maxError == 0)
      return {};
    comparison.ok = false;
    comparison.tolerance = 0;
  }
  if (comparison.ok)
    return {};
  // Where a sum cancels, its rounding error is large beside it but not beside its terms.
  bool isFloat = expected.element().isFloat();
  if (!known.exact && isFloat && known.bound > 0) {
    double slack = comparison.tolerance * known.bound / 10;
    bool close = true;
    for (int64_t i = 0; i < expected.numElements() && close; ++i) {
      double a = actual.load(i).f, b = expected.load(i).f;
      close = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= slack;
    }
    if (close)
      return {};
  }
  return describe(comparison, actual, expected);
}

CheckResult fuzz::check(const GeneratedProgram &program, uint64_t seed, const CheckOptions &options,
                        OwningOpRef<ModuleOp> *local) {
  CheckResult result;
  result.coverage.programs = 1;
  ModuleOp module = *program.module;
  FirstError error(module.getContext());
  auto fail = [&](CheckResult::Status status, const std::string &message) {
    result.status = status;
    result.message = message;
    return result;
  };

  interpreter::Options run;
  run.poison = options.poison;
  run.maxOperations = 10000000;
  auto arguments = interpreter::globalArguments(module, "main");
  if (failed(arguments))
    return fail(CheckResult::referenceFailed, error.text);
  SmallVector<Tensor> inputs = interpreter::randomInputs(*arguments, seed);
  auto expected = interpreter::runGlobal(module.lookupSymbol<func::FuncOp>("main"), inputs, run);
  if (failed(expected))
    return fail(CheckResult::referenceFailed, error.text);

  OwningOpRef<ModuleOp> lowered(module.clone());
  bool good = succeeded(runPasses(*lowered, options.propagate));
  if (good) {
    countShardings(result.coverage, *lowered);
    good = succeeded(runPasses(*lowered, options.partition));
  }
  if (good)
    countCollectives(result.coverage, *lowered);
  FailureOr<SmallVector<Tensor>> actual;
  if (good)
    actual = interpreter::runLocal(*lowered, "main", inputs, run);
  if (local)
    *local = std::move(lowered);
  if (!good)
    return fail(CheckResult::pipelineFailed, error.text);
  if (failed(actual))
    return fail(CheckResult::localFailed, error.text);
  if (actual->size() != expected->size())
    return fail(CheckResult::mismatch, "another number of results");
  for (size_t i = 0; i < expected->size(); ++i) {
    GeneratedProgram::Result known =
        i < program.results.size() ? program.results[i] : GeneratedProgram::Result();
    std::string difference =
        compareResult((*actual)[i], (*expected)[i], known,
                      program.steps * stepsOfPrecision(module, (*expected)[i].getElementType()));
    if (!difference.empty())
      return fail(CheckResult::mismatch, "result " + std::to_string(i) + ": " + difference);
    result.coverage.weak |= !interpreter::compare((*expected)[i], (*expected)[i]).warnings.empty();
  }
  return result;
}
