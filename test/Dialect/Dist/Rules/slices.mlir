// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Slices at constant offsets determine the elements read. If the offset is data, the owner of an
// element acts, and each device has a contribution to the slice.

func.func @dynamic(%x: tensor<8x6xf32>, %w: tensor<2x6xf32>, %i: index) -> (tensor<2x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<8x6xf32>) {
  // expected-remark @+1 {{([i, k], []) -> ([j, k]) {i = 8, j = 2, k = 6} sum over i, whole j; forwards sums from {0}}}
  %0 = tensor.extract_slice %x[%i, 0] [2, 6] [1, 1] : tensor<8x6xf32> to tensor<2x6xf32>
  // expected-remark @+1 {{([j, k], [i, k], []) -> ([i, k]) {i = 8, j = 2, k = 6} whole j; forwards sums from {0, 1}}}
  %1 = tensor.insert_slice %w into %x[%i, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<8x6xf32>
  // expected-remark @+1 {{([i(2t at t, t < 4), j]) -> ([i, j]) {i = 4, j = 6}; forwards sums from {0}}}
  %2 = tensor.extract_slice %x[0, 0] [4, 6] [2, 1] : tensor<8x6xf32> to tensor<4x6xf32>
  // expected-remark @+1 {{([i(t at 1 + t, t < 2), j], [i, j]) -> ([i, j]) {i = 8, j = 6}; forwards sums from {0, 1}}}
  %3 = tensor.insert_slice %w into %x[1, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<8x6xf32>
  return %0, %1, %2, %3 : tensor<2x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<8x6xf32>
}

func.func @rank(%x: tensor<8x6xf32>, %i: index) -> tensor<6xf32> {
  // expected-remark @+1 {{([i, j], []) -> ([j]) {i = 8, j = 6} sum over i; forwards sums from {0}}}
  %0 = tensor.extract_slice %x[%i, 0] [1, 6] [1, 1] : tensor<8x6xf32> to tensor<6xf32>
  return %0 : tensor<6xf32>
}
