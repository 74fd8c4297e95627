// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function multiplied | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function multiplied --check
// RUN: tessera run %s --function reversed --check
// RUN: tessera run %s --function twice --check
// RUN: tessera run %s --function repeated --check

// Updates at distinct rows known at compile time: each row of the result has at most one update,
// which is moved to it. Rows with two updates need a search, unless each row has as many in order.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0) -> (d0)>
#update = affine_map<(d0, d1, d2) -> (d2, d1)>
#index = affine_map<(d0, d1, d2) -> (d2)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @multiplied(
// CHECK: %[[MOVED:.*]] = dist.rearrange %arg1 dim = 0 segments = [0, 1, 1, 2, 8] fill = 0.000000e+00
// CHECK: %[[FROM:.*]] = arith.constant dense<[-1, 0, -1, 1, -1, 2,
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%[[MOVED]], %{{.*}}, %[[FROM]]
// BYTES: total: 0 collectives
func.func @multiplied(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                      %u: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<8xi32>
  %i = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<8xi32>) {
  ^bb0(%out: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    %two = arith.constant 2 : i32
    %c = arith.muli %b, %two : i32
    %d = arith.constant 1 : i32
    %f = arith.addi %c, %d : i32
    linalg.yield %f : i32
  } -> tensor<8xi32>
  %y = linalg.generic {indexing_maps = [#update, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<8x3xf32>, tensor<8xi32>) outs(%x : tensor<16x3xf32>) {
  ^bb0(%row: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 1.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.mulf %acc, %taken : f32
    linalg.yield %next : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// Rows 9, 7, 5 and 3, from a constant.
// CHECK-LABEL: func.func @reversed(
// CHECK: dist.rearrange %arg1 dim = 0 segments = [0, 1, 9, -2, 4]
func.func @reversed(%x: tensor<10x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                    %u: tensor<4x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<10x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = arith.constant dense<[9, 7, 5, 3]> : tensor<4xi32>
  %y = linalg.generic {indexing_maps = [#update, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<4x3xf32>, tensor<4xi32>) outs(%x : tensor<10x3xf32>) {
  ^bb0(%row: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.addf %acc, %taken : f32
    linalg.yield %next : f32
  } -> tensor<10x3xf32>
  return %y : tensor<10x3xf32>
}

// CHECK-LABEL: func.func @twice(
// CHECK-NOT: dist.rearrange
func.func @twice(%x: tensor<10x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                 %u: tensor<4x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<10x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = arith.constant dense<[9, 7, 7, 3]> : tensor<4xi32>
  %y = linalg.generic {indexing_maps = [#update, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<4x3xf32>, tensor<4xi32>) outs(%x : tensor<10x3xf32>) {
  ^bb0(%row: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.addf %acc, %taken : f32
    linalg.yield %next : f32
  } -> tensor<10x3xf32>
  return %y : tensor<10x3xf32>
}

// Two updates of each row, as in the derivative of a repetition: a sum of each row's own. The body
// also reads the number of the update.
// CHECK-LABEL: func.func @repeated(
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1], [2]] output_shape [5, 2, 3]
// CHECK: linalg.generic {{.*}} ins(%[[ROWS]] : tensor<5x2x3xf32>) outs(%arg0 : tensor<5x3xf32>)
// CHECK-NEXT: ^bb0(%[[U:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK-DAG: linalg.index 0
// CHECK-DAG: linalg.index 2
// CHECK-NOT: arith.select
// CHECK: linalg.yield
func.func @repeated(%x: tensor<5x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                    %u: tensor<10x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<5x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = arith.constant dense<[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]> : tensor<10xi32>
  %y = linalg.generic {indexing_maps = [#update, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<10x3xf32>, tensor<10xi32>) outs(%x : tensor<5x3xf32>) {
  ^bb0(%row: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %k = linalg.index 2 : index
    %j = arith.index_cast %k : index to i32
    %f = arith.sitofp %j : i32 to f32
    %scaled = arith.mulf %row, %f : f32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %scaled, %none : f32
    %next = arith.addf %acc, %taken : f32
    linalg.yield %next : f32
  } -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
