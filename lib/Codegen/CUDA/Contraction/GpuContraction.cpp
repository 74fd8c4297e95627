//===- GpuContraction.cpp - The loops of a contraction --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuContraction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace tessera::codegen {

int64_t LoopGroup::size() const {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// Sorts loops by decreasing stride, and merges loops that are one loop in all operands.
static void normalize(LoopGroup &group) {
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(group.extents.size()));
  auto distance = [&](unsigned loop) {
    int64_t sum = 0;
    for (int64_t stride : group.strides[loop])
      sum += std::abs(stride);
    return sum;
  };
  llvm::stable_sort(order, [&](unsigned x, unsigned y) { return distance(x) > distance(y); });
  LoopGroup result;
  for (unsigned loop : order) {
    int64_t extent = group.extents[loop];
    const std::array<int64_t, 3> &strides = group.strides[loop];
    bool continues = !result.extents.empty() && llvm::all_of(llvm::seq(3), [&](int operand) {
      return result.strides.back()[operand] == strides[operand] * extent;
    });
    if (continues) {
      result.extents.back() *= extent;
      result.strides.back() = strides;
      continue;
    }
    result.extents.push_back(extent);
    result.strides.push_back(strides);
  }
  group = std::move(result);
}

/// The smallest stride of the group in C.
static int64_t stepInResult(const LoopGroup &group) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const std::array<int64_t, 3> &strides : group.strides)
    least = std::min(least, std::abs(strides[2]));
  return least;
}

ContractionLoops::ContractionLoops(rt::ContractionOp op) {
  for (auto [start, value] : llvm::zip_equal(starts, op.getStarts()))
    start = value;
  for (auto [extent, a, b, c] :
       llvm::zip_equal(op.getExtents(), op.getAStrides(), op.getBStrides(), op.getCStrides())) {
    LoopGroup &group = c == 0 ? sums : a != 0 && b != 0 ? batches : a != 0 ? rows : columns;
    group.extents.push_back(extent);
    group.strides.push_back({a, b, c});
  }
  swapped = stepInResult(rows) < stepInResult(columns);
  if (swapped) {
    std::swap(rows, columns);
    std::swap(starts[0], starts[1]);
    for (LoopGroup *group : {&batches, &rows, &columns, &sums})
      for (std::array<int64_t, 3> &strides : group->strides)
        std::swap(strides[0], strides[1]);
  }
  for (LoopGroup *group : {&batches, &rows, &columns, &sums})
    normalize(*group);
}

std::optional<ContractionKernel> matchContractionKernel(func::FuncOp kernel) {
  ContractionKernel match;
  Block &body = kernel.getBody().front();
  Operation *ret = body.getTerminator();
  if (ret->getNumOperands() != 1)
    return std::nullopt;
  match.result = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  for (Operation &op : body.without_terminator())
    if (!isa<rt::ContractionOp, linalg::FillOp, arith::ConstantOp>(op))
      return std::nullopt;
  Value value = ret->getOperand(0);
  while (auto op = value.getDefiningOp<rt::ContractionOp>()) {
    auto a = dyn_cast<BlockArgument>(op.getA()), b = dyn_cast<BlockArgument>(op.getB());
    if (!a || !b || a.getArgNumber() == match.result || b.getArgNumber() == match.result ||
        op.getAStrides().empty())
      return std::nullopt;
    match.steps.push_back({op, a.getArgNumber(), b.getArgNumber(), !op.getOverwrite()});
    value = op.getInit();
  }
  if (match.steps.empty())
    return std::nullopt;
  std::reverse(match.steps.begin(), match.steps.end());
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    if (!matchPattern(fill.getInputs()[0], m_AnyZeroFloat()))
      return std::nullopt;
    // If the first step writes the entire result, the result need not be zeroed.
    ContractionKernel::Step &first = match.steps.front();
    ContractionLoops loops(first.op);
    bool writesAll = loops.batches.size() * loops.rows.size() * loops.columns.size() ==
                     first.op.getInit().getType().getNumElements();
    first.accumulates &= !writesAll;
    match.fills = !writesAll;
    value = fill.getOutputs()[0];
  }
  if (value != kernel.getArgument(match.result))
    return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const ContractionKernel::Step &step : match.steps) {
    ContractionLoops loops(step.op);
    if (std::max({loops.batches.size(), loops.rows.size(), loops.columns.size(),
                  loops.sums.size()}) > kMost ||
        loops.batches.size() * loops.rows.size() > kMost * 256 / loops.columns.size())
      return std::nullopt;
  }
  return match;
}

} // namespace tessera::codegen
