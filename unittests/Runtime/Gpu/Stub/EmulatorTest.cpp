//===- EmulatorTest.cpp - Grids on the CPU --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gpu/Stub/Emulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace tessera::runtime;

static GpuLaunch launchOf(std::string symbol, std::array<int64_t, 3> grid,
                          std::array<int64_t, 3> block, int64_t sharedBytes = 0) {
  return {std::move(symbol), grid, block, sharedBytes, {}};
}

class Emulator : public testing::Test {
protected:
  void SetUp() override {
    auto code = readFile(TEST_STUB_KERNELS);
    ASSERT_TRUE(code) << code.message();
    GpuModule module;
    module.images.push_back({"stub",
                             {"twice",
                              "reverse",
                              "sum",
                              "move",
                              "stack",
                              "diverge",
                              "beyond",
                              "product",
                              "product_tf32",
                              "matrices",
                              "alone",
                              "copies",
                              "approximate",
                              "shift",
                              "reuse",
                              "askew",
                              "askew_copies",
                              "races",
                              "races_of_copies",
                              "races_in_warps",
                              "warpgroup"},
                             *code});
    Status status = library.open(module);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  /// The error, or an empty text.
  std::string run(const GpuLaunch &grid, std::vector<void *> pointers, LaunchOrder order = {}) {
    return launch(library, grid, pointers.data(), order).message();
  }

  StubKernelLibrary library;
};

TEST_F(Emulator, PlainThreads) {
  std::vector<float> x(24), y(24), expected(24);
  std::iota(x.begin(), x.end(), 1.0f);
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = 2 * x[i];
  EXPECT_EQ(run(launchOf("twice", {3, 1, 1}, {8, 1, 1}), {x.data(), y.data()}), "");
  EXPECT_EQ(y, expected);
}

TEST_F(Emulator, StacksAreAligned) {
  uint64_t x = 1;
  EXPECT_EQ(run(launchOf("stack", {1, 1, 1}, {1, 1, 1}), {&x}), "");
  EXPECT_EQ(x, 0u);
}

TEST_F(Emulator, BarriersAndSharedMemory) {
  std::vector<float> x(3 * 200), expected(x.size());
  std::iota(x.begin(), x.end(), 0.0f);
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = float(i / 200 * 200 + 199 - i % 200);
  EXPECT_EQ(run(launchOf("reverse", {1, 3, 1}, {200, 1, 1}, 800), {x.data()}), "");
  EXPECT_EQ(x, expected);
}

TEST_F(Emulator, ShufflesWithinGroupsOfLanes) {
  std::vector<uint32_t> x(64);
  std::iota(x.begin(), x.end(), 0);
  EXPECT_EQ(run(launchOf("sum", {1, 1, 1}, {8, 8, 1}), {x.data()}), "");
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(x[i], i / 8 * 64 + 28) << i;
}

TEST_F(Emulator, ShuffleModes) {
  struct {
    uint32_t mode, operand, clamp, lane, from;
  } table[] = {
      {TESSERA_STUB_SHUFFLE_XOR, 3, 31, 6, 5},
      {TESSERA_STUB_SHUFFLE_UP, 2, 0, 6, 4},
      {TESSERA_STUB_SHUFFLE_UP, 2, 0, 1, 1}, // no lane so far below: its own value
      {TESSERA_STUB_SHUFFLE_DOWN, 2, 31, 6, 8},
      {TESSERA_STUB_SHUFFLE_DOWN, 2, 31, 30, 30},         // no lane so far above
      {TESSERA_STUB_SHUFFLE_DOWN, 2, 24 << 8 | 31, 6, 6}, // segments of 8
      {TESSERA_STUB_SHUFFLE_INDEX, 9, 31, 20, 9},
      {TESSERA_STUB_SHUFFLE_INDEX, 9, 24 << 8 | 31, 20, 17},
  };
  for (auto &row : table) {
    std::vector<uint32_t> x(32), how{row.mode, row.operand, row.clamp};
    std::iota(x.begin(), x.end(), 0);
    EXPECT_EQ(run(launchOf("move", {1, 1, 1}, {32, 1, 1}), {x.data(), how.data()}), "");
    EXPECT_EQ(x[row.lane], row.from) << row.mode << " " << row.operand << " " << row.clamp;
  }
}

namespace {

/// d = a b + c of small integers, which both types represent exactly.
struct Product {
  std::vector<uint16_t> a, b;
  std::vector<float> c, d, expected;

