// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// All dimensions can be cut: along its own a scan or a sort communicates inside.
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
