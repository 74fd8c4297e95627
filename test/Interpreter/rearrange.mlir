// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<2x5xi32> = {{\[\[}}4, 0, 2, 9, 1], [8, 4, 6, 9, 5]]
// CHECK-NEXT: result1 : tensor<4xi32> = [4, 3, 2, 1]
func.func @main() -> (tensor<2x5xi32>, tensor<4xi32>) {
  %a = arith.constant dense<[[1, 2, 3, 4], [5, 6, 7, 8]]> : tensor<2x4xi32>
  %b = arith.constant dense<[[0], [4]]> : tensor<2x1xi32>
  %0 = dist.rearrange %a, %b, %a dim = 1 segments = [3, 1, 0, 1, 1,  0, 1, 1, 1, 1,  0, 1, 4, -2, 2] fill = 9 : i32
         : (tensor<2x4xi32>, tensor<2x1xi32>, tensor<2x4xi32>) -> tensor<2x5xi32>
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %1 = dist.rearrange %c dim = 0 segments = [0, 1, 3, -1, 4] : (tensor<4xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<2x5xi32>, tensor<4xi32>
}
