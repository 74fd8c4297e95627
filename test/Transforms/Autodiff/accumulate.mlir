// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The cotangents of a value with three uses are added by two additions, without an initial zero.
// CHECK-LABEL: func.func @main_grad(
// CHECK-NOT: dense<0.000000e+00>
// CHECK-COUNT-2: arith.addf %{{.*}}, %{{.*}} : tensor<4xf64>
// CHECK-NOT: arith.addf
// CHECK-NOT: dense<0.000000e+00>
func.func @main(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
  %a = math.sin %x : tensor<4xf64>
  %b = math.cos %x : tensor<4xf64>
  %c = math.exp %x : tensor<4xf64>
  return %a, %b, %c : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
