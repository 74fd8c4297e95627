// RUN: tessera-opt %s --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The derivative of a scan is one of pairs in the other direction; a scan of one element has that element's.
// CHECK-LABEL: func.func @main_grad
// CHECK: ext.scan dim = 0 ins(%{{.*}} : tensor<5x1xf64>)
// CHECK: ext.scan dim = 0 reverse ins(%{{.*}}, %{{.*}} : tensor<5x1xf64>, tensor<5x1xf64>)
// CHECK-NOT: ext.scan
func.func @main(%x: tensor<5x1xf64>) -> tensor<5x1xf64> {
  %0 = ext.scan dim = 1 ins(%x : tensor<5x1xf64>) {
  ^bb0(%before: f64, %next: f64):
    %p = arith.mulf %before, %next : f64
    ext.yield %p : f64
  }
  %1 = ext.scan dim = 0 ins(%0 : tensor<5x1xf64>) {
  ^bb0(%before: f64, %next: f64):
    %p = arith.mulf %before, %next : f64
    ext.yield %p : f64
  }
  return %1 : tensor<5x1xf64>
}
