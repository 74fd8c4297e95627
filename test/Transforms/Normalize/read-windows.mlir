// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" | FileCheck %s
// RUN: tessera run %s --function table --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function starts --check | FileCheck %s --check-prefix=VALUE

// Look-ups of windows: from a constant table that is affine in its places, and at starts that are.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// VALUE: check {{.*}} ok

#table = affine_map<(d0, d1, d2) -> (d2)>
#index = affine_map<(d0, d1, d2) -> (d0, d1)>
#start = affine_map<(d0, d1, d2) -> (d0)>

// CHECK-DAG: #[[WINDOWS:.*]] = affine_map<(d0, d1) -> (d0 * 2 + d1 + 1)>
// CHECK-DAG: #[[STARTS:.*]] = affine_map<(d0, d1) -> (d0 * 4 + d1)>

// CHECK-LABEL: func.func @table(
// CHECK-NOT: arith.cmpi
// CHECK: linalg.generic {indexing_maps = [#[[WINDOWS]], {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg0
func.func @table(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<4x3xf32> {
  %at = arith.constant dense<[[1, 2, 3], [3, 4, 5], [5, 6, 7], [7, 8, 9]]> : tensor<4x3xi32>
  %none = arith.constant dense<0.0> : tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#table, #index, #index], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %at : tensor<16xf32>, tensor<4x3xi32>) outs(%none : tensor<4x3xf32>) {
  ^bb0(%e: f32, %i: i32, %sum: f32):
    %zero = arith.constant 0.0 : f32
    %loop = linalg.index 2 : index
    %v = arith.index_cast %loop : index to i32
    %is = arith.cmpi eq, %i, %v : i32
    %s = arith.select %is, %e, %zero : f32
    %t = arith.addf %sum, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// start[i] + j == v holds for one v of each i and j, which is summed over, not for one j of each v.
// CHECK-LABEL: func.func @starts(
// CHECK: linalg.generic {indexing_maps = [#[[STARTS]], {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg0
func.func @starts(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<4x3xf32> {
  %at = arith.constant dense<[0, 4, 8, 12]> : tensor<4xi32>
  %none = arith.constant dense<0.0> : tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#table, #start, #index], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %at : tensor<16xf32>, tensor<4xi32>) outs(%none : tensor<4x3xf32>) {
  ^bb0(%e: f32, %i: i32, %sum: f32):
    %zero = arith.constant 0.0 : f32
    %loop = linalg.index 2 : index
    %v = arith.index_cast %loop : index to i32
    %inner = linalg.index 1 : index
    %j = arith.index_cast %inner : index to i32
    %place = arith.addi %i, %j : i32
    %is = arith.cmpi eq, %place, %v : i32
    %s = arith.select %is, %e, %zero : f32
    %t = arith.addf %sum, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
