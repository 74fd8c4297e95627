//===- CheckGradient.cpp - Derivatives against differences ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckTools.h"
#include "tessera/Fuzz/Check.h"
#include "tessera/Interpreter/RandomInput.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
using interpreter::Tensor;

namespace {

/// F(x) = sum of cotangent · result over all float results, as a function of the step along one
/// direction.
class Line {
public:
  Line(func::FuncOp function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> cotangents,
       ArrayRef<Tensor> direction, const interpreter::Options &run)
      : function(function), inputs(inputs), cotangents(cotangents), direction(direction), run(run) {
  }

  FailureOr<double> at(double step) {
    SmallVector<Tensor> moved(inputs);
    for (auto [tensor, along] : llvm::zip_equal(moved, direction))
      if (tensor.element().isFloat())
        for (int64_t i = 0; i < tensor.numElements(); ++i)
          tensor.store(i, interpreter::Scalar::ofFloat(tensor.load(i).f + step * along.load(i).f));
    auto results = interpreter::runGlobal(function, moved, run);
    if (failed(results))
      return failure();
    double sum = 0;
    size_t next = 0;
    for (const Tensor &result : *results)
      if (result.element().isFloat()) {
        const Tensor &cotangent = cotangents[next++];
        for (int64_t i = 0; i < result.numElements(); ++i)
          sum += cotangent.load(i).f * result.load(i).f;
      }
    magnitude = std::max(magnitude, std::fabs(sum));
    return sum;
  }
  /// Central difference of step h, extrapolated once: an error of order h^4 (Richardson, 1911).
  FailureOr<double> slope(double h) {
    double values[4], steps[4] = {h, -h, h / 2, -h / 2};
    for (int i = 0; i < 4; ++i) {
      FailureOr<double> value = at(steps[i]);
      if (failed(value))
        return failure();
      values[i] = *value;
    }
    double coarse = (values[0] - values[1]) / (2 * h), fine = (values[2] - values[3]) / h;
    return (4 * fine - coarse) / 3;
  }
  double magnitude = 0; ///< of F at the evaluated points

private:
  func::FuncOp function;
  ArrayRef<Tensor> inputs, cotangents, direction;
  const interpreter::Options &run;
};

} // namespace

static double norm(const Tensor &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    sum += tensor.load(i).f * tensor.load(i).f;
  return std::sqrt(sum);
}

/// A direction over all arguments, or over one of them in turn: the error of a small gradient must
/// not be hidden by a large one.
static SmallVector<Tensor> anyDirection(ArrayRef<interpreter::Argument> arguments, uint64_t seed,
                                        int number) {
  SmallVector<Tensor> direction = interpreter::randomInputs(arguments, seed + 1 + number);
  SmallVector<size_t> floats;
  for (auto [i, tensor] : llvm::enumerate(direction))
    if (tensor.element().isFloat())
      floats.push_back(i);
  for (size_t i : floats)
    if (number > 0 && i != floats[number % floats.size()])
      direction[i] = Tensor(direction[i].getElementType(), direction[i].shape());
  return direction;
}

