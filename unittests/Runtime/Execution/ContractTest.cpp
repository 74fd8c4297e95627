//===- ContractTest.cpp - Contractions against plain loops ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Execution/ContractKernels.h"
#include "tessera/Runtime/Execution/Contract.h"

#include <cmath>
#include <random>

using namespace tessera::runtime;

namespace {

/// A convolution of any rank, channels first, and its derivatives.
struct Convolution {
  int64_t batch = 1, groups = 1, in = 1, out = 1; ///< channels per group
  std::vector<int64_t> size, window, stride, dilation;

  int64_t rank() const { return static_cast<int64_t>(size.size()); }
  int64_t places(int64_t d) const {
    return (size[d] - dilation[d] * (window[d] - 1) - 1) / stride[d] + 1;
  }
  /// Stride of dimension d: the number of elements inside of it.
  static int64_t inside(const std::vector<int64_t> &shape, int64_t d) {
    int64_t count = 1;
    for (size_t i = d + 1; i < shape.size(); ++i)
      count *= shape[i];
    return count;
  }
  enum class Kind { forward, weights };

  ContractStep step(Kind kind) const {
    std::vector<int64_t> to;
    for (int64_t d = 0; d < rank(); ++d)
      to.push_back(places(d));
    int64_t x = inside(size, -1), y = inside(to, -1), w = inside(window, -1);
    std::vector<ContractLoop> loops;
    // Strides in the image, the kernel and the result.
    loops.push_back({batch, {groups * in * x, 0, groups * out * y}});
    loops.push_back({groups, {in * x, out * in * w, out * y}});
    loops.push_back({out, {0, in * w, y}});
    loops.push_back({in, {x, w, 0}});
    for (int64_t d = 0; d < rank(); ++d) {
      loops.push_back({to[d], {stride[d] * inside(size, d), 0, inside(to, d)}});
      loops.push_back({window[d], {dilation[d] * inside(size, d), inside(window, d), 0}});
    }
    ContractStep made;
    made.loops = loops;
    if (kind == Kind::weights)
      for (ContractLoop &loop : made.loops)
        std::swap(loop.strides[1], loop.strides[2]);
    return made;
  }
};

/// Random operands of a step, and its result in double.
class Trial {
public:
  Trial(const ContractStep &given, std::mt19937 &random) : step(given) {
    int64_t least[3], most[3];
    for (int operand = 0; operand < 3; ++operand) {
      least[operand] = most[operand] = 0;
      for (const ContractLoop &loop : step.loops)
        (loop.strides[operand] < 0 ? least : most)[operand] +=
            (loop.extent - 1) * loop.strides[operand];
      step.starts[operand] = 2 - least[operand];
    }
    auto make = [&](DType dtype, int operand) {
      int64_t count = most[operand] - least[operand] + 4; // two guard elements around
      Bytes bytes(static_cast<size_t>(count * sizeOf(dtype)));
      for (int64_t i = 0; i < count; ++i)
        writeElement(dtype, static_cast<double>(random() % 33) / 8 - 2,
                     bytes.data() + i * sizeOf(dtype));
      return bytes;
    };
    a = make(step.dtype, 0), b = make(step.dtype, 1), c = make(DType::f32, 2);
    expected.resize(c.size() / sizeof(float));
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = readElement(DType::f32, c.data() + i * sizeof(float));
    sizes.assign(expected.size(), 0);
    std::vector<bool> seen(expected.size());
    add(0, step.starts, seen);
  }

  Bytes run(int64_t most) const {
    Bytes result = c;
    Contraction contraction(step);
    int64_t pieces = contraction.split(most);
    EXPECT_LE(pieces, std::max<int64_t>(most, 1));
    for (int64_t piece = pieces; piece-- > 0;)
      contraction.run(piece, a.data(), b.data(), reinterpret_cast<float *>(result.data()));
    return result;
  }

