// RUN: tessera-opt %s --dist-autodiff="function=product" --interpret="function=main"

// The product of the other factors, also with zero factors: one in the second row, two in the third.
func.func private @product(%x: tensor<3x3xf64>) -> tensor<f64> {
  %one = arith.constant dense<1.0> : tensor<3xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %products = linalg.reduce { arith.mulf } ins(%x : tensor<3x3xf64>) outs(%one : tensor<3xf64>) dimensions = [1]
  %sum = linalg.reduce { arith.addf } ins(%products : tensor<3xf64>) outs(%zero : tensor<f64>) dimensions = [0]
  return %sum : tensor<f64>
}
func.func private @product_grad(tensor<3x3xf64>) -> (tensor<f64>, tensor<3x3xf64>)

func.func @main() {
  %x = arith.constant dense<[[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0]]> : tensor<3x3xf64>
  %0:2 = func.call @product_grad(%x) : (tensor<3x3xf64>) -> (tensor<f64>, tensor<3x3xf64>)
  %expected = arith.constant dense<[[12.0, 8.0, 6.0], [0.0, 8.0, 0.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf64>
  check.expect_eq %0#1, %expected : tensor<3x3xf64>
  return
}
