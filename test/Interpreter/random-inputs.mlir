// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --interpret="seed=7" -o /dev/null | FileCheck %s --check-prefix=SEVEN

// The inputs that every driver derives from a seed: Philox4x32-10 with key = seed and counter = (element, argument).
// Element 0 of argument 0 under seed 0 is Random123's known answer to zeros, 0x6627e8d5.
// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<4xf64> = [-0.20190{{[0-9]*}},
// SEVEN-LABEL: @main
// SEVEN-NEXT: result0 : tensor<4xf64> = [0.9091{{.*}}]
// SEVEN-NEXT: result1 : tensor<2x4xi32> = {{\[\[}}-3, 4, 7, 4], [6, 1, 8, 4]]
// SEVEN-NEXT: result2 : tensor<4xi1> = [1, 1, 1, 1]
func.func @main(%a: tensor<4xf64>, %b: tensor<2x4xi32> {dist.range = [-3, 9]}, %c: tensor<4xi1>)
    -> (tensor<4xf64>, tensor<2x4xi32>, tensor<4xi1>) {
  return %a, %b, %c : tensor<4xf64>, tensor<2x4xi32>, tensor<4xi1>
}
