// RUN: tessera-opt %s --dist-autodiff="seed=argument wrt=0" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// Stride 2: two phases, each a window of stride 1 over its half of the kernel, without multiplications by zeros.
// CHECK-LABEL: func.func @main_grad(
// CHECK-NOT: tensor.insert
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2], [3]] {{.*}} into tensor<2x2x2x3xf64>
// CHECK: %[[PHASES:.*]] = linalg.generic
// CHECK: -> tensor<1x4x2x2xf64>
// CHECK: %[[JOINED:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3]] : tensor<1x4x2x2xf64> into tensor<1x8x2xf64>
// CHECK: return %{{.*}}, %[[JOINED]]
func.func @main(%x: tensor<1x8x2xf64>, %k: tensor<3x2x3xf64>) -> tensor<1x3x3xf64> {
  %zero = arith.constant dense<0.0> : tensor<1x3x3xf64>
  %0 = linalg.conv_1d_nwc_wcf {strides = dense<2> : tensor<1xi64>} ins(%x, %k : tensor<1x8x2xf64>, tensor<3x2x3xf64>)
      outs(%zero : tensor<1x3x3xf64>) -> tensor<1x3x3xf64>
  return %0 : tensor<1x3x3xf64>
}
