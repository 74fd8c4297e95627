// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Integers wrap around; the op defines whether bits are signed or unsigned.
// CHECK-LABEL: @wrap
// CHECK-NEXT: result0 : i8 = -56
// CHECK-NEXT: result1 : i8 = 16
// CHECK-NEXT: result2 : i1 = 1
func.func @wrap() -> (i8, i8, i1) {
  %a = arith.constant 100 : i8
  %b = arith.constant 68 : i8
  %c = arith.constant 4 : i8
  %0 = arith.addi %a, %a : i8
  %1 = arith.muli %b, %c : i8
  %2 = arith.cmpi ugt, %0, %a : i8
  return %0, %1, %2 : i8, i8, i1
}

// CHECK-LABEL: @divisions
// CHECK-NEXT: result0 : tensor<4xi32> = [3, -3, -3, 3]
// CHECK-NEXT: result1 : tensor<4xi32> = [3, -4, -4, 3]
// CHECK-NEXT: result2 : tensor<4xi32> = [4, -3, -3, 4]
// CHECK-NEXT: result3 : tensor<4xi32> = [1, -1, 1, -1]
// CHECK-NEXT: result4 : tensor<4xi32> = [3, 2147483644, 0, 0]
func.func @divisions() -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  %a = arith.constant dense<[7, -7, 7, -7]> : tensor<4xi32>
  %b = arith.constant dense<[2, 2, -2, -2]> : tensor<4xi32>
  %0 = arith.divsi %a, %b : tensor<4xi32>
  %1 = arith.floordivsi %a, %b : tensor<4xi32>
  %2 = arith.ceildivsi %a, %b : tensor<4xi32>
  %3 = arith.remsi %a, %b : tensor<4xi32>
  %4 = arith.divui %a, %b : tensor<4xi32>
  return %0, %1, %2, %3, %4 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: @bits
// CHECK-NEXT: result0 : i16 = 32
// CHECK-NEXT: result1 : i16 = -2
// CHECK-NEXT: result2 : i16 = 16382
// CHECK-NEXT: result3 : i16 = 13
// CHECK-NEXT: result4 : i16 = 3
// CHECK-NEXT: result5 : i64 = 65528
func.func @bits() -> (i16, i16, i16, i16, i16, i64) {
  %a = arith.constant 8 : i16
  %b = arith.constant -8 : i16
  %n = arith.constant 2 : i16
  %0 = arith.shli %a, %n : i16
  %1 = arith.shrsi %b, %n : i16
  %2 = arith.shrui %b, %n : i16
  %3 = math.ctpop %b : i16
  %4 = math.cttz %a : i16
  %5 = arith.extui %b : i16 to i64
  return %0, %1, %2, %3, %4, %5 : i16, i16, i16, i16, i16, i64
}

// CHECK-LABEL: @extended
// CHECK-NEXT: result0 : i32 = -2
// CHECK-NEXT: result1 : i1 = 1
// CHECK-NEXT: result2 : i32 = 1
// CHECK-NEXT: result3 : i32 = 0
// CHECK-NEXT: result4 : i32 = -2
func.func @extended() -> (i32, i1, i32, i32, i32) {
  %m = arith.constant -1 : i32
  %s, %o = arith.addui_extended %m, %m : i32, i1
  %l, %h = arith.mulsi_extended %m, %m : i32
  %ul, %uh = arith.mului_extended %m, %m : i32
  return %s, %o, %l, %h, %uh : i32, i1, i32, i32, i32
}
