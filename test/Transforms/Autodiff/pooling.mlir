// RUN: tessera-opt %s --dist-autodiff="seed=argument of=0" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// Windows that do not overlap: each element reads only its own window, without padding or flipping.
// CHECK-LABEL: func.func @main_grad(
// CHECK-NOT: tensor.pad
// CHECK: arith.minsi
// CHECK: %[[PARTS:.*]] = linalg.generic
// CHECK: -> tensor<1x2x2x2x2x3xf64>
// CHECK: tensor.collapse_shape %[[PARTS]] {{\[\[}}0], [1, 2], [3, 4], [5]] : tensor<1x2x2x2x2x3xf64> into tensor<1x4x4x3xf64>
// CHECK: return
func.func @main(%x: tensor<1x4x4x3xf64>) -> (tensor<1x2x2x3xf64>, tensor<1x3x3x3xf64>, tensor<1x2x2x3xf64>) {
  %least = arith.constant dense<0xFFF0000000000000> : tensor<1x2x2x3xf64>
  %most = arith.constant dense<0x7FF0000000000000> : tensor<1x3x3x3xf64>
  %zero = arith.constant dense<0.0> : tensor<1x2x2x3xf64>
  %two = tensor.empty() : tensor<2x2xf64>
  %three = tensor.empty() : tensor<3x3xf64>
  %0 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%x, %two : tensor<1x4x4x3xf64>, tensor<2x2xf64>)
      outs(%least : tensor<1x2x2x3xf64>) -> tensor<1x2x2x3xf64>
  %1 = linalg.pooling_nhwc_min ins(%x, %two : tensor<1x4x4x3xf64>, tensor<2x2xf64>) outs(%most : tensor<1x3x3x3xf64>) -> tensor<1x3x3x3xf64>
  %2 = linalg.pooling_nhwc_sum ins(%x, %three : tensor<1x4x4x3xf64>, tensor<3x3xf64>) outs(%zero : tensor<1x2x2x3xf64>) -> tensor<1x2x2x3xf64>
  return %0, %1, %2 : tensor<1x2x2x3xf64>, tensor<1x3x3x3xf64>, tensor<1x2x2x3xf64>
}
