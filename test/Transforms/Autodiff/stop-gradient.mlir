// RUN: tessera-opt %s --dist-autodiff=function=loss | FileCheck %s
// RUN: tessera-opt %s --dist-autodiff=function=loss --interpret=function=main

// CHECK-LABEL: func.func private @loss_grad(
// CHECK-NOT: dist.stop_gradient
// CHECK: return
func.func private @loss(%x: tensor<3xf64>) -> tensor<f64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %s = dist.stop_gradient %x : tensor<3xf64>
  %d = linalg.dot ins(%x, %s : tensor<3xf64>, tensor<3xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
  return %d : tensor<f64>
}
func.func private @loss_grad(tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)

func.func @main() {
  %x = arith.constant dense<[1.0, -2.0, 5.0]> : tensor<3xf64>
  %0:2 = func.call @loss_grad(%x) : (tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)
  // x, not 2 x.
  check.expect_eq %0#1, %x : tensor<3xf64>
  return
}
