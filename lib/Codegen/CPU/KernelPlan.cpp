//===- KernelPlan.cpp - Plan the vectorization of a nest ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelPlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// The width of the elements that fill a vector: of the widest type computed with.
static unsigned computeBits(const Nest &nest, int vector) {
  unsigned bits = 8;
  auto consider = [&](Type type) {
    if (type.isIndex() || !type.isIntOrFloat())
      return;
    // 16-bit floats are computed with in f32.
    unsigned width = isa<FloatType>(type) ? std::max(32u, type.getIntOrFloatBitWidth())
                                          : type.getIntOrFloatBitWidth();
    bits = std::max(bits, width);
  };
  bool any = false;
  for (const NestOperand &operand : nest.operands)
    if (!operand.scalar && operand.step[vector] != 0) {
      consider(operand.element);
      any |= !operand.element.isIndex();
    }
  for (Operation &op : *nest.op.getBody())
    for (Type type : op.getResultTypes())
      if (!type.isIndex() && !isa<arith::ConstantOp>(op)) {
        consider(type);
        any = true;
      }
  return any ? bits : 64;
}

/// Whether a value of the body differs between iterations of a loop.
static bool dependsOn(const Nest &nest, Value value, int loop) {
  linalg::GenericOp op = nest.op;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return false;
    return llvm::any_of(nest.operands, [&](const NestOperand &operand) {
      return op.getMatchingBlockArgument(operand.operand) == argument && !operand.scalar &&
             operand.step[loop] != 0;
    });
  }
  Operation *def = value.getDefiningOp();
  if (def->getBlock() != op.getBody())
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    return llvm::is_contained(nest.loops[loop].origins, index.getDim());
  return llvm::any_of(def->getOperands(),
                      [&](Value operand) { return dependsOn(nest, operand, loop); });
}

/// Instructions per element of a load at computed indices: as for an operand if the loop moves
/// along a row, else one per lane.
static double costOf(const Nest &nest, memref::LoadOp load, int vector, double lanes) {
  auto moves = [&](Value index) { return dependsOn(nest, index, vector); };
  if (llvm::none_of(load.getIndices(), moves))
    return 0.25 / lanes;
  auto last = load.getIndices().back().getDefiningOp<linalg::IndexOp>();
  bool run = last && llvm::none_of(load.getIndices().drop_back(), moves);
  return run ? 1 / lanes : 1;
}

/// Instructions per element with vectors along `vector`.
static double costOf(const Nest &nest, int vector, const KernelTarget &target) {
  int64_t extent = nest.loops[vector].extent;
  double lanes = double(target.lanes(computeBits(nest, vector)));
  double used = std::min(lanes, double(extent));
  double cost = 0;
  for (const NestOperand &operand : nest.operands) {
    if (operand.scalar)
      continue;
    int64_t step = std::abs(operand.step[vector]);
    // A vector load; a scalar load per element; a few loads and shuffles for small strides.
    double access = step <= 1        ? 1 / used
                    : operand.output ? 2.5
                    : step <= 4      ? 2.0 * double(step) / used
                                     : 2.0;
    if (step == 0)
      access *= 0.25;
    cost += access;
  }
  for (Operation &op : nest.op.getBody()->without_terminator()) {
    // Functions cost a polynomial.
    double weight = isa<math::MathDialect>(op.getDialect()) ? 12 : 1;
    auto load = dyn_cast<memref::LoadOp>(op);
    cost += load ? costOf(nest, load, vector, used) : weight / used;
  }
  if (nest.loops[vector].reduction)
    cost += 8.0 / double(extent); // the final reduction across lanes
  return cost;
}

/// Splits `count` into equal blocks of at most `limit`.
static int64_t evenBlock(int64_t count, int64_t limit) {
  int64_t blocks = (count + limit - 1) / limit;
  return blocks ? (count + blocks - 1) / blocks : 1;
}

/// A sum over distant rows would walk the whole column for each strip, leaving pages and prefetch
/// streams too early. Instead a few rows at a time are added along their whole length, with the
/// sums in the first-level cache.
static void blockRows(Nest &nest, NestPlan &plan) {
  constexpr int64_t kFar = 256, kMaxRows = 16, kMinRows = 4;
  if (plan.vector < 0 || plan.jam >= 0 || plan.inner.size() != 1 ||
      nest.loops[plan.vector].reduction ||
      nest.loops[plan.vector].extent <= 2 * plan.lanes * plan.vectors)
    return;
  unsigned rows = plan.inner.front();
  NestLoop &loop = nest.loops[rows];
  bool indexed = nest.op.getBody()
                     ->walk([](linalg::IndexOp) { return WalkResult::interrupt(); })
                     .wasInterrupted();
  bool far = llvm::any_of(nest.operands, [&](const NestOperand &operand) {
    return std::abs(operand.step[rows]) >= kFar;
  });
  if (!far || indexed || loop.extent <= kMaxRows)
    return;
  int64_t size = kMaxRows;
  while (size >= kMinRows && loop.extent % size)
    --size;
  if (size < kMinRows)
    return;
  NestLoop outside = loop;
  outside.extent /= size;
  loop.extent = size;
  for (NestOperand &operand : nest.operands)
    operand.step.push_back(operand.step[rows] * size);
  plan.outer.push_back(nest.loops.size());
  nest.loops.push_back(outside);
}