/// Compares the gradient with differences; returns the error, or an empty string.
static FailureOr<std::string>
compareDirections(func::FuncOp function, ArrayRef<interpreter::Argument> arguments,
                  ArrayRef<Tensor> inputs, ArrayRef<Tensor> cotangents, ArrayRef<Tensor> gradients,
                  uint64_t seed, const GradientOptions &options, const interpreter::Options &run,
                  Coverage &coverage) {
  for (int number = 0; number < options.directions; ++number) {
    SmallVector<Tensor> direction = anyDirection(arguments, seed, number);
    double predicted = 0, scale = 0;
    size_t next = 0;
    for (const Tensor &along : direction) {
      if (!along.element().isFloat())
        continue;
      const Tensor &gradient = gradients[next++];
      double length = norm(along);
      for (int64_t i = 0; i < along.numElements(); ++i)
        predicted += gradient.load(i).f * along.load(i).f;
      if (length > 0)
        scale = std::max(scale, norm(gradient) * length /
                                    std::sqrt(static_cast<double>(along.numElements())));
    }
    Line line(function, inputs, cotangents, direction, run);
    bool compared = false;
    for (double h : {1e-3, 1e-4}) {
      FailureOr<double> first = line.slope(h), second = line.slope(h / 4);
      if (failed(first) || failed(second))
        return failure();
      // Differences cannot resolve the rounding of F divided by the step.
      double noise = 1e-13 * line.magnitude / h;
      double allowed =
          options.tolerance * std::max({std::fabs(predicted), std::fabs(*first), scale}) + noise;
      if (!(std::fabs(*first - *second) <= allowed))
        continue; // a kink is near
      compared = true;
      if (std::fabs(*first - predicted) <= allowed)
        break;
      std::string text;
      llvm::raw_string_ostream(text)
          << "direction " << number << ": the gradient says " << llvm::format("%.12g", predicted)
          << ", differences say " << llvm::format("%.12g", *first) << " and "
          << llvm::format("%.12g", *second);
      return text;
    }
    ++(compared ? coverage.directions : coverage.kinks);
  }
  return std::string();
}

CheckResult fuzz::checkGradient(const GeneratedProgram &program, uint64_t seed,
                                const GradientOptions &options) {
  CheckResult result;
  result.coverage.programs = 1;
  ModuleOp module = *program.module;
  FirstError error(module.getContext());
  auto fail = [&](CheckResult::Status status, const std::string &message) {
    result.status = status;
    result.message = message;
    return result;
  };
  auto function = module.lookupSymbol<func::FuncOp>("main");
  auto isFloat = [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); };
  if (function && (llvm::none_of(function.getArgumentTypes(), isFloat) ||
                   llvm::none_of(function.getResultTypes(), isFloat)))
    return result; // nothing to differentiate

  GeneratedProgram derivative;
  derivative.steps = program.steps * 2;
  derivative.module = module.clone();
  if (failed(runPasses(*derivative.module,
                       "builtin.module(dist-guard,dist-autodiff{function=main seed=argument})")))
    return fail(CheckResult::pipelineFailed, error.text);
  // The derivative replaces the program.
  derivative.module->lookupSymbol("main")->erase();
  auto made = derivative.module->lookupSymbol<func::FuncOp>("main_grad");
  made.setSymName("main");

  interpreter::Options run;
  run.poison = options.check.poison;
  run.maxOperations = 10000000;
  auto arguments = interpreter::globalArguments(*derivative.module, "main");
  if (failed(arguments))
    return fail(CheckResult::referenceFailed, error.text);
  SmallVector<Tensor> inputs = interpreter::randomInputs(*arguments, seed);
  FailureOr<SmallVector<Tensor>> values = interpreter::runGlobal(made, inputs, run);
  if (failed(values))
    return fail(CheckResult::referenceFailed, error.text);
  size_t numArguments = function.getNumArguments(), numResults = function.getNumResults();
  ArrayRef<Tensor> all(inputs);
  FailureOr<std::string> difference = compareDirections(
      function, ArrayRef(*arguments).take_front(numArguments), all.take_front(numArguments),
      all.drop_front(numArguments), ArrayRef(*values).drop_front(numResults), seed, options, run,
      result.coverage);
  if (failed(difference))
    return fail(CheckResult::referenceFailed, error.text);
  if (!difference->empty())
    return fail(CheckResult::mismatch, *difference);
  if (!options.sharded)
    return result;

  // Gradients are sums of many terms: their rounding is relative to the largest of them.
  derivative.results = program.results;
  for (const Tensor &gradient : ArrayRef(*values).drop_front(numResults)) {
    double most = 1;
    for (int64_t i = 0; i < gradient.numElements(); ++i)
      most = std::max(most, std::fabs(gradient.load(i).f));
    derivative.results.push_back({false, most});
  }
  CheckResult sharded = check(derivative, seed, options.check);
  sharded.coverage.directions = result.coverage.directions;
  sharded.coverage.kinks = result.coverage.kinks;
  return sharded;
}
