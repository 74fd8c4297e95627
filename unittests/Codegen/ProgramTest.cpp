//===- ProgramTest.cpp - Execution of compiled local views ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

#include <cmath>

using namespace tessera::codegen::testing;

static const char *kMaps = R"(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#id0 = affine_map<() -> ()>
#all = affine_map<(d0, d1) -> ()>
)";

/// A function of the local view over the mesh @pod of two devices.
static std::string onTwo(const std::string &function) {
  return std::string(kMaps) + "dist.process_mesh @pod(shape = [2], dim_names = [\"tp\"])\n" +
         function;
}
static const char *kTwo =
    R"(attributes {dist.view = "local", dist.mesh = @pod, dist.mesh_devices = array<i64: 0, 1>})";
static const char *kOne = R"(attributes {dist.view = "local", dist.mesh_devices = array<i64: 0>})";

TEST(Program, TensorParallelMLP) {
  Program program(onTwo(std::string(R"(
func.func @main(%x: tensor<8x16xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %w0: tensor<16x32xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@pod, [shard(1)]>, dist.global_type = tensor<16x64xf32>},
                %b0: tensor<32xf32> {dist.name = "b0", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<64xf32>},
                %w1: tensor<32x16xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<64x16xf32>})
    -> (tensor<8x16xf32> {dist.name = "y", dist.sharding = #dist.sharding<@pod, [replicate]>}) )") +
                        kTwo + R"( {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x32xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %h = linalg.matmul ins(%x, %w0 : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %hb = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
    ins(%h, %b0 : tensor<8x32xf32>, tensor<32xf32>) outs(%e0 : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%hb : tensor<8x32xf32>) outs(%e0 : tensor<8x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%r, %w1 : tensor<8x32xf32>, tensor<32x16xf32>) outs(%z1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = dist.all_reduce %p over @pod ["tp"] reduction = sum : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
})"));
  ASSERT_TRUE(program.valid());
  EXPECT_EQ(program.count("launch"), 1);
  EXPECT_EQ(program.count("gemm"), 2);
  auto x = numbers(8 * 16, 1), w0 = numbers(16 * 64, 2), b0 = numbers(64, 3),
       w1 = numbers(64 * 16, 4);
  program.set("x", x);
  program.set("w0", w0);
  program.set("b0", b0);
  program.set("w1", w1);
  program.run();
  auto h = multiply(x, w0, 8, 16, 64);
  for (size_t i = 0; i < h.size(); ++i)
    h[i] = std::max(0.0, h[i] + b0[i % 64]);
  expectClose(program.get("y"), multiply(h, w1, 8, 64, 16));
}

TEST(Program, UnevenMatmulWithMaskedReduction) {
  // k = 7 over 2 devices: 4 and 3. The padding of both operands is zeroed: its NaN must not reach
  // results.
  Program program(onTwo(std::string(R"(
func.func @main(%a: tensor<3x4xf32> {dist.name = "a", dist.sharding = #dist.sharding<@pod, [shard(1)]>, dist.global_type = tensor<3x7xf32>},
                %b: tensor<4x5xf32> {dist.name = "b", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<7x5xf32>})
    -> (tensor<3x5xf32> {dist.name = "c", dist.sharding = #dist.sharding<@pod, [replicate]>},
        tensor<3xf32> {dist.name = "s", dist.sharding = #dist.sharding<@pod, [replicate]>}) )") +
                        kTwo + R"( {
  %zero = arith.constant 0.0 : f32
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %i = dist.axis_index over @pod ["tp"] : index
  %first = arith.muli %i, %c4 : index
  %ea = tensor.empty() : tensor<3x4xf32>
  %am = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<3x4xf32>) outs(%ea : tensor<3x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %d = linalg.index 1 : index
    %g = arith.addi %d, %first : index
    %in = arith.cmpi slt, %g, %c7 : index
    %s = arith.select %in, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %eb = tensor.empty() : tensor<4x5xf32>
  %bm = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<4x5xf32>) outs(%eb : tensor<4x5xf32>) {
  ^bb0(%v: f32, %o: f32):
    %d = linalg.index 0 : index
    %g = arith.addi %d, %first : index
    %in = arith.cmpi slt, %g, %c7 : index
    %s = arith.select %in, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %p = linalg.matmul ins(%am, %bm : tensor<3x4xf32>, tensor<4x5xf32>) outs(%z : tensor<3x5xf32>) -> tensor<3x5xf32>
  %c = dist.all_reduce %p over @pod ["tp"] reduction = sum : tensor<3x5xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %q = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%a : tensor<3x4xf32>) outs(%z3 : tensor<3xf32>) {
  ^bb0(%v: f32, %o: f32):
    %d = linalg.index 1 : index
    %g = arith.addi %d, %first : index
    %in = arith.cmpi slt, %g, %c7 : index
    %t = arith.addf %o, %v : f32
    %s = arith.select %in, %t, %o : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  %s = dist.all_reduce %q over @pod ["tp"] reduction = sum : tensor<3xf32>
  return %c, %s : tensor<3x5xf32>, tensor<3xf32>
})"));
  ASSERT_TRUE(program.valid());
  auto a = numbers(21, 1), b = numbers(35, 2);
  program.set("a", a);
  program.set("b", b);
  program.run();
  expectClose(program.get("c"), multiply(a, b, 3, 7, 5));
  expectClose(program.get("s"), multiply(a, std::vector<double>(7, 1.0), 3, 7, 1));
}

TEST(Program, LoopWithCarry) {
  // Two carries that are swapped, a counter, and a bound computed from an argument.
  Program program(std::string(kMaps) + R"(
func.func @main(%x: tensor<4x4xf32> {dist.name = "x"}, %y: tensor<4x4xf32> {dist.name = "y"},
                %n: tensor<i32> {dist.name = "n"})
    -> (tensor<4x4xf32> {dist.name = "p"}, tensor<4x4xf32> {dist.name = "q"}, tensor<i32> {dist.name = "t"}) )" +
                  kOne + R"( {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t0 = arith.constant 0 : i32
  %n0 = tensor.extract %n[] : tensor<i32>
  %ub = arith.index_cast %n0 : i32 to index
  %r:3 = scf.for %i = %c0 to %ub step %c1 iter_args(%a = %x, %b = %y, %t = %t0) -> (tensor<4x4xf32>, tensor<4x4xf32>, i32) {
    %s = arith.addf %a, %b : tensor<4x4xf32>
    %k = arith.index_cast %i : index to i32
    %u = arith.addi %t, %k : i32
    scf.yield %b, %s, %u : tensor<4x4xf32>, tensor<4x4xf32>, i32
  }
  %t = tensor.from_elements %r#2 : tensor<i32>
  return %r#0, %r#1, %t : tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>
})");
  ASSERT_TRUE(program.valid());
  for (int n : {0, 1, 6}) {
    auto x = numbers(16, 1), y = numbers(16, 2);
    program.set("x", x);
    program.set("y", y);
    program.set("n", {double(n)});
    program.run();
    int total = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < 16; ++j) {
        double s = x[j] + y[j];
        x[j] = y[j];
        y[j] = s;
      }
      total += i;
    }
    expectClose(program.get("p"), x);
    expectClose(program.get("q"), y);
    EXPECT_EQ(program.get("t")[0], total);
  }
}

TEST(Program, AccumulatorCarriedInPlace) {
  Program program(std::string(kMaps) + R"(
func.func @main(%x: tensor<8x4xf32> {dist.name = "x"}, %w: tensor<4x4xf32> {dist.name = "w"})
    -> (tensor<4x4xf32> {dist.name = "c"}) )" +
                  kOne + R"( {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %z) -> (tensor<4x4xf32>) {
    %o = arith.muli %i, %c4 : index
    %s = tensor.extract_slice %x[%o, 0] [4, 4] [1, 1] : tensor<8x4xf32> to tensor<4x4xf32>
    %m = linalg.matmul ins(%s, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%acc : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %m : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
})");
  ASSERT_TRUE(program.valid());
  EXPECT_EQ(program.count("copy"), 0);
  auto x = numbers(32, 1), w = numbers(16, 2);
  program.set("x", x);
  program.set("w", w);
  program.run();
  std::vector<double> sum(16);
  for (int i = 0; i < 16; ++i)
    sum[i] = x[i] + x[16 + i];
  expectClose(program.get("c"), multiply(sum, w, 4, 4, 4));
}

TEST(Program, Branch) {
  Program program(std::string(kMaps) + R"(
func.func @main(%x: tensor<4x4xf32> {dist.name = "x"}, %n: tensor<i32> {dist.name = "n"}) -> (tensor<4x4xf32> {dist.name = "y"}) )" +
                  kOne + R"( {
  %c3 = arith.constant 3 : i32
  %v = tensor.extract %n[] : tensor<i32>
  %c = arith.cmpi sgt, %v, %c3 : i32
  %r = scf.if %c -> tensor<4x4xf32> {
    %s = arith.addf %x, %x : tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  } else {
    scf.yield %x : tensor<4x4xf32>
  }
  %y = math.absf %r : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
})");
  ASSERT_TRUE(program.valid());
  auto x = numbers(16, 1);
  program.set("x", x);
  for (int n : {2, 5}) {
    program.set("n", {double(n)});
    program.run();
    std::vector<double> expected;
    for (double value : x)
      expected.push_back(std::abs(n > 3 ? 2 * value : value));
    expectClose(program.get("y"), expected);
  }
}

