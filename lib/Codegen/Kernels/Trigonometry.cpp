//===- Trigonometry.cpp - Sine and cosine of any argument -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The angle is measured in quarter turns, x * 2/pi, modulo 4. 2/pi is cut into chunks of 24 bits,
// so that the product of a chunk and a part of x of at most 29 bits is exact, and so is its
// remainder modulo 4 (M. Payne, R. Hanek, "Radian reduction for trigonometric functions", 1983, in
// floating point).
//
//===----------------------------------------------------------------------===//

#include "Trigonometry.h"

#include <cmath>

using namespace mlir;

namespace tessera::codegen {

/// 2/pi = the sum of kTwoOverPi[i] * 2^(-24 (i + 1)).
static constexpr int kChunkBits = 24;
static constexpr uint32_t kTwoOverPi[] = {
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041, 0xfe5163,
    0xabdebb, 0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129,
    0xa73ee8, 0x8235f5, 0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41, 0x3991d6, 0x398353, 0x39f49c,
    0x845f8b, 0xbdf928, 0x3b1ff8, 0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf,
    0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d, 0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292,
    0xea6bfb, 0x5fb11f, 0x8d5d08, 0x560330, 0x46fc7b};
static constexpr int kNumChunks = std::size(kTwoOverPi);

/// Chunk i times 2^scale.
static double chunk(int i, int scale = 0) {
  return i < kNumChunks ? std::ldexp(kTwoOverPi[i], scale - kChunkBits * (i + 1)) : 0;
}

namespace {
/// Quarter turns: an integer, of which the last two bits matter, and a fraction in [-1/2, 1/2].
struct QuarterTurns {
  Value whole, rest;
};
} // namespace

/// The exact remainders modulo 4 of the products of `parts` of an angle and the relevant `chunks`
/// of 2/pi.
static SmallVector<Value> leftOf(ElementBuilder &f, ArrayRef<Value> parts, ArrayRef<Value> chunks) {
  SmallVector<Value> left;
  for (Value each : chunks)
    for (Value part : parts) {
      Value product = f.mul(part, each);
      Value wholeTurns = f.mul(f.floor(f.mul(product, f.c(0.25))), f.c(4));
      left.push_back(f.sub(product, wholeTurns));
    }
  return left;
}

/// `a` >= 0 was f32: 24 bits, below 2^128. Behind nine chunks 2^-88 is left.
static QuarterTurns turnOfNarrow(ElementBuilder &f, Value a) {
  SmallVector<Value> chunks;
  for (int i = 0; i < 9; ++i)
    chunks.push_back(f.c(chunk(i)));
  SmallVector<Value> left = leftOf(f, a, chunks);
  Value sum = left.front();
  for (Value each : ArrayRef(left).drop_front())
    sum = f.add(sum, each);
  // Starting with the largest: cancellation is exact.
  Value whole = f.nearest(sum), rest = f.sub(left.front(), whole);
  for (Value each : ArrayRef(left).drop_front())
    rest = f.add(rest, each);
  return {whole, rest};
}

/// `a` >= 0 has 53 bits and may be huge: skips chunks whose products are multiples of four, four at
/// a time, by its exponent.
static QuarterTurns turnOfHuge(ElementBuilder &f, Value a) {
  constexpr int kStep = 4, kWindow = 12;
  constexpr int kScale = 256; // the last chunks would be subnormal
  Value exponent = f.minus(f.right(f.bits(a), 52), f.n(1023));
  SmallVector<Value> chunks;
  for (int i = 0; i < kWindow; ++i)
    chunks.push_back(f.c(chunk(i, kScale)));
  for (int skipped = kStep; skipped < kNumChunks; skipped += kStep) {
    // The last place of a is 2^(e - 52), that of chunk i is 2^(-24 (i + 1)).
    Value skips = f.compare(arith::CmpIPredicate::sge, exponent, f.n(54 + kChunkBits * skipped));
    for (int i = 0; i < kWindow; ++i)
      chunks[i] = f.pick(skips, f.c(chunk(skipped + i, kScale)), chunks[i]);
  }
  a = f.mul(a, f.c(std::ldexp(1, -kScale)));
  Value high = f.floats(f.mask(f.bits(a), f.n(~((int64_t(1) << 27) - 1))));
  SmallVector<Value> left = leftOf(f, {high, f.sub(a, high)}, chunks);
  // The sum with its rounding errors (D. Knuth's two-sum), which dominate near a whole turn.
  Value sum = left.front(), lost = f.c(0);
  for (Value each : ArrayRef(left).drop_front()) {
    Value next = f.add(sum, each), added = f.sub(next, sum);
    lost = f.add(lost, f.add(f.sub(sum, f.sub(next, added)), f.sub(each, added)));
    sum = next;
  }
  Value whole = f.nearest(sum);
  return {whole, f.add(f.sub(sum, whole), lost)};
}

Value sine(ElementBuilder &f, Value x, int64_t shift, bool wasF32) {
  Value a = f.abs(x), angle, whole;
  if (wasF32) {
    QuarterTurns turn = turnOfNarrow(f, a);
    whole = turn.whole;
    angle = f.mul(turn.rest, f.c(1.57079632679489661923));
  } else {
    // W. Cody and W. Waite's reduction in three parts, while the turns have few digits.
    Value near = f.less(a, f.c(1e6)), safe = f.pick(near, a, f.c(0));
    whole = f.nearest(f.mul(safe, f.c(0.63661977236758134308)));
    angle = f.fma(whole, f.c(-1.57079632673412561417e+00), safe);
    angle = f.fma(whole, f.c(-6.07710050630396597660e-11), angle);
    angle = f.fma(whole, f.c(-2.02226624879595063154e-21), angle);
    QuarterTurns turn = turnOfHuge(f, a);
    whole = f.pick(near, whole, turn.whole);
    angle = f.pick(near, angle, f.mul(turn.rest, f.c(1.57079632679489661923)));
  }
  SmallVector<double> odd{1}, even{1};
  for (int i = 1, e = wasF32 ? 6 : 9; i <= e; ++i) {
    odd.push_back(-odd.back() / ((2 * i) * (2 * i + 1)));
    even.push_back(-even.back() / ((2 * i - 1) * (2 * i)));
  }
  Value square = f.mul(angle, angle);
  Value s = f.mul(angle, f.series(square, odd)), co = f.series(square, even);
  Value finite = f.less(a, f.c(std::numeric_limits<double>::infinity()));
  Value quadrant = f.plus(f.toInteger(f.pick(finite, whole, f.c(0))), f.n(shift));
  auto bit = [&](int64_t mask) {
    return f.compare(arith::CmpIPredicate::ne, f.mask(quadrant, f.n(mask)), f.n(0));
  };
  Value result = f.pick(bit(1), co, s);
  result = f.pick(bit(2), f.neg(result), result);
  if (shift == 0)
    result = f.mul(result, f.sign(f.c(1), x));
  return f.pick(finite, result, f.c(std::numeric_limits<double>::quiet_NaN()));
}

} // namespace tessera::codegen