  /// Zeros wherever an operand is read outside of a bound of the step.
  void padOutside(int operand) {
    Bytes &bytes = operand ? b : a;
    std::vector<int64_t> index(step.loops.size(), 0);
    for (bool more = true; more;) {
      int64_t at = step.starts[operand];
      std::vector<int64_t> positions(step.within.size(), 0);
      for (size_t i = 0; i < index.size(); ++i) {
        at += index[i] * step.loops[i].strides[operand];
        for (size_t j = 0; j < positions.size(); ++j)
          positions[j] += index[i] * step.within[j].strides[i];
      }
      for (size_t j = 0; j < positions.size(); ++j)
        if (positions[j] < step.within[j].begin || positions[j] >= step.within[j].end)
          writeElement(step.dtype, 0, bytes.data() + at * sizeOf(step.dtype));
      more = false;
      for (size_t i = 0; i < index.size() && !more; ++i)
        if (more = ++index[i] < step.loops[i].extent; !more)
          index[i] = 0;
    }
    std::fill(expected.begin(), expected.end(), 0);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = readElement(DType::f32, c.data() + i * sizeof(float));
    std::fill(sizes.begin(), sizes.end(), 0);
    std::vector<bool> seen(expected.size());
    add(0, step.starts, seen);
  }

  void check() const {
    Bytes whole = run(1);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(readElement(DType::f32, whole.data() + i * sizeof(float)), expected[i],
                  1e-6 * (sizes[i] + 1))
          << "element " << i;
    for (int64_t most : {2, 3, 8, 64})
      ASSERT_EQ(run(most), whole) << "in " << most << " pieces";
  }

private:
  void add(size_t loop, std::array<int64_t, 3> at, std::vector<bool> &seen) {
    if (loop < step.loops.size()) {
      for (int64_t i = 0; i < step.loops[loop].extent; ++i) {
        add(loop + 1, at, seen);
        for (int operand = 0; operand < 3; ++operand)
          at[operand] += step.loops[loop].strides[operand];
      }
      return;
    }
    double &sum = expected[at[2]];
    if (!seen[at[2]] && !step.accumulate)
      sum = 0;
    seen[at[2]] = true;
    double term = readElement(step.dtype, a.data() + at[0] * sizeOf(step.dtype)) *
                  readElement(step.dtype, b.data() + at[1] * sizeOf(step.dtype));
    sum += term;
    sizes[at[2]] += std::abs(term);
  }

  ContractStep step;
  Bytes a, b, c;
  std::vector<double> expected, sizes;
};

TEST(Contract, ConvolutionsOfAnyRank) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t n) { return static_cast<int64_t>(1 + random() % n); };
  for (int trial = 0; trial < 60; ++trial) {
    Convolution conv{upTo(3), upTo(2), upTo(9), upTo(20), {}, {}, {}, {}};
    for (int64_t rank = upTo(3), d = 0; d < rank; ++d) {
      conv.window.push_back(upTo(3));
      conv.stride.push_back(upTo(3));
      conv.dilation.push_back(upTo(2));
      conv.size.push_back(conv.dilation[d] * (conv.window[d] - 1) + upTo(rank == 1 ? 60 : 9));
    }
    for (auto kind : {Convolution::Kind::forward, Convolution::Kind::weights}) {
      ContractStep step = conv.step(kind);
      step.accumulate = trial % 3 == 0;
      step.dtype = std::array{DType::f32, DType::bf16, DType::f16}[trial / 4 % 3];
      SCOPED_TRACE(trial);
      Trial(step, random).check();
    }
  }
}

TEST(Contract, AnyOrderAndDirectionOfLoops) {
  std::mt19937 random(2);
  Convolution conv{2, 1, 5, 19, {7, 9}, {3, 2}, {1, 2}, {2, 1}};
  for (int trial = 0; trial < 20; ++trial) {
    ContractStep step = conv.step(Convolution::Kind::forward);
    std::shuffle(step.loops.begin(), step.loops.end(), random);
    for (ContractLoop &loop : step.loops)
      for (int operand = 0; operand < 3; ++operand)
        if (random() % 2)
          loop.strides[operand] *= -1;
    step.dtype = trial % 2 ? DType::bf16 : DType::f32;
    Trial(step, random).check();
  }
}