TEST(Program, While) {
  // Doubles until the first element is at least 10; counts.
  Program program(std::string(kMaps) + R"(
func.func @main(%x: tensor<4xf32> {dist.name = "x"}) -> (tensor<4xf32> {dist.name = "y"}, tensor<i32> {dist.name = "n"}, tensor<4xf32> {dist.name = "z"}) )" +
                  kOne + R"( {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ten = arith.constant 10.0 : f32
  %r:2 = scf.while (%a = %x, %k = %zero) : (tensor<4xf32>, i32) -> (tensor<4xf32>, i32) {
    %v = tensor.extract %a[%c0] : tensor<4xf32>
    %c = arith.cmpf olt, %v, %ten : f32
    scf.condition(%c) %a, %k : tensor<4xf32>, i32
  } do {
  ^bb0(%a: tensor<4xf32>, %k: i32):
    %d = arith.addf %a, %a : tensor<4xf32>
    %l = arith.addi %k, %one : i32
    scf.yield %d, %l : tensor<4xf32>, i32
  }
  %n = tensor.from_elements %r#1 : tensor<i32>
  %z = arith.addf %r#0, %x : tensor<4xf32>
  return %r#0, %n, %z : tensor<4xf32>, tensor<i32>, tensor<4xf32>
})");
  ASSERT_TRUE(program.valid());
  program.set("x", {1, 2, 3, 4});
  program.run();
  expectClose(program.get("y"), {16, 32, 48, 64});
  expectClose(program.get("z"), {17, 34, 51, 68});
  EXPECT_EQ(program.get("n")[0], 4);
}

