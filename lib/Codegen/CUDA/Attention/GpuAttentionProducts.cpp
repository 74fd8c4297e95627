//===- GpuAttentionProducts.cpp - Tile products of attention --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention consists of two products: rows of one tile times rows of another (scores), and weights,
// the fragments of a product, times a tile (sums). f32 uses FMA unless it may be rounded to TF32
// for tensor cores. A row of 32 bytes is one step of a product with 16-bit floats and with TF32,
// and ldmatrix distributes it by words, so that both have the same addresses.
//
//===----------------------------------------------------------------------===//

#include "../Stub/GpuRetarget.h"
#include "GpuAttentionTiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

/// More sums than those of so many columns leave few registers for loads in flight.
static constexpr int64_t kMostSums = 64;
/// Elements of f32 that a thread reads at once.
static constexpr int64_t kStep = 4;

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionTiles::operandsOf(const SharedTile &tile, Value row, Value column) {
  SmallVector<Value> words = matrices(tile, row, column, /*transposed=*/false);
  if (tile.element.isF32())
    for (Value &word : words)
      word = toTf32(arith::BitcastOp::create(b, loc, b.getF32Type(), word));
  return words;
}

SmallVector<Value> AttentionTiles::leftOf(const SharedTile &tile, int64_t step, int64_t block) {
  // The four matrices form a square of two by two, in column-major order.
  Value row = add(add(multiply(warp, kRows * numRowBlocks), remainder(lane, kRows)), block * kRows);
  Value column = multiply(divide(lane, kRows), stepDepth() / 2);
  return operandsOf(tile, row, add(column, step * stepDepth()));
}

LeftFragments AttentionTiles::leftOf(const SharedTile &tile) {
  LeftFragments steps;
  if (usesMma())
    for (int64_t step = 0; step * stepDepth() < tile.depth; ++step)
      for (int64_t block = 0; block < numRowBlocks; ++block)
        steps.push_back(leftOf(tile, step, block));
  return steps;
}

Fragments AttentionTiles::multiplyByMma(const SharedTile &left, const LeftFragments &kept,
                                        const SharedTile &right, Fragments sums) {
  size_t across = sums.size() / numRowBlocks;
  // Rows of `right` are columns of the product: two fragments, each of two matrices side by side.
  Value row = add(remainder(lane, 8), multiply(divide(lane, 16), kColumns));
  Value column = multiply(remainder(divide(lane, 8), 2), stepDepth() / 2);
  for (int64_t step = 0; step * stepDepth() < left.depth; ++step) {
    LeftFragments words;
    for (int64_t block = 0; block < numRowBlocks; ++block)
      words.push_back(kept.empty() ? leftOf(left, step, block) : kept[step * numRowBlocks + block]);
    for (size_t j = 0; j < across; j += 2) {
      SmallVector<Value> other = operandsOf(right, add(row, static_cast<int64_t>(j) * kColumns),
                                            add(column, step * stepDepth()));
      for (auto [block, word] : llvm::enumerate(words))
        for (size_t i : {0, 1}) {
          Fragment &sum = sums[block * across + j + i];
          sum = mma(word, ArrayRef(other).slice(2 * i, 2), sum, element());
        }
    }
  }
  return sums;
}

LeftFragments AttentionTiles::wordsOf(ArrayRef<Fragment> weights, size_t step) {
  auto pair = VectorType::get(2, b.getF32Type());
  auto narrow = VectorType::get(2, element());
  auto word = [&](Value first, Value second) {
    if (element().isBF16()) // the first operand becomes the upper half
      return toWord(LLVM::CallIntrinsicOp::create(b, loc, narrow,
                                                  b.getStringAttr(kPackBf16Intrinsic),
                                                  ValueRange{second, first})
                        .getResult(0));
    Value both = vector::FromElementsOp::create(b, loc, pair, ValueRange{first, second});
    return toWord(arith::TruncFOp::create(b, loc, narrow, both));
  };
  LeftFragments words;
  size_t depth = weights.size() / numRowBlocks;
  for (int64_t block = 0; block < numRowBlocks; ++block) {
    // Two fragments of a product are the left operand of the next one.
    const Fragment &near = weights[block * depth + 2 * step];
    const Fragment &far = weights[block * depth + 2 * step + 1];
    words.push_back({word(near[0], near[1]), word(near[2], near[3]), word(far[0], far[1]),
                     word(far[2], far[3])});
  }
  return words;
}

void AttentionTiles::accumulateByMma(Fragments &sums, ArrayRef<Fragment> weights,
                                     const SharedTile &right) {
  Value row = remainder(lane, kDepth), column = multiply(divide(lane, kDepth), kColumns);
  size_t depth = weights.size() / numRowBlocks, across = sums.size() / numRowBlocks;
  for (size_t step = 0; 2 * step < depth; ++step) {
    LeftFragments words = wordsOf(weights, step);
    for (size_t j = 0; j < across; j += 2) {
      SmallVector<Value> other =
          matrices(right, add(row, static_cast<int64_t>(step) * kDepth),
                   add(column, static_cast<int64_t>(j) * kColumns), /*transposed=*/true);
      for (auto [block, left] : llvm::enumerate(words))
        for (size_t i : {0, 1}) {
          Fragment &sum = sums[block * across + j + i];
          sum = mma(left, ArrayRef(other).slice(2 * i, 2), sum, element());
        }
    }
  }
}

