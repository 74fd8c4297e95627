// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function rows | FileCheck %s --check-prefix=ROWS
// RUN: tessera run %s --function rows --check
// RUN: tessera run %s --function columns --check
// RUN: tessera run %s --function booleans --check

// An element of the diagonal is looked up in its row, which a device has.

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<8x8xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
// ROWS: total: 0 collectives
func.func @rows(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.tanh %a : f32
    linalg.yield %b : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func @columns(%x: tensor<3x8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(2)]>}) -> tensor<8x3xf32> {
  %e = tensor.empty() : tensor<8x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, b) -> (b, i, i)>, affine_map<(i, b) -> (i, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8x8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}

func.func @booleans(%x: tensor<6x6xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<6xi1> {
  %e = tensor.empty() : tensor<6x6xi1>
  %zero = arith.constant 0 : i32
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x6xi32>) outs(%e : tensor<6x6xi1>) {
  ^bb0(%a: i32, %o: i1):
    %b = arith.cmpi sgt, %a, %zero : i32
    linalg.yield %b : i1
  } -> tensor<6x6xi1>
  %f = tensor.empty() : tensor<6xi1>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%m : tensor<6x6xi1>) outs(%f : tensor<6xi1>) {
  ^bb0(%a: i1, %o: i1):
    linalg.yield %a : i1
  } -> tensor<6xi1>
  return %y : tensor<6xi1>
}
