// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// A mask of indices is computed for each user, since one user has rows and the other columns.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: arith.cmpi eq
// BYTES: total: 0 collectives
func.func @main(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %y: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8xi32>
  %i = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<8xi32>) {
  ^bb0(%o: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    linalg.yield %b : i32
  } -> tensor<8xi32>
  %empty = tensor.empty() : tensor<8x8xf32>
  %eye = linalg.generic {indexing_maps = [#row, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%i, %i : tensor<8xi32>, tensor<8xi32>) outs(%empty : tensor<8x8xf32>) {
  ^bb0(%r: i32, %c: i32, %o: f32):
    %same = arith.cmpi eq, %r, %c : i32
    %f = arith.uitofp %same : i1 to f32
    linalg.yield %f : f32
  } -> tensor<8x8xf32>
  %p = arith.mulf %eye, %x : tensor<8x8xf32>
  %q = arith.mulf %eye, %y : tensor<8x8xf32>
  return %p, %q : tensor<8x8xf32>, tensor<8x8xf32>
}
