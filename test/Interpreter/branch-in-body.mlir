// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Each element evaluates only its own arm: the division by zero in the other arm is not
// reached.
// CHECK-LABEL: @arms
// CHECK-NEXT: result0 : tensor<4xi32> = [6, 0, 3, 0]
func.func @arms() -> tensor<4xi32> {
  %a = arith.constant dense<[2, 0, 4, 0]> : tensor<4xi32>
  %e = tensor.empty() : tensor<4xi32>
  %twelve = arith.constant 12 : i32
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi ne, %in, %zero : i32
    %r = scf.if %c -> i32 {
      %q = arith.divsi %twelve, %in : i32
      scf.yield %q : i32
    } else {
      scf.yield %zero : i32
    }
    linalg.yield %r : i32
  } -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// Nested arms, with two results.
// CHECK-LABEL: @nested
// CHECK-NEXT: result0 : tensor<3xi32> = [-1, 0, 1]
// CHECK-NEXT: result1 : tensor<3xi32> = [5, 0, 7]
func.func @nested() -> (tensor<3xi32>, tensor<3xi32>) {
  %a = arith.constant dense<[-5, 0, 7]> : tensor<3xi32>
  %e = tensor.empty() : tensor<3xi32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<3xi32>) outs(%e, %e : tensor<3xi32>, tensor<3xi32>) {
  ^bb0(%in: i32, %out0: i32, %out1: i32):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %minus = arith.constant -1 : i32
    %negative = arith.cmpi slt, %in, %zero : i32
    %r:2 = scf.if %negative -> (i32, i32) {
      %n = arith.subi %zero, %in : i32
      scf.yield %minus, %n : i32, i32
    } else {
      %positive = arith.cmpi sgt, %in, %zero : i32
      %s = scf.if %positive -> i32 {
        scf.yield %one : i32
      } else {
        scf.yield %zero : i32
      }
      scf.yield %s, %in : i32, i32
    }
    linalg.yield %r#0, %r#1 : i32, i32
  } -> (tensor<3xi32>, tensor<3xi32>)
  return %0#0, %0#1 : tensor<3xi32>, tensor<3xi32>
}