TEST(Contract, SumsLongerThanABlock) {
  std::mt19937 random(3);
  for (bool accumulate : {false, true})
    for (DType dtype : {DType::f32, DType::bf16})
      for (int64_t sums : {1000, 2501, 5003}) {
        ContractStep step;
        step.dtype = dtype;
        step.accumulate = accumulate;
        step.loops = {{11, {sums, 0, 37}}, {37, {0, 1, 1}}, {sums, {1, 37, 0}}};
        Trial(step, random).check();
        // Columns of the result are far apart: the operands are swapped.
        step.loops = {{11, {sums, 0, 1}}, {37, {0, 1, 11}}, {sums, {1, 37, 0}}};
        Trial(step, random).check();
      }
}

TEST(Contract, ProductsOfSmallImages) {
  std::mt19937 random(6);
  constexpr int64_t kBatch = 5, kIn = 400, kOut = 53; // longer than a block, no multiple of a tile
  for (int64_t places : {1, 4, 6, 70})
    for (bool transposed : {false, true}) {
      ContractStep step;
      step.accumulate = transposed;
      step.loops = {{kBatch, {kIn * places, 0, kOut * places}},
                    {places, {1, 0, 1}},
                    {kOut, {0, transposed ? 1 : kIn, places}},
                    {kIn, {places, transposed ? kOut : 1, 0}}};
      SCOPED_TRACE(places);
      Trial(step, random).check();
    }
}

TEST(Contract, LongReversedWindows) {
  std::mt19937 random(7);
  for (int64_t images : {1, 30}) {
    ContractStep step;
    step.loops = {{images, {45 * 7, 0, 37 * 19}},
                  {37, {1, 0, 1}},
                  {19, {0, 63, 37}},
                  {7, {45, 9, 0}},
                  {9, {1, -1, 0}}};
    Trial(step, random).check();
  }
}

TEST(Contract, TransposedConvolutionsOfDisjointWindows) {
  std::mt19937 random(8);
  constexpr int64_t kIn = 21, kImages = 2;
  for (int64_t places : {5, 16, 40})
    for (int64_t out : {3, 19})
      for (bool accumulate : {false, true}) {
        // Rows and windows take turns in a line of the result.
        ContractStep step;
        step.accumulate = accumulate;
        step.loops = {{kImages, {kIn * places, 0, out * places * 2}},
                      {places, {1, 0, 2}},
                      {out, {0, 2, places * 2}},
                      {2, {0, 1, 1}},
                      {kIn, {places, out * 2, 0}}};
        SCOPED_TRACE(places);
        Trial(step, random).check();
      }
}

/// A step of one image with a frame of `pad` zeros, whose bounds are the image.
static ContractStep paddedStep(Convolution conv, int64_t pad, Convolution::Kind kind) {
  const size_t first = 4; // of the loops of places and windows, which alternate
  ContractStep step = conv.step(kind);
  for (size_t d = 0; d < conv.size.size(); ++d) {
    ContractBounds bound;
    bound.strides.assign(step.loops.size(), 0);
    bound.strides[first + 2 * d] = conv.stride[d];
    bound.strides[first + 2 * d + 1] = conv.dilation[d];
    bound.begin = pad, bound.end = conv.size[d] - pad;
    step.within.push_back(bound);
  }
  return step;
}

TEST(Contract, PaddingIsLeftOut) {
  std::mt19937 random(11);
  auto upTo = [&](int64_t n) { return static_cast<int64_t>(1 + random() % n); };
  for (int trial = 0; trial < 8; ++trial) {
    // Tiles of equal rows, and of rows that differ; sums of more than one block.
    const bool isLong = trial % 4 == 1;
    Convolution conv{
        isLong ? 2 : trial % 3 ? 8 : 3, 1, isLong ? 150 : 9, 30 + upTo(20), {}, {}, {}, {}};
    const int64_t pad = upTo(2);
    for (int64_t rank = upTo(2), d = 0; d < rank; ++d) {
      conv.window.push_back(3);
      conv.stride.push_back(upTo(2));
      conv.dilation.push_back(upTo(2));
      conv.size.push_back(2 * pad + 2 * conv.dilation[d] + upTo(4) - 1);
    }
    for (auto kind : {Convolution::Kind::forward, Convolution::Kind::weights}) {
      SCOPED_TRACE(trial);
      ContractStep step = paddedStep(conv, pad, kind);
      step.accumulate = trial % 4 == 0;
      step.dtype = trial % 5 ? DType::f32 : DType::bf16;
      Trial padded(step, random);
      padded.padOutside(0);
      padded.check();
      // The padded operand is the second one.
      for (ContractLoop &loop : step.loops)
        std::swap(loop.strides[0], loop.strides[1]);
      step.starts = {0, 0, 0};
      Trial second(step, random);
      second.padOutside(1);
      second.check();
    }
  }
}

