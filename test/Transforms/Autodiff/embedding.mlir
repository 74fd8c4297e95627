// RUN: tessera-opt %s --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// A row of the table gets the cotangents of its tokens: a product with one-hot rows that are not materialized.
// CHECK-DAG: #[[TABLE:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[TOKENS:.*]]: tensor<5xi32> {{.*}}, %[[T:.*]]: tensor<7x3xf64>, %[[G:[^:]*]]: tensor<5x3xf64>
// CHECK: %[[D:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #[[TABLE]]], iterator_types = ["reduction", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[TOKENS]], %[[G]] : tensor<5xi32>, tensor<5x3xf64>)
// CHECK: %[[V:.*]] = linalg.index 2 : index
// CHECK: %[[HIT:.*]] = arith.cmpi eq, %{{.*}}, %[[V]] : index
// CHECK: arith.select %[[HIT]],
// CHECK: return %{{.*}}, %[[D]]
func.func @main(%tokens: tensor<5xi32> {dist.range = [0, 7]}, %table: tensor<7x3xf64>) -> tensor<5x3xf64> {
  %empty = tensor.empty() : tensor<5x3xf64>
  %0 = linalg.generic {indexing_maps = [affine_map<(b, d) -> (b)>, affine_map<(b, d) -> (b, d)>], iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<5xi32>) outs(%empty : tensor<5x3xf64>) {
  ^bb0(%token: i32, %out: f64):
    %i = arith.index_cast %token : i32 to index
    %j = linalg.index 1 : index
    %e = tensor.extract %table[%i, %j] : tensor<7x3xf64>
    linalg.yield %e : f64
  } -> tensor<5x3xf64>
  return %0 : tensor<5x3xf64>
}
