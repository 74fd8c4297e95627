// RUN: split-file %s %t
// RUN: tessera-opt %t/recurrence.mlir --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %t/recurrence.mlir
// RUN: tessera-fuzz --gradients --check %t/exclusive.mlir
// RUN: tessera-fuzz --gradients --check %t/rotation.mlir
// RUN: tessera-fuzz --gradients --check %t/segments.mlir
// RUN: not tessera-opt %t/types.mlir --dist-autodiff="seed=argument" 2>&1 | FileCheck %s --check-prefix TYPES

// The state-space recurrence h[i] = a[i] h[i - 1] + x[i]: of its derivative no scan is left for the
// products of the factors alone.
// CHECK-LABEL: func.func @main_grad
// CHECK: ext.scan dim = 1 ins(%{{.*}}, %{{.*}} : tensor<3x5xf64>, tensor<3x5xf64>)
// CHECK: ext.scan dim = 1 reverse ins(%{{.*}}, %{{.*}} : tensor<3x5xf64>, tensor<3x5xf64>) identity [1.000000e+00, 0.000000e+00]
// CHECK-NOT: ext.scan

// TYPES: types.mlir:2:10: error: {{.*}}values of different element types depend on each other; convert them

//--- recurrence.mlir
func.func @main(%a: tensor<3x5xf64>, %x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0:2 = ext.scan dim = 1 ins(%a, %x : tensor<3x5xf64>, tensor<3x5xf64>) {
  ^bb0(%a0: f64, %h0: f64, %a1: f64, %h1: f64):
    %a2 = arith.mulf %a0, %a1 : f64
    %t = arith.mulf %a1, %h0 : f64
    %h2 = arith.addf %t, %h1 : f64
    ext.yield %a2, %h2 : f64, f64
  }
  return %0#1 : tensor<3x5xf64>
}

//--- exclusive.mlir
func.func @main(%a: tensor<5x3xf64>, %x: tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>) {
  %0:2 = ext.scan dim = 0 exclusive reverse ins(%a, %x : tensor<5x3xf64>, tensor<5x3xf64>) identity [1.0 : f64, 0.0 : f64] {
  ^bb0(%a0: f64, %h0: f64, %a1: f64, %h1: f64):
    %a2 = arith.mulf %a0, %a1 : f64
    %t = arith.mulf %a1, %h0 : f64
    %h2 = arith.addf %t, %h1 : f64
    ext.yield %a2, %h2 : f64, f64
  }
  return %0#0, %0#1 : tensor<5x3xf64>, tensor<5x3xf64>
}

//--- rotation.mlir
// Products of complex numbers: all entries of the Jacobian.
func.func @main(%x: tensor<7xf64>, %y: tensor<7xf64>) -> (tensor<7xf64>, tensor<7xf64>) {
  %0:2 = ext.scan dim = 0 ins(%x, %y : tensor<7xf64>, tensor<7xf64>) {
  ^bb0(%x0: f64, %y0: f64, %x1: f64, %y1: f64):
    %xx = arith.mulf %x0, %x1 : f64
    %yy = arith.mulf %y0, %y1 : f64
    %xy = arith.mulf %x0, %y1 : f64
    %yx = arith.mulf %y0, %x1 : f64
    %re = arith.subf %xx, %yy : f64
    %im = arith.addf %xy, %yx : f64
    ext.yield %re, %im : f64, f64
  }
  return %0#0, %0#1 : tensor<7xf64>, tensor<7xf64>
}

//--- segments.mlir
// Sums that begin anew where the marks, which have no derivative, are set.
func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {
  %marks = arith.constant dense<[false, false, true, false, false, true, true, false]> : tensor<8xi1>
  %0:2 = ext.scan dim = 0 ins(%x, %marks : tensor<8xf64>, tensor<8xi1>) {
  ^bb0(%x0: f64, %m0: i1, %x1: f64, %m1: i1):
    %sum = arith.addf %x0, %x1 : f64
    %x2 = arith.select %m1, %x1, %sum : f64
    %m2 = arith.ori %m0, %m1 : i1
    ext.yield %x2, %m2 : f64, i1
  }
  return %0#0 : tensor<8xf64>
}

//--- types.mlir
func.func @main(%x: tensor<8xf64>, %y: tensor<8xf32>) -> tensor<8xf64> {
  %0:2 = ext.scan dim = 0 ins(%x, %y : tensor<8xf64>, tensor<8xf32>) {
  ^bb0(%x0: f64, %y0: f32, %x1: f64, %y1: f32):
    %wide = arith.extf %y0 : f32 to f64
    %term = arith.mulf %wide, %x1 : f64
    %sum = arith.addf %x0, %term : f64
    %y2 = arith.addf %y0, %y1 : f32
    ext.yield %sum, %y2 : f64, f32
  }
  return %0#0 : tensor<8xf64>
}