  explicit Product(bool isBf16) : d(16 * 8) {
    auto value = [](size_t row, size_t column) {
      return static_cast<float>((7 * row + 5 * column + row * column) % 13) - 6;
    };
    auto narrow = [&](float x) {
      if (isBf16) {
        uint32_t bits;
        std::memcpy(&bits, &x, sizeof(bits));
        return static_cast<uint16_t>(bits >> 16);
      }
      if (x == 0)
        return uint16_t(0);
      int exponent;
      float fraction = std::frexp(std::abs(x), &exponent); // in [1/2, 1)
      return static_cast<uint16_t>((x < 0) << 15 | (exponent + 14) << 10 |
                                   static_cast<int>(fraction * 2048 - 1024));
    };
    for (size_t i = 0; i < 16; ++i)
      for (size_t k = 0; k < 16; ++k)
        a.push_back(narrow(value(i, k)));
    for (size_t k = 0; k < 16; ++k)
      for (size_t j = 0; j < 8; ++j)
        b.push_back(narrow(value(3 * k, j + 1)));
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 8; ++j) {
        c.push_back(value(i, 2 * j));
        expected.push_back(c.back());
        for (size_t k = 0; k < 16; ++k)
          expected.back() += value(i, k) * value(3 * k, j + 1);
      }
  }
};

} // namespace

TEST_F(Emulator, ProductsUseTheFragmentsOfThePtxManual) {
  for (bool isBf16 : {true, false}) {
    Product product(isBf16);
    std::vector<uint32_t> how{isBf16, 0};
    EXPECT_EQ(
        run(launchOf("product", {1, 1, 1}, {32, 1, 1}),
            {product.a.data(), product.b.data(), product.c.data(), product.d.data(), how.data()}),
        "");
    EXPECT_EQ(product.d, product.expected) << "bf16: " << isBf16;
  }
}

TEST_F(Emulator, AWrongFragmentLayoutIsFound) {
  for (uint32_t fault : {1, 2, 3}) {
    Product product(/*isBf16=*/true);
    std::vector<uint32_t> how{1, fault};
    EXPECT_EQ(
        run(launchOf("product", {1, 1, 1}, {32, 1, 1}),
            {product.a.data(), product.b.data(), product.c.data(), product.d.data(), how.data()}),
        "");
    EXPECT_NE(product.d, product.expected) << "fault " << fault;
  }
}

TEST_F(Emulator, ProductsOfTf32UseTheFragmentsOfThePtxManual) {
  for (uint32_t fault : {0, 1, 2, 3}) {
    std::vector<float> a(16 * 8), b(8 * 8), c(16 * 8), d(16 * 8), expected(16 * 8);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>((7 * i + i / 8) % 13) - 6;
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<float>((5 * i + i / 8) % 11) - 5;
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 8; ++j) {
        c[i * 8 + j] = expected[i * 8 + j] = static_cast<float>(3 * i + j);
        for (size_t k = 0; k < 8; ++k)
          expected[i * 8 + j] += a[i * 8 + k] * b[k * 8 + j];
      }
    for (float &each : a) // the hardware does not read the 13 lowest bits
      each *= 1 + 0x1p-13f;
    std::vector<uint32_t> how{fault};
    EXPECT_EQ(run(launchOf("product_tf32", {1, 1, 1}, {32, 1, 1}),
                  {a.data(), b.data(), c.data(), d.data(), how.data()}),
              "");
    if (fault == 0)
      EXPECT_EQ(d, expected);
    else
      EXPECT_NE(d, expected) << "fault " << fault;
  }
}

