//===- GpuAttentionProducts.cpp - Products of an attention's tiles --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two products make an attention: rows of one tile times rows of another (scores), and weights, the
// fragments of a product, times a tile (sums). f32 is multiplied by FMA, since the tensor cores
// would round it to TF32.
//
//===----------------------------------------------------------------------===//

#include "GpuAttentionTiles.h"
#include "GpuRetarget.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

/// Of longer rows the left operand of a product is loaded again for each tile of the right one: it
/// would take the registers of the sums.
static constexpr int64_t kMostKept = 64;
/// Elements of f32 that a thread reads at once.
static constexpr int64_t kStep = 4;

Value AttentionTiles::loadVector(const SharedTile &tile, Value row, Value column, int64_t width) {
  return vector::LoadOp::create(b, loc, VectorType::get(width, tile.element), tile.memory,
                                ValueRange{add(multiply(row, tile.pitch), column)},
                                /*nontemporal=*/false,
                                llvm::MaybeAlign(width * bytesOf(tile.element)));
}

Fragments AttentionTiles::zeros(int64_t columns) {
  Value zero = real(0);
  return Fragments(columns / kColumns, Fragment{zero, zero, zero, zero});
}

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

/// A register of the tensor cores is a word of two elements.
static Value toWord(OpBuilder &b, Location loc, Value pair) {
  Value words = vector::BitCastOp::create(b, loc, VectorType::get(1, b.getI32Type()), pair);
  return vector::ExtractOp::create(b, loc, words, 0);
}

SmallVector<Value> AttentionTiles::matrices(const SharedTile &tile, Value row, Value column,
                                            bool transposed) {
  constexpr int64_t kCount = 4;
  Value offset = add(multiply(row, tile.pitch), column);
  Value loaded = nvgpu::LdMatrixOp::create(b, loc, VectorType::get({kCount, 2}, tile.element),
                                           tile.memory, ValueRange{offset}, transposed, kCount);
  SmallVector<Value> words;
  for (int64_t i = 0; i < kCount; ++i)
    words.push_back(toWord(b, loc, vector::ExtractOp::create(b, loc, loaded, i)));
  return words;
}

Fragment AttentionTiles::mma(ValueRange left, ValueRange right, const Fragment &sum) {
  Type f32 = b.getF32Type();
  bool isBf16 = element().isBF16();
  // f16 comes as pairs, bf16 as words.
  auto typed = [&](ValueRange words) {
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      if (isBf16)
        return word;
      Value one = vector::FromElementsOp::create(b, loc, VectorType::get(1, b.getI32Type()), word);
      return vector::BitCastOp::create(b, loc, VectorType::get(2, b.getF16Type()), one);
    });
  };
  NVVM::MMATypes type = isBf16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  Value made = NVVM::MmaOp::create(
      b, loc, result, typed(left), typed(right), ValueRange(ArrayRef<Value>(sum)),
      ArrayRef<int64_t>{kRows, kColumns, kDepth}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Fragment next;
  for (auto [i, value] : llvm::enumerate(next))
    value = LLVM::ExtractValueOp::create(b, loc, made, static_cast<int64_t>(i));
  return next;
}

SmallVector<Value> AttentionTiles::leftOf(const SharedTile &tile, int64_t step) {
  // Of the four matrices two are above one another, and two to their right.
  Value row = add(multiply(warp, kRows), remainder(lane, kRows));
  Value column = multiply(divide(lane, kRows), 8);
  return matrices(tile, row, add(column, step * kDepth), /*transposed=*/false);
}

LeftFragments AttentionTiles::leftOf(const SharedTile &tile) {
  LeftFragments steps;
  if (usesMma() && tile.depth <= kMostKept)
    for (int64_t step = 0; step * kDepth < tile.depth; ++step)
      steps.push_back(leftOf(tile, step));
  return steps;
}

Fragments AttentionTiles::multiplyByMma(const SharedTile &left, const LeftFragments &kept,
                                        const SharedTile &right) {
  Fragments sums = zeros(right.rows);
  // Rows of `right` are columns of the product: two fragments, each of two matrices side by side.
  Value row = add(remainder(lane, 8), multiply(divide(lane, 16), kColumns));
  Value column = multiply(remainder(divide(lane, 8), 2), 8);
  for (int64_t step = 0; step * kDepth < left.depth; ++step) {
    SmallVector<Value> words = kept.empty() ? leftOf(left, step) : kept[step];
    for (size_t j = 0; j < sums.size(); j += 2) {
      SmallVector<Value> other = matrices(right, add(row, static_cast<int64_t>(j) * kColumns),
                                          add(column, step * kDepth), /*transposed=*/false);
      for (size_t i : {0, 1})
        sums[j + i] = mma(words, ArrayRef(other).slice(2 * i, 2), sums[j + i]);
    }
  }
  return sums;
}

