// RUN: tessera-opt %s --dist-autodiff="function=f value=false name=slope" --dist-autodiff="function=slope seed=argument value=false name=curvature" --interpret=function=main

// The derivative of a derivative: of the sum of tanh(x)^2, times a vector.
func.func private @f(%x: tensor<3xf64>) -> tensor<f64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %t = math.tanh %x : tensor<3xf64>
  %d = linalg.dot ins(%t, %t : tensor<3xf64>, tensor<3xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
  return %d : tensor<f64>
}
func.func private @slope(tensor<3xf64>) -> tensor<3xf64>
func.func private @curvature(tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>

func.func @main() {
  %x = arith.constant dense<[0.3, -0.7, 1.1]> : tensor<3xf64>
  %v = arith.constant dense<[1.0, 2.0, -1.0]> : tensor<3xf64>
  %0 = func.call @curvature(%x, %v) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  // 2 v (1 - t^2) (1 - 3 t^2) with t = tanh(x).
  %one = arith.constant dense<1.0> : tensor<3xf64>
  %two = arith.constant dense<2.0> : tensor<3xf64>
  %three = arith.constant dense<3.0> : tensor<3xf64>
  %t = math.tanh %x : tensor<3xf64>
  %s = arith.mulf %t, %t : tensor<3xf64>
  %a = arith.subf %one, %s : tensor<3xf64>
  %s3 = arith.mulf %three, %s : tensor<3xf64>
  %b = arith.subf %one, %s3 : tensor<3xf64>
  %c = arith.mulf %a, %b : tensor<3xf64>
  %d = arith.mulf %c, %two : tensor<3xf64>
  %expected = arith.mulf %d, %v : tensor<3xf64>
  check.expect_close %0, %expected : tensor<3xf64>
  return
}