/// The examples of the manual ("Canonical Layouts"), for 16-bit elements: the exact layout is
/// ((8, b, m), (8, 2)) : ((1, 8, block), (row, half)) before the swizzle.
TEST_F(Emulator, DescriptorsHaveTheLayoutsOfThePtxManual) {
  struct Example {
    uint64_t mode, leading, stride; ///< offsets in elements
    uint32_t words, block, row, half, swizzle;
  };
  const Example examples[] = {{0, 128, 64, 1, 64, 8, 128, 0},    // no swizzle, figure 168
                              {3, 128, 256, 2, 128, 16, 256, 1}, // 32 bytes, figure 169
                              {2, 256, 512, 4, 256, 32, 512, 3}, // 64 bytes, figure 170
                              {1, 512, 1024, 8, 512, 64, 1024, 7}};
  for (const Example &each : examples) {
    MatrixDescriptor matrix{each.mode << 62 | each.stride * 2 / 16 << 32 |
                                each.leading * 2 / 16 << 16 | 1024 / 16,
                            /*transposed=*/true};
    for (uint32_t row = 0; row < 16 * each.words; ++row)
      for (uint32_t k = 0; k < 16; ++k) {
        uint32_t element = row % 8 + row / 8 % each.words * 8 + row / 8 / each.words * each.block +
                           k % 8 * each.row + k / 8 * each.half;
        uint32_t byte = 1024 + 2 * element;
        byte ^= (byte >> 7 & each.swizzle) << 4;
        ASSERT_EQ(matrix.place(row, k, 0), byte) << each.mode << ": " << row << ", " << k;
      }
  }
  // The summed index is contiguous: ((8, m), (T, 2)) : ((T words, stride), (1, T or leading)).
  const Example contiguous[] = {{0, 64, 128, 1, 0, 0, 0, 0},
                                {3, 8, 128, 2, 0, 0, 0, 1},
                                {2, 8, 256, 4, 0, 0, 0, 3},
                                {1, 8, 512, 8, 0, 0, 0, 7}};
  for (const Example &each : contiguous) {
    MatrixDescriptor matrix{each.mode << 62 | each.stride * 2 / 16 << 32 |
                            each.leading * 2 / 16 << 16};
    for (uint32_t row = 0; row < 64; ++row)
      for (uint32_t k = 0; k < 16; ++k) {
        auto byte = static_cast<uint32_t>(
            2 * (row % 8 * 8 * each.words + row / 8 * each.stride + k % 8 + k / 8 * each.leading));
        byte ^= (byte >> 7 & each.swizzle) << 4;
        ASSERT_EQ(matrix.place(row, k, 0), byte) << each.mode << ": " << row << ", " << k;
      }
  }
}

TEST_F(Emulator, ProductsOfWarpgroups) {
  auto value = [](size_t row, size_t k) {
    return static_cast<float>((7 * row + 5 * k + row * k) % 13) - 6;
  };
  auto narrow = [](float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return static_cast<uint16_t>(bits >> 16);
  };
  std::vector<uint16_t> a, b;
  for (size_t i = 0; i < 64 * 16; ++i)
    a.push_back(narrow(value(i / 16, i % 16)));
  for (size_t i = 0; i < 16 * 16; ++i)
    b.push_back(narrow(value(i / 16 + 3, i % 16)));
  std::vector<float> expected;
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 16; ++j) {
      expected.push_back(1);
      for (size_t k = 0; k < 16; ++k)
        expected.back() += value(i, k) * value(j + 3, k);
    }
  auto runWith = [&](uint32_t fault, std::vector<float> &d) {
    d.assign(64 * 16, 0);
    std::vector<uint32_t> how{fault};
    LaunchOrder order;
    order.checkAccesses = true;
    return run(launchOf("warpgroup", {1, 1, 1}, {128, 1, 1}, 64 * 32 + 16 * 32),
               {a.data(), b.data(), d.data(), how.data()}, order);
  };
  std::vector<float> d;
  EXPECT_EQ(runWith(0, d), "");
  EXPECT_EQ(d, expected);
  const std::pair<uint32_t, const char *> faults[] = {
      {1, "multiplies without a wgmma.fence after other accesses to its registers"},
      {2, "ends before a product that it has begun"},
      {3, "has written without a fence.proxy.async"},
      {4, "waits for a product whose operands in shared memory have changed meanwhile"},
      {5, "with no barrier between them"},
      {6, "multiplies other operands than another warp of its warpgroup"},
      {7, "executes fewer products than another warp of its warpgroup"},
      {8, "of shared memory, beyond its end"},
      {10, "with no barrier between them"}};
  for (auto [fault, message] : faults)
    EXPECT_NE(runWith(fault, d).find(message), std::string::npos)
        << "fault " << fault << ": " << runWith(fault, d);
  EXPECT_EQ(runWith(9, d), ""); // the sums are NaN
  for (float each : d)
    EXPECT_TRUE(std::isnan(each));
}

