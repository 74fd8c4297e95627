// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// All dimensions can be cut: a scan or a sort communicates if its own dimension is cut.
func.func @main(%x: tensor<4x8xf32>, %n: tensor<4x8xi32>) {
  // expected-remark@+1 {{([i, j]) -> ([i, j]) {i = 4, j = 8}}}
  %0 = ext.scan dim = 1 ins(%x : tensor<4x8xf32>) {
  ^bb0(%before: f32, %behind: f32):
    %sum = arith.addf %before, %behind : f32
    ext.yield %sum : f32
  }
  // expected-remark@+1 {{([i, j], [i, j]) -> ([i, j], [i, j]) {i = 4, j = 8}}}
  %1:2 = ext.sort dim = 1 keys = 1 ins(%x, %n : tensor<4x8xf32>, tensor<4x8xi32>)
  // expected-remark@+1 {{([i, j]) -> ([i, k]) {i = 4, j = 8, k = 3} whole k}}
  %2 = ext.sort dim = 1 keys = 1 limit = 3 ins(%x : tensor<4x8xf32>)
  return
}

// Each gradient lacks a loop, which the derivative sums.
#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
#row = affine_map<(b, m, n, f, g) -> (b, m)>
func.func @backward(%q: tensor<2x6x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x3xf32>, %g: tensor<2x6x3xf32>, %sum: tensor<2x6xf32>, %delta: tensor<2x6xf32>) {
  // expected-remark @+1 {{([i, j, 1], [i, k, 1], [i, k, 1], [i, j, 1], [i, j], [i, j]) -> ([i, j, 1], [i, k, 1], [i, k, 1]) {i = 2, j = 6, k = 5} sum over j k}}
  %0:3 = ext.attention_backward indexing_maps = [#q, #k, #v, #o, #row, #row, #q, #k, #v]
      ins(%q, %k, %v, %g, %sum, %delta : tensor<2x6x4xf32>, tensor<2x5x4xf32>, tensor<2x5x3xf32>, tensor<2x6x3xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %e: index):
    ext.yield %product : f32
  } derivative {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %e: index, %d: f32):
    ext.yield %d : f32
  } -> tensor<2x6x4xf32>, tensor<2x5x4xf32>, tensor<2x5x3xf32>
  return
}