TEST(Program, SliceThatIsNotAligned) {
  Program program(std::string(kMaps) + R"(
func.func @main(%x: tensor<4x33xf32> {dist.name = "x"}) -> (tensor<1x13xf32> {dist.name = "y"}, tensor<1x1xf32> {dist.name = "z"}) )" +
                  kOne + R"( {
  %zero = arith.constant 0.0 : f32
  %s = tensor.extract_slice %x[0, 20] [1, 13] [1, 1] : tensor<4x33xf32> to tensor<1x13xf32>
  %y = math.absf %s : tensor<1x13xf32>
  %c = tensor.collapse_shape %s [[0, 1]] : tensor<1x13xf32> into tensor<13xf32>
  %t = tensor.expand_shape %c [[0, 1]] output_shape [13, 1] : tensor<13xf32> into tensor<13x1xf32>
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %z = linalg.matmul ins(%s, %t : tensor<1x13xf32>, tensor<13x1xf32>) outs(%f : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y, %z : tensor<1x13xf32>, tensor<1x1xf32>
})");
  ASSERT_TRUE(program.valid());
  auto x = numbers(4 * 33, 1);
  program.set("x", x);
  program.run();
  std::vector<double> expected(13), square(1);
  for (int i = 0; i < 13; ++i) {
    expected[i] = std::abs(x[20 + i]);
    square[0] += x[20 + i] * x[20 + i];
  }
  expectClose(program.get("y"), expected);
  expectClose(program.get("z"), square);
}

