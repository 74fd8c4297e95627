// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// Matrix and bias get the same cotangents, computed once; the bias gets their sum.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<3x4xf64>, %[[B:.*]]: tensor<4xf64>, %[[G:[^:]*]]: tensor<3x4xf64>
// CHECK: %[[DX:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[G]] : tensor<3x4xf64>, tensor<3x4xf64>)
// CHECK: %[[DB:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[DX]] : tensor<3x4xf64>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f64, %[[OUT:.*]]: f64):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OUT]], %[[IN]] : f64
// CHECK-NEXT: linalg.yield %[[SUM]] : f64
// CHECK: return %{{.*}}, %[[DX]], %[[DB]]
func.func @main(%x: tensor<3x4xf64>, %b: tensor<4xf64>) -> tensor<3x4xf64> {
  %empty = tensor.empty() : tensor<3x4xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<3x4xf64>, tensor<4xf64>) outs(%empty : tensor<3x4xf64>) {
  ^bb0(%xi: f64, %bi: f64, %out: f64):
    %s = arith.addf %xi, %bi : f64
    %t = math.tanh %s : f64
    linalg.yield %t : f64
  } -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
