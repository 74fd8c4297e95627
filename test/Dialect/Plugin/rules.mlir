// RUN: tessera-opt %s --load-dialect-plugin=%demo_dialect --dist-print-rules --verify-diagnostics -o /dev/null

// Ops of a dialect outside of the tree define their distribution by ShardingRuleOpInterface.

func.func @scaled_add(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) -> tensor<8x6xf32> {
  // expected-remark @+1 {{([i, j], [i, j]) -> ([i, j]) {i = 8, j = 6}; forwards sums from {0, 1}}}
  %0 = demo.scaled_add %x, %y {scale = 0.5} : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

func.func @rms_norm(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  // expected-remark @+1 {{([i, j]) -> ([i, j]) {i = 8, j = 6} whole j}}
  %0 = demo.rms_norm %x {epsilon = 1.0e-5} : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

func.func @sum_squares(%x: tensor<8x6xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i, j]) -> ([i]) {i = 8, j = 6} sum over j}}
  %0 = demo.sum_squares %x : tensor<8x6xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @peak(%x: tensor<8x6xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i, j]) -> ([i]) {i = 8, j = 6} max over j}}
  %0 = demo.peak %x : tensor<8x6xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
