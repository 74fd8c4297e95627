// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The image's cotangent is a window over the padded cotangent with the flipped kernel, without a scatter.
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<({{.*}}) -> (d0, d1 + d4, d2 + d5, d3)>
// CHECK-DAG: #[[FLIP:.*]] = affine_map<(d0, d1, d2, d3) -> (-d0 + 2, -d1 + 1, d2, d3)>
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<1x5x6x2xf64>, %[[K:.*]]: tensor<3x2x2x3xf64>, %[[G:[^:]*]]: tensor<1x3x5x3xf64>
// CHECK: linalg.conv_2d_nhwc_hwcf
// CHECK-NOT: tensor.insert
// CHECK: linalg.generic {indexing_maps = [#[[FLIP]],
// CHECK: %[[PADDED:.*]] = tensor.pad %[[G]] low[0, 2, 1, 0] high[0, 2, 1, 0]
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[WINDOW]], #{{.*}}]
// CHECK-NOT: tensor.insert
func.func @main(%x: tensor<1x5x6x2xf64>, %k: tensor<3x2x2x3xf64>) -> tensor<1x3x5x3xf64> {
  %zero = arith.constant dense<0.0> : tensor<1x3x5x3xf64>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %k : tensor<1x5x6x2xf64>, tensor<3x2x2x3xf64>) outs(%zero : tensor<1x3x5x3xf64>) -> tensor<1x3x5x3xf64>
  return %0 : tensor<1x3x5x3xf64>
}
