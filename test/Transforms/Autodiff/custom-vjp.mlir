// RUN: tessera-opt %s --dist-autodiff=function=loss | FileCheck %s
// RUN: tessera-opt %s --dist-autodiff=function=loss --dist-guard --dist-normalize | FileCheck %s --check-prefix=GONE
// RUN: tessera-opt %s --dist-autodiff=function=loss --interpret=function=main

// The named function computes the derivative of the call, whatever the called function computes.
// CHECK-LABEL: func.func private @loss_grad(
// CHECK-SAME: %[[X:.*]]: tensor<3xf64>)
// CHECK: %[[Y:.*]] = call @round(%[[X]]) {dist.custom_vjp = @straight_through}
// CHECK: call @straight_through(%[[X]], %[[Y]], %{{.*}})
// GONE-NOT: @straight_through
// GONE-NOT: custom_vjp
// GONE: {{^[}]$}}
func.func private @round(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = math.round %x : tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func private @straight_through(%x: tensor<3xf64>, %y: tensor<3xf64>, %dy: tensor<3xf64>) -> tensor<3xf64> {
  return %dy : tensor<3xf64>
}

func.func private @loss(%x: tensor<3xf64>) -> tensor<f64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %y = func.call @round(%x) {dist.custom_vjp = @straight_through} : (tensor<3xf64>) -> tensor<3xf64>
  %d = linalg.dot ins(%y, %y : tensor<3xf64>, tensor<3xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
  return %d : tensor<f64>
}
func.func private @loss_grad(tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)

func.func @main() {
  %x = arith.constant dense<[1.2, -2.4, 5.1]> : tensor<3xf64>
  %0:2 = func.call @loss_grad(%x) : (tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)
  %expected = arith.constant dense<[2.0, -4.0, 10.0]> : tensor<3xf64>
  check.expect_eq %0#1, %expected : tensor<3xf64>
  return
}
