// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// CHECK-LABEL: func.func @sums
func.func @sums(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: ext.scan dim = 1 ins(%{{.*}} : tensor<4x8xf32>) {
  // CHECK-NEXT: ^bb0(%[[BEFORE:.*]]: f32, %[[AFTER:.*]]: f32):
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[AFTER]] : f32
  // CHECK-NEXT: ext.yield %[[SUM]] : f32
  %0 = ext.scan dim = 1 ins(%x : tensor<4x8xf32>) {
  ^bb0(%before: f32, %after: f32):
    %sum = arith.addf %before, %after : f32
    ext.yield %sum : f32
  }
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @recurrence
func.func @recurrence(%a: tensor<8xf32>, %b: tensor<8xf64>) -> (tensor<8xf32>, tensor<8xf64>) {
  // CHECK: ext.scan dim = 0 exclusive reverse ins(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf64>)
  // CHECK-SAME: identity [1.000000e+00 : f32, 0.000000e+00] attributes {tag}
  %0:2 = ext.scan dim = 0 exclusive reverse ins(%a, %b : tensor<8xf32>, tensor<8xf64>)
      identity [1.0 : f32, 0.0 : f64] attributes {tag} {
  ^bb0(%a0: f32, %b0: f64, %a1: f32, %b1: f64):
    %a2 = arith.mulf %a0, %a1 : f32
    %wide = arith.extf %a1 : f32 to f64
    %scaled = arith.mulf %wide, %b0 : f64
    %b2 = arith.addf %scaled, %b1 : f64
    ext.yield %a2, %b2 : f32, f64
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf64>
}

// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>) -> (tensor<4x8xi32>, tensor<4x3xi32>) {
  // CHECK: ext.sort dim = 1 keys = 2 ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xi32>)
  %0:2 = ext.sort dim = 1 keys = 2 ins(%x, %i : tensor<4x8xf32>, tensor<4x8xi32>)
  // CHECK: ext.sort dim = 1 keys = 1 descending limit = 3 ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xi32>)
  %1:2 = ext.sort dim = 1 keys = 1 descending limit = 3 ins(%x, %i : tensor<4x8xf32>, tensor<4x8xi32>)
  return %0#1, %1#1 : tensor<4x8xi32>, tensor<4x3xi32>
}