TEST_F(Emulator, LoadsMatricesAsInThePtxManual) {
  std::vector<uint16_t> x(32 * 8);
  std::iota(x.begin(), x.end(), 0);
  for (uint32_t transposed : {0, 1}) {
    std::vector<uint32_t> words(32 * 4), how{transposed};
    EXPECT_EQ(
        run(launchOf("matrices", {1, 1, 1}, {32, 1, 1}, 512), {x.data(), words.data(), how.data()}),
        "");
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        uint32_t row = lane / 4, column = lane % 4 * 2;
        auto at = [&](uint32_t half) {
          return transposed ? x[(8 * matrix + column + half) * 8 + row]
                            : x[(8 * matrix + row) * 8 + column + half];
        };
        EXPECT_EQ(words[4 * lane + matrix], at(0) | uint32_t(at(1)) << 16)
            << "lane " << lane << ", matrix " << matrix << ", transposed " << transposed;
      }
  }
}

TEST_F(Emulator, AsynchronousCopiesAreCompleteAfterTheirWait) {
  constexpr size_t kThreads = 64;
  std::vector<uint32_t> x(2 * 4 * kThreads), expected(x.size());
  std::iota(x.begin(), x.end(), 1);
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = x[i / (4 * kThreads) * 4 * kThreads + (i + 4) % (4 * kThreads)];
  auto copied = [&](uint32_t fault) {
    std::vector<uint32_t> y(x.size()), how{fault};
    EXPECT_EQ(run(launchOf("copies", {1, 1, 1}, {kThreads, 1, 1}, 2 * 4 * 4 * kThreads),
                  {x.data(), y.data(), how.data()}),
              "");
    return y;
  };
  EXPECT_EQ(copied(0), expected);
  for (uint32_t fault : {1, 2, 3, 4}) {
    std::vector<uint32_t> y = copied(fault);
    EXPECT_NE(y, expected) << "fault " << fault;
    EXPECT_TRUE(std::count(y.begin(), y.end(), ~0u)) << "NaN reveals fault " << fault;
  }
  std::vector<uint32_t> halves = copied(5);
  for (size_t i = 0; i < halves.size(); ++i)
    EXPECT_EQ(halves[i], i % 4 < 2 ? expected[i] : 0u) << i;
}

TEST_F(Emulator, ApproximationsHaveTheErrorsOfTheManual) {
  std::vector<float> x(4096), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (static_cast<float>(i) - 2048) * 0.0737f;
  x[0] = -INFINITY, x[1] = INFINITY, x[2] = NAN, x[3] = 0;
  for (uint32_t function : {0, 1, 2}) {
    std::vector<uint32_t> how{function};
    EXPECT_EQ(
        run(launchOf("approximate", {64, 1, 1}, {64, 1, 1}), {x.data(), y.data(), how.data()}), "");
    EXPECT_EQ(y[0], function == 2 ? -1.0f : 0.0f);
    EXPECT_EQ(y[1], function == 2 ? 1.0f : INFINITY);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], function == 2 ? 0.0f : 1.0f);
    double largest = 0;
    for (size_t i = 4; i < x.size(); ++i) {
      double exact = function == 2 ? std::tanh(double(x[i])) : std::exp2(double(x[i]));
      double bound = function == 2 ? std::abs(exact) * 0x1p-11 : 0x1p-149;
      if (function < 2 && exact >= 0x1p-126)
        bound = std::exp2(std::floor(x[i]) - 22); // two units in the last place
      if (function == 1 && exact < 0x1p-126)
        EXPECT_EQ(y[i], 0.0f) << x[i];
      else if (std::isfinite(y[i]))
        largest = std::max(largest, std::abs(y[i] - exact) / bound);
    }
    EXPECT_LE(largest, 2.01) << function; // subnormal results have two of the least number
    EXPECT_GE(largest, 0.7) << "tests must see that they are not exact";
  }
}

