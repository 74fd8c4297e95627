// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Rules of linalg ops are derived from indexing maps, iterator types and bodies.

func.func @matmul(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-remark @+1 {{([i, k], [k, j], [i, j]) -> ([i, j]) {i = 8, j = 16, k = 4} sum over k, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%c : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

func.func @batch_matmul(%a: tensor<2x8x4xf32>, %b: tensor<2x4x16xf32>, %c: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  // expected-remark @+1 {{([i, j, l], [i, l, k], [i, j, k]) -> ([i, j, k]) {i = 2, j = 8, k = 16, l = 4} sum over l, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.batch_matmul ins(%a, %b : tensor<2x8x4xf32>, tensor<2x4x16xf32>) outs(%c : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

func.func @matvec(%a: tensor<8x4xf32>, %x: tensor<4xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i, j], [j], [i]) -> ([i]) {i = 8, j = 4} sum over j, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.matvec ins(%a, %x : tensor<8x4xf32>, tensor<4xf32>) outs(%c : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @dot(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: tensor<f32>) -> tensor<f32> {
  // expected-remark @+1 {{([i], [i], []) -> ([]) {i = 8} sum over i, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.dot ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%c : tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A window over two more rows than iterations, with stride 2; the loops of the kernel are inside it.
func.func @conv(%x: tensor<2x9x9x3xf32>, %k: tensor<3x3x3x8xf32>, %c: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  // expected-remark @+1 {{([i, j * 2 .. + 3, k * 2 .. + 3, o], [m, n, o, l], [i, j, k, l]) -> ([i, j, k, l]) {i = 2, j = 4, k = 4, l = 8, m = 3, n = 3, o = 3} sum over o, whole m n, operand 2 accumulates; forwards sums from {0, 2} {1, 2}}}
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>} ins(%x, %k : tensor<2x9x9x3xf32>, tensor<3x3x3x8xf32>) outs(%c : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %0 : tensor<2x4x4x8xf32>
}

func.func @pooling(%x: tensor<2x8x8x3xf32>, %w: tensor<2x2xf32>, %c: tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32> {
  // expected-remark @+1 {{([i, j .. + 2, k .. + 2, l], [m, n], [i, j, k, l]) -> ([i, j, k, l]) {i = 2, j = 7, k = 7, l = 3, m = 2, n = 2} whole m n}}
  %0 = linalg.pooling_nhwc_max ins(%x, %w : tensor<2x8x8x3xf32>, tensor<2x2xf32>) outs(%c : tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
  return %0 : tensor<2x7x7x3xf32>
}

func.func @fill(%v: f32, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([], [i, j]) -> ([i, j]) {i = 8, j = 4}}}
  %0 = linalg.fill ins(%v : f32) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @transpose(%a: tensor<8x4xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @+1 {{([j, i], [i, j]) -> ([i, j]) {i = 4, j = 8}; forwards sums from {0} {0, 1}}}
  %0 = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%c : tensor<4x8xf32>) permutation = [1, 0]
  return %0 : tensor<4x8xf32>
}

func.func @broadcast(%a: tensor<4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([j], [i, j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0} {0, 1}}}
  %0 = linalg.broadcast ins(%a : tensor<4xf32>) outs(%c : tensor<8x4xf32>) dimensions = [0]
  return %0 : tensor<8x4xf32>
}

func.func @reduce_sum(%a: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+1 {{([i, j], [j]) -> ([j]) {i = 8, j = 4} sum over i, operand 1 accumulates; forwards sums from {0, 1}}}
  %0 = linalg.reduce ins(%a : tensor<8x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.addf %acc, %in : f32
      linalg.yield %s : f32
    }
  return %0 : tensor<4xf32>
}

// A maximum can be cut, and forwards no sums.
func.func @reduce_max(%a: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+1 {{([i, j], [j]) -> ([j]) {i = 8, j = 4} max over i, operand 1 accumulates}}
  %0 = linalg.reduce ins(%a : tensor<8x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.maximumf %acc, %in : f32
      linalg.yield %s : f32
    }
  return %0 : tensor<4xf32>
}

// No reduction of the dialect is an integer exclusive or: the loop stays whole.
func.func @reduce_xor(%a: tensor<8x4xi32>, %c: tensor<4xi32>) -> tensor<4xi32> {
  // expected-remark @+1 {{([i, j], [j]) -> ([j]) {i = 8, j = 4} whole i}}
  %0 = linalg.reduce ins(%a : tensor<8x4xi32>) outs(%c : tensor<4xi32>) dimensions = [0]
    (%in: i32, %acc: i32) {
      %s = arith.xori %acc, %in : i32
      linalg.yield %s : i32
    }
  return %0 : tensor<4xi32>
}

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#diagonal = affine_map<(i) -> (i, i)>
#vector = affine_map<(i) -> (i)>

func.func @add(%a: tensor<8x4xf32>, %b: tensor<4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([i, j], [j], [i, j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0, 1} {0, 1, 2}}}
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x4xf32>, tensor<4xf32>) outs(%c : tensor<8x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @multiply(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @+1 {{([i, j], [i, j], [i, j]) -> ([i, j]) {i = 8, j = 4}; forwards sums from {0} {1} {0, 2}}}
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<8x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// A diagonal uses one loop in two dimensions, so it is not cut.
func.func @diagonal(%a: tensor<8x8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{([i, i], [i]) -> ([i]) {i = 8} whole i; forwards sums from {0} {0, 1}}}
  %0 = linalg.generic {indexing_maps = [#diagonal, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8x8xf32>) outs(%c : tensor<8xf32>) {
  ^bb0(%x: f32, %z: f32):
    linalg.yield %x : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
