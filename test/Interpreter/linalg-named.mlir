// RUN: tessera-opt %s --interpret -o /dev/null

// Named ops execute their bodies over their iteration spaces.
func.func @matmul() {
  %a = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = arith.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %c = arith.constant dense<100.0> : tensor<2x2xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
  %e0 = arith.constant dense<[[119.0, 122.0], [143.0, 150.0]]> : tensor<2x2xf32>
  check.expect_eq %0, %e0 : tensor<2x2xf32>
  // The second operand is transposed.
  %1 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
  %e1 = arith.constant dense<[[117.0, 123.0], [139.0, 153.0]]> : tensor<2x2xf32>
  check.expect_eq %1, %e1 : tensor<2x2xf32>
  return
}

func.func @window() {
  %x = arith.constant dense<[[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]], [[7.0], [8.0], [9.0]]]]> : tensor<1x3x3x1xf32>
  %w = arith.constant dense<[[[[1.0]], [[0.0]]], [[[0.0]], [[10.0]]]]> : tensor<2x2x1x1xf32>
  %z = arith.constant dense<0.0> : tensor<1x2x2x1xf32>
  %0 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x3x3x1xf32>, tensor<2x2x1x1xf32>) outs(%z : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %e0 = arith.constant dense<[[[[51.0], [62.0]], [[84.0], [95.0]]]]> : tensor<1x2x2x1xf32>
  check.expect_eq %0, %e0 : tensor<1x2x2x1xf32>
  %k = tensor.empty() : tensor<2x2xf32>
  %least = arith.constant dense<0xFF800000> : tensor<1x1x1x1xf32>
  %1 = linalg.pooling_nhwc_max {dilations = dense<2> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %k : tensor<1x3x3x1xf32>, tensor<2x2xf32>) outs(%least : tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %e1 = arith.constant dense<9.0> : tensor<1x1x1x1xf32>
  check.expect_eq %1, %e1 : tensor<1x1x1x1xf32>
  return
}

func.func @shapes() {
  %a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %t = tensor.empty() : tensor<3x2xi32>
  %0 = linalg.transpose ins(%a : tensor<2x3xi32>) outs(%t : tensor<3x2xi32>) permutation = [1, 0]
  %e0 = arith.constant dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  check.expect_eq %0, %e0 : tensor<3x2xi32>
  %s = arith.constant dense<10> : tensor<2xi32>
  %1 = linalg.reduce ins(%a : tensor<2x3xi32>) outs(%s : tensor<2xi32>) dimensions = [1]
    (%in: i32, %acc: i32) {
      %m = arith.addi %in, %acc : i32
      linalg.yield %m : i32
    }
  %e1 = arith.constant dense<[16, 25]> : tensor<2xi32>
  check.expect_eq %1, %e1 : tensor<2xi32>
  %b = tensor.empty() : tensor<2x2xi32>
  %2 = linalg.broadcast ins(%1 : tensor<2xi32>) outs(%b : tensor<2x2xi32>) dimensions = [1]
  %e2 = arith.constant dense<[[16, 16], [25, 25]]> : tensor<2x2xi32>
  check.expect_eq %2, %e2 : tensor<2x2xi32>
  %3 = linalg.map { arith.muli } ins(%1, %1 : tensor<2xi32>, tensor<2xi32>) outs(%s : tensor<2xi32>)
  %e3 = arith.constant dense<[256, 625]> : tensor<2xi32>
  check.expect_eq %3, %e3 : tensor<2xi32>
  return
}

func.func @softmax() {
  %a = arith.constant dense<[[0.0, 1.0], [3.0, 3.0]]> : tensor<2x2xf64>
  %z = tensor.empty() : tensor<2x2xf64>
  %0 = linalg.softmax dimension(1) ins(%a : tensor<2x2xf64>) outs(%z : tensor<2x2xf64>) -> tensor<2x2xf64>
  %e0 = arith.constant dense<[[0.26894142136999512, 0.73105857863000488], [0.5, 0.5]]> : tensor<2x2xf64>
  check.expect_close %0, %e0 : tensor<2x2xf64>
  %1 = linalg.softmax dimension(0) ins(%a : tensor<2x2xf64>) outs(%z : tensor<2x2xf64>) -> tensor<2x2xf64>
  %e1 = arith.constant dense<[[0.04742587317756678, 0.11920292202211755], [0.9525741268224333, 0.8807970779778823]]> : tensor<2x2xf64>
  check.expect_close %1, %e1 : tensor<2x2xf64>
  return
}