TEST(Contract, PaddingIsNotMultiplied) {
  // Eight images of 2 x 2 in a frame: of nine products with an element of the kernel, four are
  // inside. What is in the frame does not matter, although it is not zero.
  Convolution conv{8, 1, 64, 96, {4, 4}, {3, 3}, {1, 1}, {1, 1}};
  ContractStep step = paddedStep(conv, 1, Convolution::Kind::forward);
  std::vector<float> x(8 * 64 * 16), w(96 * 64 * 9, 1), y(8 * 96 * 4);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = i % 4 == 0 || i % 4 == 3 || i / 4 % 4 == 0 || i / 4 % 4 == 3 ? 1000 : 1;
  Contraction contraction(step);
  for (int64_t piece = 0, pieces = contraction.split(4); piece < pieces; ++piece)
    contraction.run(piece, x.data(), w.data(), y.data());
  for (float value : y)
    ASSERT_EQ(value, 4 * 64);
}

TEST(Contract, FewRowsOfLongColumns) {
  std::mt19937 random(8);
  // Columns that are read in place, of which the last tile has fewer; columns that are not.
  for (int64_t columns : {48, 80, 160, 50})
    for (int64_t rows : {1, 3, 8, 9})
      for (DType dtype : {DType::f32, DType::bf16}) {
        ContractStep step;
        step.dtype = dtype;
        step.accumulate = rows == 3;
        step.loops = {{3, {0, 500 * columns, rows * columns}},
                      {rows, {500, 0, columns}},
                      {columns, {0, 1, 1}},
                      {500, {1, columns, 0}}};
        SCOPED_TRACE(columns);
        Trial(step, random).check();
      }
}

TEST(Contract, SumsTwoApart) {
  std::mt19937 random(9);
  for (int64_t direction : {1, -1}) {
    ContractStep step;
    step.loops = {{21, {900, 0, 18}},
                  {3, {0, 1000, 6}},
                  {6, {0, 1, 1}},
                  {13, {60, 70, 0}},
                  {45, {1, 2 * direction, 0}}};
    Trial(step, random).check();
  }
}

TEST(Contract, NoLoops) {
  std::mt19937 random(4);
  Trial(ContractStep(), random).check();
}

TEST(Contract, TilesOfAllInstructionSets) {
  constexpr int64_t kDepth = 29;
  std::mt19937 random(5);
  std::vector<float> a(8 * kDepth);
  alignas(64) float b[kDepth * 48], tile[8 * 48];
  std::vector<int64_t> offsets(kDepth);
  for (float &x : a)
    x = static_cast<float>(random() % 17) - 8;
  for (float &x : b)
    x = static_cast<float>(random() % 17) - 8;
  for (int64_t i = 0; i < kDepth; ++i)
    offsets[i] = kDepth - 1 - i;
  for (const TileKernels *set : allTileKernels())
    for (int64_t height = 1; height <= set->rows; ++height)
      for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
        std::vector<const float *> rows;
        for (int64_t r = 0; r < height; ++r)
          rows.push_back(a.data() + r * kDepth);
        int64_t width = vectors * set->lanes;
        set->kernels[height - 1][vectors - 1](kDepth, rows.data(), offsets.data(), b, tile);
        for (int64_t r = 0; r < height; ++r)
          for (int64_t column = 0; column < width; ++column) {
            float sum = 0;
            for (int64_t i = 0; i < kDepth; ++i)
              sum += a[r * kDepth + offsets[i]] * b[i * width + column];
            ASSERT_EQ(tile[r * width + column], sum) << set->name << " " << height;
          }
      }
}

} // namespace
