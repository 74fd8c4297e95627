// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The two products of a matrix product's derivative stay contractions; an accumulator gets the cotangent itself.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[A:.*]]: tensor<3x4xf64>, %[[B:.*]]: tensor<4x5xf64>, %[[C:.*]]: tensor<3x5xf64>, %[[G:[^:]*]]: tensor<3x5xf64>
// CHECK: linalg.matmul
// CHECK: %[[DA:.*]] = linalg.contract indexing_maps = [#[[MN]], #[[KN]], #[[MK]]] ins(%[[G]], %[[B]] :
// CHECK: %[[DB:.*]] = linalg.contract indexing_maps = [#[[MN]], #[[MK]], #[[KN]]] ins(%[[G]], %[[A]] :
// CHECK: return %{{.*}}, %[[DA]], %[[DB]], %[[G]]
func.func @main(%a: tensor<3x4xf64>, %b: tensor<4x5xf64>, %c: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = linalg.matmul ins(%a, %b : tensor<3x4xf64>, tensor<4x5xf64>) outs(%c : tensor<3x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}