TEST_F(Emulator, AProductWithoutTheWholeWarpIsFound) {
  EXPECT_EQ(run(launchOf("alone", {1, 1, 1}, {32, 1, 1}), {nullptr}),
            "kernel 'alone': thread (0, 0, 0) of block (0, 0, 0) waits at a matrix product "
            "that thread (3, 0, 0) of block (0, 0, 0) never reaches: it has returned");
}

TEST_F(Emulator, ADivergentBarrierIsFound) {
  EXPECT_EQ(run(launchOf("diverge", {1, 1, 1}, {64, 1, 1}), {nullptr}),
            "kernel 'diverge': thread (0, 0, 0) of block (0, 0, 0) waits at a barrier that thread "
            "(5, 0, 0) of block (0, 0, 0) never reaches: it has returned");
  std::vector<float> x(8, 1.0f), y(8);
  EXPECT_EQ(run(launchOf("twice", {1, 1, 1}, {8, 1, 1}), {x.data(), y.data()}), "")
      << "the next launch is not affected";
}

TEST_F(Emulator, AnAccessBeyondItsArgumentIsReported) {
  EXPECT_EQ(run(launchOf("beyond", {4, 1, 1}, {2, 1, 1}), {nullptr}),
            "kernel 'beyond': thread (0, 0, 0) of block (1, 0, 0) accesses 4 bytes at byte 64 of "
            "argument 0, beyond its end");
}

namespace {
constexpr LaunchOrder kOrders[] = {{LaunchOrder::Kind::ascending},
                                   {LaunchOrder::Kind::descending},
                                   {LaunchOrder::Kind::shuffled, 1},
                                   {LaunchOrder::Kind::shuffled, 2}};
} // namespace

/// A GPU has no order of blocks, of warps, or of the lanes of a warp.
TEST_F(Emulator, ResultsDependOnTheOrderOnlyIfABarrierIsMissing) {
  constexpr uint32_t kThreads = 96, kBlocks = 5;
  std::vector<float> x(kThreads * kBlocks), expected(x.size());
  std::iota(x.begin(), x.end(), 1.0f);
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = x[i % kThreads ? i - 1 : i];
  auto shifted = [&](uint32_t fault, LaunchOrder order) {
    std::vector<float> y(x.size(), 0.0f);
    EXPECT_EQ(run(launchOf("shift", {kBlocks, 1, 1}, {kThreads, 1, 1}, 4 * kThreads),
                  {x.data(), y.data(), &fault}, order),
              "");
    for (float &each : y)
      each = std::isnan(each) ? -1 : each; // comparable
    return y;
  };
  for (LaunchOrder order : kOrders)
    EXPECT_EQ(shifted(0, order), expected) << toString(order);
  // In ascending order every value is there when it is read: that order hides both faults.
  EXPECT_EQ(shifted(1, kOrders[0]), expected);
  std::vector<float> summed = shifted(2, kOrders[0]);
  for (size_t i = 1; i < std::size(kOrders); ++i) {
    EXPECT_NE(shifted(1, kOrders[i]), expected) << "no barrier, " << toString(kOrders[i]);
    EXPECT_NE(shifted(2, kOrders[i]), summed) << "another block, " << toString(kOrders[i]);
  }
  EXPECT_EQ(shifted(1, kOrders[2]), shifted(1, kOrders[2])) << "a seed has one order";
}

TEST_F(Emulator, AMissingBarrierBeforeAWriteIsFound) {
  constexpr uint32_t kThreads = 64;
  std::vector<float> x(kThreads), expected(kThreads);
  std::iota(x.begin(), x.end(), 1.0f);
  for (size_t i = 0; i < kThreads; ++i)
    expected[i] = x[(i + 1) % kThreads];
  for (uint32_t fault : {0, 1}) {
    bool found = false;
    for (LaunchOrder order : kOrders) {
      std::vector<float> y(kThreads);
      EXPECT_EQ(run(launchOf("reuse", {1, 1, 1}, {kThreads, 1, 1}, 4 * kThreads),
                    {x.data(), y.data(), &fault}, order),
                "");
      found |= y != expected;
    }
    EXPECT_EQ(found, fault == 1);
  }
}