NestPlan planNest(Nest &nest, const KernelTarget &target) {
  NestPlan plan;
  bool zero = llvm::any_of(nest.loops, [](const NestLoop &loop) { return loop.extent == 0; });
  double best = 0;
  for (int loop = 0, e = nest.loops.size(); loop < e && !zero; ++loop) {
    if (nest.loops[loop].reduction && llvm::any_of(nest.outputs, [](const NestOutput &output) {
          return output.accumulates && !output.kind;
        }))
      continue;
    double cost = costOf(nest, loop, target);
    // Among equal costs the innermost parallel loop: it needs no final reduction and accesses
    // memory in order.
    if (plan.vector < 0 || cost < best * 0.999 ||
        (cost <= best * 1.001 &&
         !(nest.loops[loop].reduction && !nest.loops[plan.vector].reduction))) {
      plan.vector = loop;
      best = cost;
    }
  }
  int64_t heavy = 0;
  for (Operation &op : nest.op.getBody()->without_terminator())
    heavy += isa<math::MathDialect>(op.getDialect()) ? 12 : 1;

  if (plan.vector >= 0) {
    const NestLoop &along = nest.loops[plan.vector];
    plan.lanes = target.lanes(computeBits(nest, plan.vector));
    int64_t vectors = (along.extent + plan.lanes - 1) / plan.lanes;
    int64_t accumulators = 0;
    for (const NestOutput &output : nest.outputs)
      accumulators += output.accumulates;
    int64_t registers = target.numRegisters - 4;

    // Reuse: an operand with stride 0 in the jammed loop is loaded once for all copies.
    if (nest.hasReduction()) {
      int64_t reuse = 0;
      for (int loop = 0, e = nest.loops.size(); loop < e; ++loop) {
        if (loop == plan.vector || nest.loops[loop].reduction)
          continue;
        int64_t gain = 0;
        for (const NestOperand &operand : nest.operands)
          gain += !operand.scalar && !operand.output && operand.step[loop] == 0 &&
                  operand.step[plan.vector] != 0;
        if (gain > reuse ||
            (gain == reuse && gain > 0 && nest.loops[loop].extent > nest.loops[plan.jam].extent)) {
          reuse = gain;
          plan.jam = loop;
        }
      }
      int64_t limit = std::max<int64_t>(1, registers / std::max<int64_t>(1, accumulators));
      int64_t wide = plan.jam >= 0 ? 2 : heavy > 8 ? 2 : 4;
      if (along.reduction && plan.jam >= 0)
        wide = 1;
      plan.vectors = evenBlock(vectors, std::min(wide, limit));
      if (plan.jam >= 0) {
        int64_t jams = std::max<int64_t>(1, limit / plan.vectors);
        jams = std::min<int64_t>(jams, along.reduction ? 4 : target.numRegisters > 16 ? 12 : 6);
        plan.jams = evenBlock(nest.loops[plan.jam].extent, jams);
        // Few rows: wider instead.
        if (!along.reduction)
          plan.vectors = evenBlock(
              vectors, std::max<int64_t>(plan.vectors, std::min<int64_t>(4, limit / plan.jams)));
      }
    } else {
      plan.vectors = std::min<int64_t>(vectors, heavy > 8 ? 2 : 4);
      // A transpose: operands that are contiguous along another loop are loaded in its direction.
      for (int loop = 0, e = nest.loops.size(); loop < e; ++loop) {
        if (loop == plan.vector || nest.loops[loop].extent < plan.lanes ||
            along.extent < plan.lanes)
          continue;
        bool contiguous = llvm::any_of(nest.operands, [&](const NestOperand &operand) {
          return !operand.scalar && !operand.output && operand.step[loop] == 1 &&
                 operand.step[plan.vector] > 4 && !operand.element.isInteger(1);
        });
        if (contiguous && plan.lanes <= 16) {
          // Whole cache lines of the source, if it is large enough.
          constexpr int64_t kLineBits = 512;
          int64_t line = kLineBits / std::max(8u, computeBits(nest, plan.vector));
          plan.jam = loop;
          plan.jams = nest.loops[loop].extent >= line ? std::max(line, plan.lanes) : plan.lanes;
          plan.vectors = 1;
          plan.transpose = true;
        }
      }
    }
  }

  for (int loop = 0, e = nest.loops.size(); loop < e; ++loop) {
    if (loop == plan.vector || loop == plan.jam)
      continue;
    (nest.loops[loop].reduction ? plan.inner : plan.outer).push_back(loop);
  }
  // Outer loops in the order of the first output's memory.
  const NestOperand &first = nest.operands[nest.outputs.front().operand];
  llvm::stable_sort(plan.outer, [&](unsigned a, unsigned b) {
    return std::abs(first.step[a]) > std::abs(first.step[b]);
  });
  blockRows(nest, plan);
  return plan;
}

} // namespace tessera::codegen