TEST(Program, AttentionWithoutCopies) {
  // Transposes heads [b, s, h, d] for the products and back; only the softmax is a kernel.
  Program program(std::string(kMaps) + R"(
func.func @main(%q: tensor<2x3x8xf32> {dist.name = "q"}, %k: tensor<2x3x8xf32> {dist.name = "k"}, %v: tensor<2x3x8xf32> {dist.name = "v"})
    -> (tensor<2x3x8xf32> {dist.name = "o"}) )" +
                  kOne + R"( {
  %zero = arith.constant 0.0 : f32
  %qe = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
  %ke = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
  %ve = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
  %eh = tensor.empty() : tensor<2x2x3x4xf32>
  %qt = linalg.transpose ins(%qe : tensor<2x3x2x4xf32>) outs(%eh : tensor<2x2x3x4xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%ke : tensor<2x3x2x4xf32>) outs(%eh : tensor<2x2x3x4xf32>) permutation = [0, 2, 1, 3]
  %vt = linalg.transpose ins(%ve : tensor<2x3x2x4xf32>) outs(%eh : tensor<2x2x3x4xf32>) permutation = [0, 2, 1, 3]
  %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x2x3x4xf32> into tensor<4x3x4xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x2x3x4xf32> into tensor<4x3x4xf32>
  %vc = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x2x3x4xf32> into tensor<4x3x4xf32>
  %ekk = tensor.empty() : tensor<4x4x3xf32>
  %kct = linalg.transpose ins(%kc : tensor<4x3x4xf32>) outs(%ekk : tensor<4x4x3xf32>) permutation = [0, 2, 1]
  %es = tensor.empty() : tensor<4x3x3xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  %s = linalg.batch_matmul ins(%qc, %kct : tensor<4x3x4xf32>, tensor<4x4x3xf32>) outs(%zs : tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x3x3xf32>) outs(%es : tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  %eo = tensor.empty() : tensor<4x3x4xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %o = linalg.batch_matmul ins(%p, %vc : tensor<4x3x3xf32>, tensor<4x3x4xf32>) outs(%zo : tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %oe = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 2, 3, 4] : tensor<4x3x4xf32> into tensor<2x2x3x4xf32>
  %et = tensor.empty() : tensor<2x3x2x4xf32>
  %ot = linalg.transpose ins(%oe : tensor<2x2x3x4xf32>) outs(%et : tensor<2x3x2x4xf32>) permutation = [0, 2, 1, 3]
  %oc = tensor.collapse_shape %ot [[0], [1], [2, 3]] : tensor<2x3x2x4xf32> into tensor<2x3x8xf32>
  return %oc : tensor<2x3x8xf32>
})");
  ASSERT_TRUE(program.valid());
  EXPECT_EQ(program.count("launch"), 1);
  EXPECT_EQ(program.count("copy"), 0);
  auto q = numbers(48, 1), k = numbers(48, 2), v = numbers(48, 3);
  program.set("q", q);
  program.set("k", k);
  program.set("v", v);
  program.run();
  std::vector<double> expected(48, 0.0);
  auto at = [](int b, int s, int h, int d) { return (b * 3 + s) * 8 + h * 4 + d; };
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int s = 0; s < 3; ++s) {
        double weights[3], sum = 0;
        for (int t = 0; t < 3; ++t) {
          double dot = 0;
          for (int d = 0; d < 4; ++d)
            dot += q[at(b, s, h, d)] * k[at(b, t, h, d)];
          sum += weights[t] = std::exp(dot);
        }
        for (int t = 0; t < 3; ++t)
          for (int d = 0; d < 4; ++d)
            expected[at(b, s, h, d)] += weights[t] / sum * v[at(b, t, h, d)];
      }
  expectClose(program.get("o"), expected);
}