TEST_F(Emulator, AMisalignedAccessIsReported) {
  EXPECT_EQ(run(launchOf("askew", {1, 1, 1}, {4, 1, 1}), {}),
            "kernel 'askew': thread (2, 0, 0) of block (0, 0, 0) accesses 16 bytes at an address 4 "
            "past a multiple of 16");
  alignas(16) static float x[64];
  const char *wanted[] = {"thread (0, 0, 0)", "thread (0, 0, 0)", "thread (1, 0, 0)"};
  for (uint32_t fault : {0, 1, 2})
    EXPECT_EQ(run(launchOf("askew_copies", {1, 1, 1}, {32, 1, 1}, 640), {x, &fault}),
              "kernel 'askew_copies': " + std::string(wanted[fault]) +
                  " of block (0, 0, 0) accesses 16 bytes at an address 4 past a multiple of 16");
}

TEST_F(Emulator, RacesAreFoundInEveryOrder) {
  constexpr uint32_t kThreads = 64, kBlocks = 3;
  const std::string zero = "thread (0, 0, 0) of block (0, 0, 0)";
  struct {
    uint32_t fault;
    std::string wanted; ///< in ascending order
  } table[] = {
      {0, ""},
      {1, "thread (1, 0, 0) of block (0, 0, 0) writes byte 16 of the workspace, which " + zero +
              " writes, with no barrier between them"},
      {2, "thread (1, 0, 0) of block (0, 0, 0) writes byte 16 of the workspace, which " + zero +
              " writes, with no barrier between them"},
      {3, "thread (32, 0, 0) of block (0, 0, 0) writes byte 128 of shared memory, which thread "
          "(31, 0, 0) of block (0, 0, 0) reads, with no barrier between them"},
      {4, "thread (32, 0, 0) of block (0, 0, 0) writes byte 128 of shared memory, which thread "
          "(31, 0, 0) of block (0, 0, 0) reads, with no barrier between them"},
      {5, "thread (32, 0, 0) of block (0, 0, 0) reads byte 124 of shared memory, which thread "
          "(31, 0, 0) of block (0, 0, 0) writes, with no barrier between them"},
      {6, "thread (0, 0, 0) of block (1, 0, 0) reads byte 0 of operand 2, which " + zero +
              " writes; the blocks of a launch have no order"},
      {7, "thread (0, 0, 0) of block (1, 0, 0) writes byte 252 of operand 0, which thread "
          "(63, 0, 0) of block (0, 0, 0) reads; the blocks of a launch have no order"},
      {8, ""},
      {9, zero + " writes byte 0 of operand 5, which the launch states only to read"},
  };
  std::vector<uint32_t> x(kThreads * kBlocks), word(1);
  std::iota(x.begin(), x.end(), 1);
  for (auto &row : table) {
    GpuLaunch grid = launchOf("races", {kBlocks, 1, 1}, {kThreads, 1, 1}, 4 * kThreads);
    grid.arguments = {{0, 0, 4 * kThreads * kBlocks, true},
                      {2, 0, 4 * kThreads * kBlocks, true},
                      {-1, 16, 4, true},
                      {5, 0, 4, false}};
    for (LaunchOrder order : kOrders) {
      std::vector<uint32_t> y(x.size());
      order.checkAccesses = true;
      std::vector<uint32_t> given = x;
      std::string error = run(grid, {given.data(), y.data(), word.data(), &row.fault}, order);
      if (order.kind == LaunchOrder::Kind::ascending)
        EXPECT_EQ(error, row.wanted.empty() ? "" : "kernel 'races': " + row.wanted) << row.fault;
      EXPECT_EQ(error.empty(), row.wanted.empty()) << row.fault << ", " << toString(order);
      if (row.fault == 0)
        EXPECT_EQ(y, x) << toString(order);
      order.checkAccesses = false;
      given = x;
      uint32_t fault = row.fault;
      EXPECT_EQ(run(grid, {given.data(), y.data(), word.data(), &fault}, order), "");
    }
  }
}

