// RUN: tessera-opt %s --dist-autodiff | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// A mean: the gradient is a constant, without a tensor of ones that is multiplied and summed.
// CHECK-LABEL: func.func @main_grad(
// CHECK: %[[DX:.*]] = arith.constant dense<1.250000e-01> : tensor<2x4xf64>
// CHECK: return %{{.*}}, %[[DX]] : tensor<f64>, tensor<2x4xf64>
func.func @main(%x: tensor<2x4xf64>) -> tensor<f64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %share = arith.constant dense<0.125> : tensor<f64>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<2x4xf64>) outs(%zero : tensor<f64>) dimensions = [0, 1]
  %mean = arith.mulf %sum, %share : tensor<f64>
  return %mean : tensor<f64>
}
