//===- KernelTexts.h - Kernels of tests and benchmarks ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of rows {m} and columns {n}, which `substitute` replaces.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_CODEGEN_KERNELTEXTS_H
#define TESSERA_UNITTESTS_CODEGEN_KERNELTEXTS_H

#include <string>
#include <utility>
#include <vector>

namespace tessera::codegen::testing {

/// The text with the value of each {name}.
inline std::string substitute(std::string text,
                              const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values)
    for (size_t at; (at = text.find("{" + name + "}")) != std::string::npos;)
      text.replace(at, name.size() + 2, value);
  return text;
}

inline constexpr const char *kLayerNorm = R"(
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
func.func @layernorm(%x: tensor<{m}x{n}xf32>, %g: tensor<{n}xf32>, %b: tensor<{n}xf32>, %o: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    attributes {kernel.reads = 3 : i64} {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant {n}.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : tensor<{m}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<{m}x{n}xf32>) outs(%f : tensor<{m}xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %e2 = tensor.empty() : tensor<{m}x{n}xf32>
  %cen = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%e2 : tensor<{m}x{n}xf32>) {
  ^bb0(%a: f32, %s: f32, %c: f32):
    %mean = arith.divf %s, %count : f32
    %d = arith.subf %a, %mean : f32
    linalg.yield %d : f32
  } -> tensor<{m}x{n}xf32>
  %e3 = tensor.empty() : tensor<{m}xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<{m}xf32>) -> tensor<{m}xf32>
  %sq = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%cen : tensor<{m}x{n}xf32>) outs(%f3 : tensor<{m}xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = arith.mulf %a, %a : f32
    %s = arith.addf %d, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #col, #col, #all], iterator_types = ["parallel", "parallel"]}
    ins(%cen, %sq, %g, %b : tensor<{m}x{n}xf32>, tensor<{m}xf32>, tensor<{n}xf32>, tensor<{n}xf32>) outs(%o : tensor<{m}x{n}xf32>) {
  ^bb0(%a: f32, %s: f32, %gg: f32, %bb: f32, %c: f32):
    %v = arith.divf %s, %count : f32
    %ve = arith.addf %v, %eps : f32
    %rs = math.rsqrt %ve : f32
    %y = arith.mulf %a, %rs : f32
    %z = arith.mulf %y, %gg : f32
    %w = arith.addf %z, %bb : f32
    linalg.yield %w : f32
  } -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
})";

inline constexpr const char *kBiasGelu = R"(
#row = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
func.func @gelu(%x: tensor<{m}x{n}xf32>, %b: tensor<{n}xf32>, %o: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    attributes {kernel.reads = 2 : i64} {
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %b : tensor<{m}x{n}xf32>, tensor<{n}xf32>) outs(%e : tensor<{m}x{n}xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %r = arith.addf %a, %c : f32
    linalg.yield %r : f32
  } -> tensor<{m}x{n}xf32>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%s : tensor<{m}x{n}xf32>) outs(%o : tensor<{m}x{n}xf32>) {
  ^bb0(%a: f32, %d: f32):
    %c0 = arith.constant 0.044715 : f32
    %c1 = arith.constant 0.7978845608 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %a2 = arith.mulf %a, %a : f32
    %a3 = arith.mulf %a2, %a : f32
    %t0 = arith.mulf %c0, %a3 : f32
    %t1 = arith.addf %a, %t0 : f32
    %t2 = arith.mulf %c1, %t1 : f32
    %t3 = math.tanh %t2 : f32
    %t4 = arith.addf %one, %t3 : f32
    %t5 = arith.mulf %half, %a : f32
    %g = arith.mulf %t5, %t4 : f32
    linalg.yield %g : f32
  } -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
})";

} // namespace tessera::codegen::testing

#endif // TESSERA_UNITTESTS_CODEGEN_KERNELTEXTS_H