TEST_F(Emulator, RacesOfAsynchronousCopiesAreFound) {
  constexpr uint32_t kThreads = 64;
  const std::string zero = "thread (0, 0, 0) of block (0, 0, 0)";
  const std::string early = "thread (1, 0, 0) of block (0, 0, 0) writes byte 4 of shared memory, "
                            "which " +
                            zero + " reads, with no barrier between them";
  std::vector<std::string> wanted = {"",
                                     zero + " reads byte 0 of shared memory, which " + zero +
                                         " copies asynchronously and has not waited for",
                                     early, early};
  std::vector<uint32_t> x(kThreads);
  for (uint32_t fault = 0; fault < wanted.size(); ++fault) {
    std::vector<uint32_t> y(x.size());
    GpuLaunch grid = launchOf("races_of_copies", {1, 1, 1}, {kThreads, 1, 1}, 4 * kThreads);
    grid.arguments = {{0, 0, 4 * kThreads, false}, {1, 0, 4 * kThreads, true}, {2, 0, 4, false}};
    LaunchOrder order;
    order.checkAccesses = true;
    std::string error = run(grid, {x.data(), y.data(), &fault}, order);
    EXPECT_EQ(error, wanted[fault].empty() ? "" : "kernel 'races_of_copies': " + wanted[fault]);
  }
}

TEST_F(Emulator, BarriersOfWarpsOrderTheirLanesAlone) {
  constexpr uint32_t kThreads = 64;
  const std::string zero = "thread (0, 0, 0) of block (0, 0, 0)";
  const std::string one = "thread (1, 0, 0) of block (0, 0, 0)";
  std::vector<std::string> wanted = {
      "",
      one + " writes byte 4 of shared memory, which " + zero +
          " reads, with no barrier between them",
      one + " writes byte 4 of shared memory, which " + zero +
          " reads, with no barrier between them",
      "thread (32, 0, 0) of block (0, 0, 0) writes byte 128 of shared memory, which " + zero +
          " reads, with no barrier between them",
      "thread (21, 0, 0) of block (0, 0, 0) shuffles, votes or waits where another lane of its "
      "warp does not"};
  std::vector<uint32_t> x(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i)
    x[i] = i % 3 == 0;
  for (uint32_t fault = 0; fault < wanted.size(); ++fault) {
    std::vector<uint32_t> y(x.size());
    GpuLaunch grid = launchOf("races_in_warps", {1, 1, 1}, {kThreads, 1, 1}, 4 * kThreads);
    grid.arguments = {{0, 0, 4 * kThreads, false}, {1, 0, 4 * kThreads, true}, {2, 0, 4, false}};
    LaunchOrder order;
    order.checkAccesses = true;
    std::string error = run(grid, {x.data(), y.data(), &fault}, order);
    EXPECT_EQ(error, wanted[fault].empty() ? "" : "kernel 'races_in_warps': " + wanted[fault]);
    if (fault > 0)
      continue;
    // Each lane has the word of the third lane after it.
    for (uint32_t begin = 0; begin < kThreads; begin += 32) {
      std::vector<uint32_t> warp(x.begin() + begin, x.begin() + begin + 32);
      std::rotate(warp.begin(), warp.begin() + 3, warp.end());
      uint32_t ballot = 0;
      for (uint32_t lane = 0; lane < 32; ++lane)
        ballot |= warp[lane] << lane;
      for (uint32_t lane = 0; lane < 32; ++lane)
        EXPECT_EQ(y[begin + lane], ballot);
    }
  }
}

TEST_F(Emulator, LaunchesRunConcurrently) {
  std::vector<std::thread> pool;
  std::vector<std::vector<uint32_t>> values(4, std::vector<uint32_t>(1024, 1));
  std::vector<std::string> errors(4);
  for (size_t i = 0; i < values.size(); ++i)
    pool.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round)
        errors[i] += run(launchOf("sum", {1, 1, 1}, {32, 32, 1}), {values[i].data()});
    });
  for (std::thread &thread : pool)
    thread.join();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(errors[i], "");
    EXPECT_EQ(values[i], std::vector<uint32_t>(1024, 32 * 32 * 32));
  }
}

TEST(StubKernelLibrary, NamesMissingKernels) {
  GpuModule module;
  module.kernels.push_back({{launchOf("k", {1, 1, 1}, {1, 1, 1})}, 0});
  EXPECT_EQ(StubKernelLibrary().open(module).message(),
            "kernels: the artifact has no code for architecture 'stub'; compile it with "
            "--target=stub");
  auto code = readFile(TEST_STUB_KERNELS);
  module.images.push_back({"stub", {"k"}, *code});
  EXPECT_EQ(StubKernelLibrary().open(module).message(), "kernels: there is no symbol 'k'");
}
