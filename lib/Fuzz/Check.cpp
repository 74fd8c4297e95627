//===- Check.cpp - Sharded execution equals unsharded execution -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Fuzz/Check.h"

#include "CheckTools.h"
#include "Coverage.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Interpreter/Compare.h"
#include "tessera/Interpreter/RandomInput.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <utility>

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

/// Number of steps that gives a result of the widest floats the tolerance of the narrowest floats
/// that it was computed from: the tolerance grows with the square root of the steps, and f32 allows
/// 1e6 times the error of f64.
static int64_t stepsOfPrecision(ModuleOp module, Type result) {
  if (!result.isF64())
    return 1;
  bool narrow = false;
  module.walk([&](arith::ExtFOp op) { narrow = true; });
  return narrow ? int64_t(1000000) * 1000000 : 1;
}

/// The difference in one result, or an empty string.
static std::string compareResult(const Tensor &actual, const Tensor &expected,
                                 GeneratedProgram::Result known, int64_t steps) {
  if (actual.tensorType() != expected.tensorType())
    return "has another type";
  interpreter::Comparison comparison = interpreter::compare(actual, expected, steps);
  if (known.exact) {
    // Zeros of either sign are equal: contributions of a partial are added to zeros.
    if (comparison.maxError == 0)
      return {};
    comparison.ok = false;
    comparison.tolerance = 0;
  }
  if (comparison.ok)
    return {};
  // If a sum cancels, its rounding error is large relative to it but not to its terms.
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

namespace {

/// The reference results of one program, and their comparison with those of a local view.
class Comparison {
public:
  Comparison(const GeneratedProgram &program, uint64_t seed, const CheckOptions &options)
      : program(program), options(options), module(*program.module), error(module.getContext()) {
    run.poison = options.poison;
    run.maxOperations = 10000000;
    auto arguments = interpreter::globalArguments(module, "main");
    if (failed(arguments))
      return;
    inputs = interpreter::randomInputs(*arguments, seed);
    auto main = module.lookupSymbol<func::FuncOp>("main");
    for (unsigned result = 0; result < main.getNumResults(); ++result) {
      auto fed = main.getResultAttrOfType<IntegerAttr>(result, dist::DistDialect::kFeeds);
      feeds.push_back(fed ? fed.getInt() : -1);
    }
    expected = runSteps(
        [&](ArrayRef<Tensor> values) { return interpreter::runGlobal(main, values, run); });
  }

  bool hasReference() const { return succeeded(expected); }
  /// The first error since the last call.
  std::string takeError() { return std::exchange(error.text, {}); }

  /// Whether some result of the reference is all NaN or constant.
  bool isWeak() const {
    return llvm::any_of(*expected, [](const Tensor &result) {
      return !interpreter::compare(result, result).warnings.empty();
    });
  }

  /// Runs a local view and sets status and message of `result`.
  void compare(ModuleOp local, CheckResult &result) {
    FailureOr<SmallVector<Tensor>> actual =
        options.runLocal ? options.runLocal(local, inputs, program.runs)
                         : runSteps([&](ArrayRef<Tensor> values) {
                             return interpreter::runLocal(local, "main", values, run);
                           });
    if (failed(actual)) {
      result.status = CheckResult::localFailed;
      result.message = takeError();
      return;
    }
    if (actual->size() != expected->size()) {
      result.status = CheckResult::mismatch;
      result.message = "another number of results";
    }
    for (size_t i = 0; i < expected->size() && result.status == CheckResult::passed; ++i) {
      GeneratedProgram::Result known =
          i < program.results.size() ? program.results[i] : GeneratedProgram::Result();
      // Compiled kernels contract and approximate floats.
      known.exact &= !options.runLocal || !isa<FloatType>((*expected)[i].getElementType());
      std::string difference = compareResult(
          (*actual)[i], (*expected)[i], known,
          program.runs * program.steps * stepsOfPrecision(module, (*expected)[i].getElementType()));
      if (difference.empty())
        continue;
      result.status = CheckResult::mismatch;
      result.message = "result " + std::to_string(i) + ": " + difference;
    }
  }

private:
  /// The results of the last of `program.runs` steps; fed results are arguments of the next step.
  FailureOr<SmallVector<Tensor>>
  runSteps(llvm::function_ref<FailureOr<SmallVector<Tensor>>(ArrayRef<Tensor>)> once) const {
    SmallVector<Tensor> values(inputs);
    for (int64_t left = program.runs;; --left) {
      FailureOr<SmallVector<Tensor>> results = once(values);
      if (left <= 1 || failed(results))
        return results;
      for (auto [result, fed] : llvm::zip(*results, feeds))
        if (fed >= 0)
          values[fed] = result;
    }
  }

  const GeneratedProgram &program;
  const CheckOptions &options;
  ModuleOp module;
  FirstError error;
  interpreter::Options run;
  SmallVector<Tensor> inputs;
  SmallVector<int64_t> feeds; ///< by result, the argument of the next step, or -1
  FailureOr<SmallVector<Tensor>> expected = failure();
};

} // namespace

CheckResult fuzz::check(const GeneratedProgram &program, uint64_t seed, const CheckOptions &options,
                        OwningOpRef<ModuleOp> *local, std::vector<PlantedCheck> *planted) {
  CheckResult result;
  result.coverage.programs = 1;
  Comparison comparison(program, seed, options);
  if (!comparison.hasReference()) {
    result.status = CheckResult::referenceFailed;
    result.message = comparison.takeError();
    return result;
  }
  result.coverage.weak = comparison.isWeak();
  OwningOpRef<ModuleOp> lowered(program.module.get().clone());
  bool good = succeeded(runPasses(*lowered, options.propagate));
  if (good) {
    countShardings(result.coverage, *lowered);
    good = succeeded(runPasses(*lowered, options.partition));
  }
  if (good) {
    countCollectives(result.coverage, *lowered);
    comparison.compare(*lowered, result);
  } else {
    result.status = CheckResult::pipelineFailed;
    result.message = comparison.takeError();
  }
  if (planted && result.status == CheckResult::passed)
    for (PlantedCheck &one : *planted) {
      // Unverified: the results must reveal even faults that a verifier would reject.
      OwningOpRef<ModuleOp> faulty(lowered->clone());
      one.applied = one.fault->plant(*faulty);
      if (one.applied)
        comparison.compare(*faulty, one.result);
    }
  if (local)
    *local = std::move(lowered);
  return result;
}
