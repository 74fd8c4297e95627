// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Elementwise ops on tensors, before normalization to linalg ops, run over every dimension of the result.

func.func @add(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([i, j], [i, j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0, 1}}}
  %0 = arith.addf %a, %b : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @multiply(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i], [i]) -> ([i]) {i = 8}; forwards sums from {0} {1}}}
  %0 = arith.mulf %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A scalar condition is whole.
func.func @select(%c: i1, %a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([], [i], [i]) -> ([i]) {i = 8}; forwards sums from {1, 2}}}
  %0 = arith.select %c, %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @tanh(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i]) -> ([i]) {i = 8}}}
  %0 = math.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