/// A fragment of a product is the left operand of the next one if the keys of the step are taken in
/// another order: column t of the operand is key 2 t, column t + 4 key 2 t + 1. ldmatrix cannot
/// transpose words, so each lane loads its own.
void AttentionTiles::accumulateByTf32(Fragments &sums, ArrayRef<Fragment> weights,
                                      const SharedTile &right) {
  size_t depth = weights.size() / numRowBlocks, across = sums.size() / numRowBlocks;
  for (size_t step = 0; step < depth; ++step) {
    LeftFragments words(numRowBlocks);
    for (auto [block, left] : llvm::enumerate(words))
      for (unsigned i : {0, 2, 1, 3})
        left.push_back(toTf32(weights[block * depth + step][i]));
    for (size_t j = 0; j < across; ++j) {
      SmallVector<Value> other;
      for (unsigned which : {0, 1}) {
        Value row = columnOf(step, which), column = add(group, static_cast<int64_t>(j) * kColumns);
        Value offset = add(right.start, add(multiply(row, right.pitch), column));
        other.push_back(toTf32(memref::LoadOp::create(b, loc, right.memory, offset)));
      }
      for (auto [block, left] : llvm::enumerate(words)) {
        Fragment &sum = sums[block * across + j];
        sum = mma(left, other, sum, element());
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// FMA
//===----------------------------------------------------------------------===//

Fragments AttentionTiles::multiply(const SharedTile &left, const LeftFragments &kept,
                                   const SharedTile &right, Fragments sums) {
  if (usesWarpgroups())
    return beginScores(left, right, sums);
  if (sums.empty())
    sums = zeros(right.rows * numRowBlocks);
  if (usesMma())
    return multiplyByMma(left, kept, right, std::move(sums));
  auto element = [&](Value vector, int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, vector, i);
  };
  return unflatten(loop(
      constant(0), constant(left.depth), kStep, flatten(sums), [&](Value at, ValueRange carried) {
        Fragments sums = unflatten(carried);
        size_t across = sums.size() / numRowBlocks;
        SmallVector<Value> rows;
        for (unsigned row = 0; row < laneRows(); ++row)
          rows.push_back(loadVector(left, rowOf(row), at, kStep));
        for (size_t number = 0; number < across; ++number)
          for (unsigned column : {0, 1}) {
            Value other = loadVector(right, columnOf(number, column), at, kStep);
            for (unsigned row = 0; row < laneRows(); ++row)
              for (int64_t i = 0; i < kStep; ++i) {
                Value &sum = sums[row / 2 * across + number][row % 2 * 2 + column];
                sum = math::FmaOp::create(b, loc, element(rows[row], i), element(other, i), sum);
              }
          }
        return flatten(sums);
      }));
}

void AttentionTiles::accumulate(Fragments &sums, ArrayRef<Fragment> weights,
                                const SharedTile &right, const SharedTile &scratch) {
  if (usesWarpgroups()) {
    LeftFragments steps;
    for (size_t step = 0; 2 * step < weights.size(); ++step)
      steps.push_back(wordsOf(weights, step).front());
    sums = beginSums(sums, steps, right);
    return;
  }
  if (usesMma())
    return this->element().isF32() ? accumulateByTf32(sums, weights, right)
                                   : accumulateByMma(sums, weights, right);
  auto pair = VectorType::get(2, b.getF32Type());
  auto element = [&](Value vector, int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, vector, i);
  };
  barrier(); // the previous weights have been read
  for (auto [number, weight] : llvm::enumerate(weights))
    for (unsigned which : {0, 1}) {
      Value both = vector::FromElementsOp::create(
          b, loc, pair, ValueRange{weight[2 * which], weight[2 * which + 1]});
      Value row = rowOf(laneRowOf(number, 2 * which, weights.size()));
      Value column = columnOf(acrossOf(number, weights.size()), 0);
      Value offset = add(multiply(row, scratch.pitch), column);
      vector::StoreOp::create(b, loc, both, scratch.memory, ValueRange{offset},
                              /*nontemporal=*/false, llvm::MaybeAlign(8));
    }
  barrier(); // only lanes of one warp share this memory
  int64_t step = static_cast<int64_t>(sums.size()) * kColumns > kMostSums ? 2 : kStep;
  sums = unflatten(loop(
      constant(0), constant(right.rows), step, flatten(sums), [&](Value at, ValueRange carried) {
        Fragments sums = unflatten(carried);
        size_t across = sums.size() / numRowBlocks;
        SmallVector<Value> rows;
        for (unsigned row = 0; row < laneRows(); ++row)
          rows.push_back(loadVector(scratch, rowOf(row), at, step));
        for (int64_t i = 0; i < step; ++i)
          for (size_t number = 0; number < across; ++number) {
            Value other = loadVector(right, add(at, i), columnOf(number, 0), 2);
            for (unsigned column : {0, 1})
              for (unsigned row = 0; row < laneRows(); ++row) {
                Value &sum = sums[row / 2 * across + number][row % 2 * 2 + column];
                sum =
                    math::FmaOp::create(b, loc, element(rows[row], i), element(other, column), sum);
              }
          }
        return flatten(sums);
      }));
}

} // namespace tessera::codegen
