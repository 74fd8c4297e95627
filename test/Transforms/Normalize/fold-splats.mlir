// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --function chosen --check
// RUN: tessera run %s --function broadcast --check
// RUN: tessera run %s --function diagonal --check

// What is the same number at each element is a constant, whatever data it is chosen by.
#id = affine_map<(d0) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @chosen(
// CHECK-NOT: linalg.generic
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[ZERO]]
func.func @chosen(%here: tensor<8xi1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %start = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%here : tensor<8xi1>) outs(%empty : tensor<8xf32>) {
  ^bb0(%ok: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %same = arith.constant 0.0 : f32
    %one = arith.select %ok, %zero, %same : f32
    linalg.yield %one : f32
  } -> tensor<8xf32>
  %y = arith.addf %x, %start : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @broadcast(
// CHECK-NOT: linalg.generic
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<8x4xf32>
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[TWO]]
func.func @broadcast(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %empty = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%two : tensor<8xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  %y = arith.mulf %x, %wide : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Elements that are not written keep those of the operand: 0.0 and -0.0 differ, too.
// CHECK-LABEL: func.func @diagonal(
// CHECK: linalg.generic
// CHECK: linalg.generic
func.func @diagonal(%x: tensor<4x4xf32>, %here: tensor<4xi1>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> (d0, d0)>], iterator_types = ["parallel"]}
      ins(%one : tensor<4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%here : tensor<4xi1>) outs(%one : tensor<4xf32>) {
  ^bb0(%ok: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %minus = arith.constant -0.0 : f32
    %sign = arith.select %ok, %zero, %minus : f32
    linalg.yield %sign : f32
  } -> tensor<4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4xf32>
}
