// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// dx = (dy - sum(dy y)) y uses only the result, without a second exponential.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<3x5xf64>, %[[G:[^:]*]]: tensor<3x5xf64>
// CHECK: %[[Y:.*]] = linalg.softmax
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[G]], %[[Y]] :
// CHECK: %[[DX:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[Y]], %[[SUM]] :
// CHECK-NOT: math.exp
// CHECK: return %[[Y]], %[[DX]]
func.func @main(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %empty = tensor.empty() : tensor<3x5xf64>
  %0 = linalg.softmax dimension(1) ins(%x : tensor<3x5xf64>) outs(%empty : tensor<3x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}
