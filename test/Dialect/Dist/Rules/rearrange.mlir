// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// The segments of the operands along the one dimension.

func.func @flip(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([i(t at 7 - t, t < 8), j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0}}}
  %0 = dist.rearrange %x dim = 0 segments = [0, 1, 7, -1, 8] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @roll(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([i(7 + t at t, t < 1), j], [i(t at 1 + t, t < 7), j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0, 1}}}
  %0 = dist.rearrange %x, %x dim = 0 segments = [7, 1, 0, 1, 1, 0, 1, 1, 1, 7] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @interleave(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<16x4xf32> {
  // expected-remark @+1 {{([i(t at 2t, t < 8), j], [i(t at 1 + 2t, t < 8), j]) -> ([i, j]) {i = 16, j = 4}}}
  %0 = dist.rearrange %x, %y dim = 0 segments = [0, 1, 0, 2, 8, 0, 1, 1, 2, 8] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