void AttentionTiles::accumulateByMma(Fragments &sums, ArrayRef<Fragment> weights,
                                     const SharedTile &right) {
  auto pair = VectorType::get(2, b.getF32Type());
  auto narrow = VectorType::get(2, element());
  auto word = [&](Value first, Value second) {
    if (element().isBF16()) // the first operand becomes the upper half
      return toWord(b, loc,
                    LLVM::CallIntrinsicOp::create(b, loc, narrow,
                                                  b.getStringAttr(kPackBf16Intrinsic),
                                                  ValueRange{second, first})
                        .getResult(0));
    Value both = vector::FromElementsOp::create(b, loc, pair, ValueRange{first, second});
    return toWord(b, loc, arith::TruncFOp::create(b, loc, narrow, both));
  };
  Value row = remainder(lane, kDepth), column = multiply(divide(lane, kDepth), kColumns);
  for (size_t step = 0; 2 * step < weights.size(); ++step) {
    // Two fragments of a product are the left operand of the next.
    const Fragment &near = weights[2 * step], &far = weights[2 * step + 1];
    SmallVector<Value> left{word(near[0], near[1]), word(near[2], near[3]), word(far[0], far[1]),
                            word(far[2], far[3])};
    for (size_t j = 0; j < sums.size(); j += 2) {
      SmallVector<Value> other =
          matrices(right, add(row, static_cast<int64_t>(step) * kDepth),
                   add(column, static_cast<int64_t>(j) * kColumns), /*transposed=*/true);
      for (size_t i : {0, 1})
        sums[j + i] = mma(left, ArrayRef(other).slice(2 * i, 2), sums[j + i]);
    }
  }
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

Fragments AttentionTiles::multiply(const SharedTile &left, const LeftFragments &kept,
                                   const SharedTile &right) {
  if (usesMma())
    return multiplyByMma(left, kept, right);
  auto element = [&](Value vector, int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, vector, i);
  };
  Fragments sums = zeros(right.rows);
  return unflatten(loop(
      constant(0), constant(left.depth), kStep, flatten(sums), [&](Value at, ValueRange carried) {
        Fragments sums = unflatten(carried);
        std::array<Value, 2> rows{loadVector(left, rowOf(0), at, kStep),
                                  loadVector(left, rowOf(1), at, kStep)};
        for (auto [number, sum] : llvm::enumerate(sums))
          for (unsigned column : {0, 1}) {
            Value other = loadVector(right, columnOf(number, column), at, kStep);
            for (unsigned which : {0, 1})
              for (int64_t i = 0; i < kStep; ++i)
                sum[2 * which + column] = math::FmaOp::create(
                    b, loc, element(rows[which], i), element(other, i), sum[2 * which + column]);
          }
        return flatten(sums);
      }));
}

void AttentionTiles::accumulate(Fragments &sums, ArrayRef<Fragment> weights,
                                const SharedTile &right, const SharedTile &scratch) {
  if (usesMma())
    return accumulateByMma(sums, weights, right);
  auto pair = VectorType::get(2, b.getF32Type());
  barrier(); // the weights before these have been read
  for (auto [number, weight] : llvm::enumerate(weights))
    for (unsigned which : {0, 1}) {
      Value both = vector::FromElementsOp::create(
          b, loc, pair, ValueRange{weight[2 * which], weight[2 * which + 1]});
      Value offset = add(multiply(rowOf(which), scratch.pitch), columnOf(number, 0));
      vector::StoreOp::create(b, loc, both, scratch.memory, ValueRange{offset},
                              /*nontemporal=*/false, llvm::MaybeAlign(8));
    }
  barrier(); // only lanes of one warp meet here
  // Long rows leave few registers for what is under way.
  int64_t step = sums.size() * kColumns > kMostKept ? 2 : kStep;
  sums = unflatten(loop(
      constant(0), constant(right.rows), step, flatten(sums), [&](Value at, ValueRange carried) {
        Fragments sums = unflatten(carried);
        std::array<Value, 2> rows{loadVector(scratch, rowOf(0), at, step),
                                  loadVector(scratch, rowOf(1), at, step)};
        for (int64_t i = 0; i < step; ++i) {
          std::array<Value, 2> weight;
          for (unsigned which : {0, 1})
            weight[which] = vector::ExtractOp::create(b, loc, rows[which], i);
          for (auto [number, sum] : llvm::enumerate(sums)) {
            Value other = loadVector(right, add(at, i), columnOf(number, 0), 2);
            for (unsigned column : {0, 1}) {
              Value factor = vector::ExtractOp::create(b, loc, other, column);
              for (unsigned which : {0, 1})
                sum[2 * which + column] =
                    math::FmaOp::create(b, loc, weight[which], factor, sum[2 * which + column]);
            }
          }
        }
        return flatten(sums);
      }));
}

} // namespace tessera::codegen
