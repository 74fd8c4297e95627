// RUN: tessera-opt %s --dist-autodiff="function=most wrt=x" --dist-autodiff="function=pool wrt=x" --interpret="function=main"
// RUN: tessera-opt %s --dist-autodiff="function=most wrt=x" --dist-autodiff="function=pool wrt=x" | FileCheck %s

// Of equal elements the first gets the whole cotangent; two ops find it, without writes at computed indices.
// CHECK-LABEL: func.func private @most_grad(
// CHECK: arith.minsi
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK-LABEL: func.func private @pool_grad(
// CHECK-NOT: tensor.insert
// CHECK: return
func.func private @most(%x: tensor<2x4xf32> {dist.name = "x"}) -> tensor<f32> {
  %least = arith.constant dense<0xFF800000> : tensor<2xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<2x4xf32>) outs(%least : tensor<2xf32>) dimensions = [1]
  %sum = linalg.reduce { arith.addf } ins(%max : tensor<2xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  return %sum : tensor<f32>
}
func.func private @most_grad(tensor<2x4xf32>) -> (tensor<f32>, tensor<2x4xf32>)

func.func private @pool(%x: tensor<1x3x3x1xf32> {dist.name = "x"}) -> tensor<f32> {
  %least = arith.constant dense<0xFF800000> : tensor<1x2x2x1xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %max = linalg.pooling_nhwc_max ins(%x, %window : tensor<1x3x3x1xf32>, tensor<2x2xf32>) outs(%least : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %sum = linalg.reduce { arith.addf } ins(%max : tensor<1x2x2x1xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1, 2, 3]
  return %sum : tensor<f32>
}
func.func private @pool_grad(tensor<1x3x3x1xf32>) -> (tensor<f32>, tensor<1x3x3x1xf32>)

func.func @main() {
  %x = arith.constant dense<[[1.0, 5.0, 2.0, 5.0], [7.0, 7.0, 7.0, 7.0]]> : tensor<2x4xf32>
  %0:2 = func.call @most_grad(%x) : (tensor<2x4xf32>) -> (tensor<f32>, tensor<2x4xf32>)
  %first = arith.constant dense<[[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]> : tensor<2x4xf32>
  check.expect_eq %0#1, %first : tensor<2x4xf32>

  // Windows overlap: the middle element is the first maximum of no window, the upper left one of all that contain it.
  %y = arith.constant dense<[[[[1.0], [1.0], [1.0]], [[1.0], [2.0], [1.0]], [[3.0], [1.0], [2.0]]]]> : tensor<1x3x3x1xf32>
  %1:2 = func.call @pool_grad(%y) : (tensor<1x3x3x1xf32>) -> (tensor<f32>, tensor<1x3x3x1xf32>)
  %hits = arith.constant dense<[[[[0.0], [0.0], [0.0]], [[0.0], [3.0], [0.0]], [[1.0], [0.0], [0.0]]]]> : tensor<1x3x3x1xf32>
  check.expect_eq %1#1, %hits : tensor<1x3x3x1xf32>
  return
}
