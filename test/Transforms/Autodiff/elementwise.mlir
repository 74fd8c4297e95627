// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The cotangent of a sum is the cotangent itself, of a difference its negative.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<3x4xf64>, %[[Y:.*]]: tensor<3x4xf64>, %[[Z:.*]]: tensor<3x4xf64>, %[[G:[^:]*]]: tensor<3x4xf64>
// The result of exp is reused, not recomputed; relu is a select.
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{[^,]*}} : tensor<3x4xf64>) outs
// CHECK: math.exp
// CHECK: arith.maximumf
// CHECK: %[[DR:.*]] = linalg.generic {{.*}} ins(%[[Z]], %[[G]] : tensor<3x4xf64>, tensor<3x4xf64>)
// CHECK: ^bb0(%[[ZI:.*]]: f64, %[[GI:.*]]: f64, %{{.*}}: f64):
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[ZI]],
// CHECK: arith.select %[[ABOVE]], %[[GI]], %{{.*}} : f64
// CHECK: %[[DE:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[G]] : tensor<3x4xf64>, tensor<3x4xf64>)
// CHECK-NOT: math.exp
// CHECK: arith.mulf
// CHECK: %[[DY:.*]] = linalg.generic {{.*}} ins(%[[DE]] : tensor<3x4xf64>)
// CHECK: arith.negf
// CHECK: return %{{.*}}, %[[DE]], %[[DY]], %[[DR]] : tensor<3x4xf64>
func.func @main(%x: tensor<3x4xf64>, %y: tensor<3x4xf64>, %z: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %zero = arith.constant dense<0.0> : tensor<3x4xf64>
  %d = arith.subf %x, %y : tensor<3x4xf64>
  %e = math.exp %d : tensor<3x4xf64>
  %r = arith.maximumf %z, %zero : tensor<3x4xf64>
  %s = arith.addf %e, %r : tensor<3x4xf64>
  return %s : tensor<3x4xf64>
}
