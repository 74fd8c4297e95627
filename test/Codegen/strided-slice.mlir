// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s

// Rank-reducing slices with strides: along dimensions of extent 1, where the stride is unused, and
// along others.
// CHECK: check  result0  ok
// CHECK: check  result1  ok
// CHECK: check  result2  ok
func.func @main(%x: tensor<14x3x1xf32>, %y: tensor<5x1x8x3xf32>, %z: tensor<2x3xf32>)
    -> (tensor<1x2xf32>, tensor<3x1x2xf32>, tensor<9x1x3xf32>) {
  %0 = tensor.extract_slice %x[8, 0, 0] [1, 2, 1] [2, 2, 2] : tensor<14x3x1xf32> to tensor<1x2xf32>
  %1 = tensor.extract_slice %y[0, 0, 0, 2] [3, 1, 2, 1] [2, 1, 1, 1] : tensor<5x1x8x3xf32> to tensor<3x1x2xf32>
  %e = arith.constant dense<1.0> : tensor<9x1x3xf32>
  %2 = tensor.insert_slice %z into %e[1, 0, 0] [2, 1, 3] [4, 1, 1] : tensor<2x3xf32> into tensor<9x1x3xf32>
  return %0, %1, %2 : tensor<1x2xf32>, tensor<3x1x2xf32>, tensor<9x1x3xf32>
}
