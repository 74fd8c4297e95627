//===- KernelNames.cpp - Names of kernels ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelNames.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tessera;

static constexpr size_t kMaxWords = 4;

/// "add" for arith.addf, "exp" for math.exp; empty for ops without a word.
static std::string wordOf(Operation &op) {
  if (isa<tensor::ExtractOp>(op))
    return "gather";
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
      isa<arith::ConstantOp, CastOpInterface>(op))
    return "";
  StringRef name = op.getName().stripDialect();
  StringRef known = llvm::StringSwitch<StringRef>(name)
                        .Cases({"maximumf", "maxnumf", "maxsi", "maxui"}, "max")
                        .Cases({"minimumf", "minnumf", "minsi", "minui"}, "min")
                        .Cases({"divsi", "divui"}, "div")
                        .Cases({"absf", "absi"}, "abs")
                        .Default("");
  if (!known.empty())
    return known.str();
  if (isa<arith::ArithDialect>(op.getDialect()) && (name.ends_with("f") || name.ends_with("i")))
    name = name.drop_back();
  return name.str();
}

/// The name of a generic that only moves elements.
static std::string moveOf(linalg::GenericOp op) {
  if (op.getNumDpsInputs() == 0)
    return "fill";
  AffineMap in = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (in.getNumResults() < out.getNumResults())
    return "broadcast";
  return in == out ? "copy" : "transpose";
}

static void addWords(Operation *op, SmallVectorImpl<std::string> &words) {
  auto add = [&](std::string word) {
    if (!word.empty() && (words.empty() || words.back() != word))
      words.push_back(std::move(word));
  };
  if (isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp>(op))
    return;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    size_t before = words.size();
    bool computes = false;
    for (Operation &inner : generic.getBody()->without_terminator()) {
      computes |= !wordOf(inner).empty();
      add(wordOf(inner));
    }
    if (!computes && words.size() == before)
      add(moveOf(generic));
    return;
  }
  if (isa<rt::ContractionOp>(op))
    return add("contract");
  if (isa<tensor::InsertSliceOp>(op))
    return add("insert");
  if (isa<tensor::ExtractSliceOp>(op))
    return add("slice");
  if (isa<tensor::FromElementsOp>(op))
    return add("scalar");
  add(op->getName().stripDialect().str());
}

std::string codegen::describe(ArrayRef<Operation *> ops) {
  SmallVector<std::string> words;
  for (Operation *op : ops)
    addWords(op, words);
  if (words.empty())
    return "fill";
  // A long kernel is named by its first and last ops.
  if (words.size() > kMaxWords)
    words.erase(words.begin() + kMaxWords - 1, words.end() - 1);
  std::string name = llvm::join(words, "_");
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name;
}
