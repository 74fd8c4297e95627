// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// A window reaches beyond its loop; positions within it stay whole.

func.func @strided(%x: tensor<2x9x9x3xf32>, %k: tensor<3x3x3x8xf32>, %y: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  // expected-remark @+1 {{([i, j * 2 .. + 3, k * 2 .. + 3, o], [m, n, o, l], [i, j, k, l]) -> ([i, j, k, l]) {i = 2, j = 4, k = 4, l = 8, m = 3, n = 3, o = 3} sum over o, whole m n, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<2x9x9x3xf32>, tensor<3x3x3x8xf32>) outs(%y : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %0 : tensor<2x4x4x8xf32>
}

func.func @depthwise(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3xf32>, %y: tensor<2x6x6x3xf32>) -> tensor<2x6x6x3xf32> {
  // expected-remark @+1 {{([i, j .. + 3, k .. + 3, l], [m, n, l], [i, j, k, l]) -> ([i, j, k, l]) {i = 2, j = 6, k = 6, l = 3, m = 3, n = 3} whole m n; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<2x8x8x3xf32>, tensor<3x3x3xf32>) outs(%y : tensor<2x6x6x3xf32>) -> tensor<2x6x6x3xf32>
  return %0 : tensor<2x6x6x3xf32>
}

func.func @nchw(%x: tensor<2x3x8x8xf32>, %k: tensor<8x3x3x3xf32>, %y: tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32> {
  // expected-remark @+1 {{([i, m, k .. + 5, l .. + 5], [j, m, n, o], [i, j, k, l]) -> ([i, j, k, l]) {i = 2, j = 8, k = 4, l = 4, m = 3, n = 3, o = 3} sum over m, whole n o, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
      ins(%x, %k : tensor<2x3x8x8xf32>, tensor<8x3x3x3xf32>) outs(%y : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  return %0 : tensor<2x8x4x4xf32>
}
#x = affine_map<(h, w, c, f, n, y, z) -> (n, h + y, w + z, c)>
#g = affine_map<(h, w, c, f, n, y, z) -> (n, y, z, f)>
#k = affine_map<(h, w, c, f, n, y, z) -> (h, w, c, f)>
func.func @weights(%x: tensor<2x8x8x3xf32>, %g: tensor<2x6x6x8xf32>, %k: tensor<3x3x3x8xf32>) -> tensor<3x3x3x8xf32> {
  // expected-remark @+1 {{([m, n .. + 3, o .. + 3, k], [m, n, o, l], [i, j, k, l]) -> ([i, j, k, l]) {i = 3, j = 3, k = 3, l = 8, m = 2, n = 6, o = 6} sum over m n o, whole i j, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.generic {indexing_maps = [#x, #g, #k], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<2x8x8x3xf32>, tensor<2x6x6x8xf32>) outs(%k : tensor<3x3x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %p : f32
    linalg.yield %next : f32
  } -> tensor<3x3x3x8xf32>
  return %0 : tensor<3x3x3x8xf32>
}
