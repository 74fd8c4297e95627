//===- Compare.cpp - Whether two results are the same ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/Compare.h"

#include "tessera/Support/Comparison.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

static Rounding roundingOf(ElementType type) {
  switch (type.kind) {
  case ElementType::f64:
    return Rounding::f64;
  case ElementType::f32:
    return Rounding::f32;
  case ElementType::f16:
  case ElementType::bf16:
    return Rounding::half;
  case ElementType::integer:
    return Rounding::exact;
  }
  llvm_unreachable("all kinds are listed");
}

static Numbers numbersOf(const Tensor &tensor) {
  bool isFloat = tensor.element().isFloat();
  return {tensor.numElements(),
          [&tensor, isFloat](int64_t i) {
            Scalar value = tensor.load(i);
            return isFloat ? value.f : static_cast<double>(value.i);
          },
          [&tensor](int64_t i) { return tensor.load(i).i; }};
}

Comparison tessera::interpreter::compare(const Tensor &actual, const Tensor &expected,
                                         int64_t steps) {
  assert(actual.tensorType() == expected.tensorType() && "callers compare what has one type");
  NumberComparison found =
      compareNumbers(numbersOf(actual), numbersOf(expected), roundingOf(expected.element()), steps);
  Comparison result;
  result.ok = found.equal;
  result.tolerance = found.tolerance;
  result.worst = found.worst;
  if (found.kindDiffers)
    result.maxError = std::numeric_limits<double>::infinity();
  else if (expected.element().isFloat())
    result.maxError = found.maxRelative;
  else if (!found.equal)
    result.maxError = std::max(found.maxError, 1.0); // equal as doubles
  if (found.allNaN && expected.numElements() > 1)
    result.warnings.push_back("all elements are NaN");
  else if (found.allSame && expected.numElements() > 1)
    result.warnings.push_back("all elements are the same");
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
