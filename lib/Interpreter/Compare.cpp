//===- Compare.cpp - Whether two results are the same ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/Compare.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::interpreter;

static double relativeTolerance(ElementType type) {
  switch (type.kind) {
  case ElementType::f64:
    return 1e-10;
  case ElementType::f32:
    return 1e-4;
  case ElementType::f16:
  case ElementType::bf16:
    return 2e-2;
  case ElementType::integer:
    return 0;
  }
  llvm_unreachable("all kinds are listed");
}

static double rootMeanSquareOfFinite(const Tensor &tensor) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (double value = tensor.load(i).f; std::isfinite(value)) {
      sum += value * value;
      ++count;
    }
  return count ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

static double floatError(double actual, double expected, double rms) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected)))
    return 0;
  if (!std::isfinite(actual) || !std::isfinite(expected))
    return std::numeric_limits<double>::infinity();
  // Where all expected are 0 any difference is infinitely large.
  return std::fabs(actual - expected) / std::max(std::fabs(expected), rms);
}

static void addWarnings(Comparison &result, const Tensor &expected) {
  if (expected.numElements() < 2)
    return;
  bool allNaN = expected.element().isFloat(), constant = true;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    Scalar value = expected.load(i);
    if (expected.element().isFloat()) {
      allNaN &= std::isnan(value.f);
      constant &= value.f == expected.load(0).f;
    } else {
      constant &= value.i == expected.load(0).i;
    }
  }
  if (allNaN)
    result.warnings.push_back("all elements are NaN");
  else if (constant)
    result.warnings.push_back("all elements are the same");
}

Comparison tessera::interpreter::compare(const Tensor &actual, const Tensor &expected,
                                         int64_t steps) {
  assert(actual.tensorType() == expected.tensorType() && "callers compare what has one type");
  ElementType type = expected.element();
  Comparison result;
  result.tolerance = relativeTolerance(type) * std::sqrt(static_cast<double>(steps));
  double rms = type.isFloat() ? rootMeanSquareOfFinite(expected) : 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    Scalar a = actual.load(i), b = expected.load(i);
    double error = type.isFloat() ? floatError(a.f, b.f, rms)
                                  : std::fabs(static_cast<double>(a.i) - static_cast<double>(b.i));
    if (!type.isFloat() && a.i != b.i)
      error = std::max(error, 1.0); // large integers may be the same double
    if (error > result.maxError) {
      result.maxError = error;
      result.worst = i;
    }
  }
  result.ok = result.maxError <= result.tolerance;
  addWarnings(result, expected);
  return result;
}

int64_t tessera::interpreter::firstDifference(const Tensor &actual, const Tensor &expected) {
  assert(actual.tensorType() == expected.tensorType() && "callers compare what has one type");
  size_t bytes = expected.element().bytes();
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    if (expected.element().isFloat() && std::isnan(actual.load(i).f) &&
        std::isnan(expected.load(i).f))
      continue;
    if (actual.bytes().slice(i * bytes, bytes) != expected.bytes().slice(i * bytes, bytes))
      return i;
  }
  return -1;
}

std::string tessera::interpreter::indexText(const Tensor &tensor, int64_t linear) {
  SmallVector<int64_t> index(tensor.rank());
  for (int64_t d = tensor.rank() - 1; d >= 0; --d) {
    index[d] = linear % tensor.shape()[d];
    linear /= tensor.shape()[d];
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(index, os);
  os << ']';
  return text;
}

std::string tessera::interpreter::describe(const Comparison &comparison, const Tensor &actual,
                                           const Tensor &expected) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto element = [&](const Tensor &tensor) {
    print(os, Tensor::scalar(tensor.getElementType(), tensor.load(comparison.worst)));
  };
  os << "element " << indexText(expected, comparison.worst) << " is ";
  element(actual);
  os << ", expected ";
  element(expected);
  os << "; error " << llvm::format("%.3g", comparison.maxError) << " > "
     << llvm::format("%.3g", comparison.tolerance);
  return text;
}