TEST(Program, TwoMeshes) {
  Program program(std::string(kMaps) + R"(
dist.process_mesh @s0(shape = [2], dim_names = ["x"], process_ids = [0, 1])
dist.process_mesh @s1(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @first(%x: tensor<4x4xf32> {dist.name = "x", dist.argument = 0, dist.sharding = #dist.sharding<@s0, [shard(0)]>, dist.global_type = tensor<8x4xf32>})
    attributes {dist.view = "local", dist.mesh = @s0, dist.mesh_devices = array<i64: 0, 1>, dist.part_of = "main"} {
  %y = arith.addf %x, %x : tensor<4x4xf32>
  dist.send %y to @s1 id = 0 {source = #dist.sharding<@s0, [shard(0)]>, target = #dist.sharding<@s1, [shard(1)]>, global_type = tensor<8x4xf32>} : tensor<4x4xf32>
  return
}
func.func @second(%b: tensor<8x2xf32> {dist.name = "b", dist.argument = 1, dist.sharding = #dist.sharding<@s1, [shard(1)]>, dist.global_type = tensor<8x4xf32>})
    -> (tensor<8x2xf32> {dist.name = "z", dist.result = 0, dist.sharding = #dist.sharding<@s1, [shard(1)]>, dist.global_type = tensor<8x4xf32>})
    attributes {dist.view = "local", dist.mesh = @s1, dist.mesh_devices = array<i64: 2, 3>, dist.part_of = "main"} {
  %y = dist.recv from @s0 id = 0 {source = #dist.sharding<@s0, [shard(0)]>, target = #dist.sharding<@s1, [shard(1)]>, global_type = tensor<8x4xf32>} : tensor<8x2xf32>
  %z = arith.addf %y, %b : tensor<8x2xf32>
  return %z : tensor<8x2xf32>
})");
  ASSERT_TRUE(program.valid());
  auto x = numbers(32, 1), b = numbers(32, 2);
  program.set("x", x);
  program.set("b", b);
  program.run();
  for (int i = 0; i < 32; ++i)
    b[i] += 2 * x[i];
  expectClose(program.get("z"), b);
}

TEST(Program, ExchangeBetweenMeshesOfTheSameDevices) {
  Program program(std::string(kMaps) + R"(
dist.process_mesh @a(shape = [4], dim_names = ["x"])
dist.process_mesh @b(shape = [2, 2], dim_names = ["p", "q"], process_ids = [3, 1, 2, 0])
func.func @main(%x: tensor<2x4xf32> {dist.name = "x", dist.sharding = #dist.sharding<@a, [shard(0)]>, dist.global_type = tensor<8x4xf32>})
    -> (tensor<4x2xf32> {dist.name = "y", dist.sharding = #dist.sharding<@b, [shard(0), shard(1)]>, dist.global_type = tensor<8x4xf32>})
    attributes {dist.view = "local", dist.mesh = @a, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %y = dist.exchange %x from #dist.sharding<@a, [shard(0)]> to #dist.sharding<@b, [shard(0), shard(1)]>
    {sources = [#dist.sharding<@a, [shard(0)]>], targets = [#dist.sharding<@b, [shard(0), shard(1)]>], global_types = [tensor<8x4xf32>]}
    : tensor<2x4xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
})");
  ASSERT_TRUE(program.valid());
  auto x = numbers(32, 1);
  program.set("x", x);
  program.run();
  expectClose(program.get("y"), x);
}

TEST(Program, AsynchronousCollective) {
  Program program(onTwo(std::string(R"(
func.func @main(%x: tensor<4x4xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<8x4xf32>})
    -> (tensor<4x4xf32> {dist.name = "y", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<8x4xf32>}) )") +
                        kTwo + R"( {
  %d = arith.addf %x, %x : tensor<4x4xf32>
  %t = dist.start {
    %r = dist.all_reduce %d over @pod ["tp"] reduction = sum : tensor<4x4xf32>
    dist.yield %r : tensor<4x4xf32>
  } : !dist.token<tensor<4x4xf32>>
  %a = math.absf %x : tensor<4x4xf32>
  %b = arith.addf %a, %x : tensor<4x4xf32>
  %q = dist.wait %t : !dist.token<tensor<4x4xf32>> -> tensor<4x4xf32>
  %y = arith.addf %q, %b : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
})"));
  ASSERT_TRUE(program.valid());
  EXPECT_EQ(program.count("wait"), 1);
  auto x = numbers(32, 1);
  program.set("x", x);
  program.run();
  std::vector<double> expected(32);
  for (int i = 0; i < 32; ++i)
    expected[i] = 2 * (x[i % 16] + x[16 + i % 16]) + std::abs(x[i]) + x[i];
  expectClose(program.get("y"), expected);
}

TEST(Program, TrainingSteps) {
  // Least squares by gradient descent: w feeds w, data-parallel.
  Program program(onTwo(std::string(R"(
func.func @main(%w: tensor<4x1xf32> {dist.name = "w", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %x: tensor<8x4xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<16x4xf32>},
                %y: tensor<8x1xf32> {dist.name = "y", dist.sharding = #dist.sharding<@pod, [shard(0)]>, dist.global_type = tensor<16x1xf32>})
    -> (tensor<f32> {dist.name = "loss", dist.sharding = #dist.sharding<@pod, [replicate]>},
        tensor<4x1xf32> {dist.name = "w_next", dist.feeds = 0, dist.sharding = #dist.sharding<@pod, [replicate]>}) )") +
                        kTwo + R"( {
  %zero = arith.constant 0.0 : f32
  %rate = arith.constant 0.05 : f32
  %e8 = tensor.empty() : tensor<8x1xf32>
  %z8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8x1xf32>) -> tensor<8x1xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x1xf32>) outs(%z8 : tensor<8x1xf32>) -> tensor<8x1xf32>
  %d = arith.subf %p, %y : tensor<8x1xf32>
  %e0 = tensor.empty() : tensor<f32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
    ins(%d : tensor<8x1xf32>) outs(%z0 : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.mulf %v, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %loss = dist.all_reduce %l over @pod ["tp"] reduction = sum : tensor<f32>
  %xt = tensor.empty() : tensor<4x8xf32>
  %tr = linalg.transpose ins(%x : tensor<8x4xf32>) outs(%xt : tensor<4x8xf32>) permutation = [1, 0]
  %e4 = tensor.empty() : tensor<4x1xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x1xf32>) -> tensor<4x1xf32>
  %g = linalg.matmul ins(%tr, %d : tensor<4x8xf32>, tensor<8x1xf32>) outs(%z4 : tensor<4x1xf32>) -> tensor<4x1xf32>
  %gs = dist.all_reduce %g over @pod ["tp"] reduction = sum : tensor<4x1xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w, %gs : tensor<4x1xf32>, tensor<4x1xf32>) outs(%e4 : tensor<4x1xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %b, %rate : f32
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x1xf32>
  return %loss, %n : tensor<f32>, tensor<4x1xf32>
})"));
  ASSERT_TRUE(program.valid());
  EXPECT_EQ(program.count("copy"), 0) << "the parameter is updated in place";
  auto w = numbers(4, 1), x = numbers(64, 2), y = numbers(16, 3);
  program.set("w", w);
  program.set("x", x);
  program.set("y", y);
  for (int step = 0; step < 5; ++step) {
    program.run();
    auto d = multiply(x, w, 16, 4, 1);
    double loss = 0;
    for (int i = 0; i < 16; ++i) {
      d[i] -= y[i];
      loss += d[i] * d[i];
    }
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 16; ++i)
        w[k] -= 0.05 * x[i * 4 + k] * d[i];
    expectClose(program.get("loss"), {loss});
    expectClose(program.get("w_next"), w);
  }
}
