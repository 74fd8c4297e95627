// RUN: tessera-opt %s --dist-autodiff="seed=argument wrt=0" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The derivative of a padded operand is that of its source: nothing is computed for the padding. With stride 2 a zero in
// front of the kernel makes its phases those of the source's elements.
// CHECK-LABEL: func.func @main_grad(
// CHECK: } -> tensor<1x4x2x2xf64>
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3]] : tensor<1x4x2x2xf64> into tensor<1x8x2xf64>
// CHECK: %[[DX:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x8x2xf64>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return %{{.*}}, %[[DX]]
func.func @main(%x: tensor<1x8x2xf64>, %k: tensor<3x2x2xf64>, %l: tensor<3x2x3xf64>) -> tensor<1x4x3xf64> {
  %fill = arith.constant 0.0 : f64
  %p = tensor.pad %x low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%i: index, %j: index, %c: index):
    tensor.yield %fill : f64
  } : tensor<1x8x2xf64> to tensor<1x10x2xf64>
  %zero = arith.constant dense<0.0> : tensor<1x8x2xf64>
  %0 = linalg.conv_1d_nwc_wcf ins(%p, %k : tensor<1x10x2xf64>, tensor<3x2x2xf64>)
      outs(%zero : tensor<1x8x2xf64>) -> tensor<1x8x2xf64>
  %q = tensor.pad %0 low[0, 1, 0] high[0, 0, 0] {
  ^bb0(%i: index, %j: index, %c: index):
    tensor.yield %fill : f64
  } : tensor<1x8x2xf64> to tensor<1x9x2xf64>
  %zeros = arith.constant dense<0.0> : tensor<1x4x3xf64>
  %1 = linalg.conv_1d_nwc_wcf {strides = dense<2> : tensor<1xi64>} ins(%q, %l : tensor<1x9x2xf64>, tensor<3x2x3xf64>)
      outs(%zeros : tensor<1x4x3xf64>) -> tensor<1x4x3xf64>
  return %1 : tensor<1x4x3xf64>
}
