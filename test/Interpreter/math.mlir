// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<3xf32> = [0.36787945, 1, 2.7182817]
// CHECK-NEXT: result1 : tensor<3xf32> = [-0.7615942, 0, 0.7615942]
// CHECK-NEXT: result2 : tensor<3xf32> = [-0.8427008, 0, 0.8427008]
// CHECK-NEXT: result3 : tensor<3xf32> = [inf, 1, 0.5]
// CHECK-NEXT: result4 : tensor<4xf32> = [2, 2, -2, -0]
// CHECK-NEXT: result5 : tensor<4xf32> = [3, 2, -3, -1]
// CHECK-NEXT: result6 : tensor<3xf32> = [-1, -0, -1]
// CHECK-NEXT: result7 : tensor<3xi32> = [-8, 0, 1]
// CHECK-NEXT: result8 : tensor<3xi1> = [0, 1, 0]
// CHECK-NEXT: result9 : tensor<3xf32> = [2, 1, 2]
func.func @main() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>,
                      tensor<3xf32>, tensor<3xi32>, tensor<3xi1>, tensor<3xf32>) {
  %a = arith.constant dense<[-1.0, 0.0, 1.0]> : tensor<3xf32>
  %0 = math.exp %a : tensor<3xf32>
  %1 = math.tanh %a : tensor<3xf32>
  %2 = math.erf %a : tensor<3xf32>
  %r = arith.constant dense<[0.0, 1.0, 4.0]> : tensor<3xf32>
  %3 = math.rsqrt %r : tensor<3xf32>
  %h = arith.constant dense<[2.5, 1.5, -2.5, -0.5]> : tensor<4xf32>
  %4 = math.roundeven %h : tensor<4xf32>
  %5 = math.round %h : tensor<4xf32>
  %s = arith.constant dense<-1.0> : tensor<3xf32>
  %6 = math.copysign %a, %s : tensor<3xf32>
  %i = arith.constant dense<[-2, 0, 1]> : tensor<3xi32>
  %e = arith.constant dense<[3, 2, -4]> : tensor<3xi32>
  %7 = math.ipowi %i, %e : tensor<3xi32>
  %n = arith.constant dense<[1.0, 0x7FC00000, 0x7F800000]> : tensor<3xf32>
  %8 = math.isnan %n : tensor<3xf32>
  %a2 = arith.constant dense<1.0> : tensor<3xf32>
  %9 = math.fma %a, %a, %a2 : tensor<3xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>,
    tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xi1>, tensor<3xf32>
}
