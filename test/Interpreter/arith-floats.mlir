// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Each operation rounds to its type: bf16 has 8 bits, so 256 + 1 is 256.
// CHECK-LABEL: @rounding
// CHECK-NEXT: result0 : bf16 = 256
// CHECK-NEXT: result1 : f16 = 257
// CHECK-NEXT: result2 : f32 = 16777216
// CHECK-NEXT: result3 : f64 = 16777217
func.func @rounding() -> (bf16, f16, f32, f64) {
  %a = arith.constant 256.0 : bf16
  %a1 = arith.constant 1.0 : bf16
  %b = arith.constant 256.0 : f16
  %b1 = arith.constant 1.0 : f16
  %c = arith.constant 16777216.0 : f32
  %c1 = arith.constant 1.0 : f32
  %d = arith.constant 16777216.0 : f64
  %d1 = arith.constant 1.0 : f64
  %0 = arith.addf %a, %a1 : bf16
  %1 = arith.addf %b, %b1 : f16
  %2 = arith.addf %c, %c1 : f32
  %3 = arith.addf %d, %d1 : f64
  return %0, %1, %2, %3 : bf16, f16, f32, f64
}

// CHECK-LABEL: @nan
// CHECK-NEXT: result0 : tensor<2xf32> = [nan, 2]
// CHECK-NEXT: result1 : tensor<2xf32> = [1, 2]
// CHECK-NEXT: result2 : tensor<2xi1> = [0, 1]
// CHECK-NEXT: result3 : tensor<2xi1> = [1, 1]
// CHECK-NEXT: result4 : tensor<2xf32> = [inf, -inf]
func.func @nan() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>) {
  %a = arith.constant dense<[0x7FC00000, 1.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = arith.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %z = arith.constant dense<0.0> : tensor<2xf32>
  %0 = arith.maximumf %a, %b : tensor<2xf32>
  %1 = arith.maxnumf %a, %b : tensor<2xf32>
  %2 = arith.cmpf olt, %a, %b : tensor<2xf32>
  %3 = arith.cmpf ult, %a, %b : tensor<2xf32>
  %4 = arith.divf %s, %z : tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>
}

// CHECK-LABEL: @conversions
// CHECK-NEXT: result0 : tensor<3xi32> = [-1, 2147483647, 0]
// CHECK-NEXT: result1 : i8 = -1
// CHECK-NEXT: result2 : f32 = 255
// CHECK-NEXT: result3 : f32 = -1
// CHECK-NEXT: result4 : i32 = 1065353216
// CHECK-NEXT: result5 : bf16 = 3.140625
func.func @conversions() -> (tensor<3xi32>, i8, f32, f32, i32, bf16) {
  %a = arith.constant dense<[-1.9, 1.0e20, 0x7FC00000]> : tensor<3xf32>
  %0 = arith.fptosi %a : tensor<3xf32> to tensor<3xi32>
  %f = arith.constant 300.0 : f32
  %1 = arith.fptoui %f : f32 to i8
  %2 = arith.uitofp %1 : i8 to f32
  %3 = arith.sitofp %1 : i8 to f32
  %one = arith.constant 1.0 : f32
  %4 = arith.bitcast %one : f32 to i32
  %pi = arith.constant 3.14159265 : f32
  %5 = arith.truncf %pi : f32 to bf16
  return %0, %1, %2, %3, %4, %5 : tensor<3xi32>, i8, f32, f32, i32, bf16
}

// CHECK-LABEL: @select
// CHECK-NEXT: result0 : tensor<2xf32> = [1, 4]
// CHECK-NEXT: result1 : tensor<2xf32> = [3, 4]
func.func @select() -> (tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %p = arith.constant dense<[true, false]> : tensor<2xi1>
  %no = arith.constant false
  %0 = arith.select %p, %a, %b : tensor<2xi1>, tensor<2xf32>
  %1 = arith.select %no, %a, %b : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
