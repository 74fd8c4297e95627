// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// A gather: the body reads a captured tensor at a computed index.
// CHECK-LABEL: @gather
// CHECK-NEXT: result0 : tensor<3xf32> = [30, 11, 32]
func.func @gather() -> tensor<3xf32> {
  %i = arith.constant dense<[2, 0, 2]> : tensor<3xindex>
  %t = arith.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%i : tensor<3xindex>) outs(%e : tensor<3xf32>) {
  ^bb0(%in: index, %out: f32):
    %x = tensor.extract %t[%in] : tensor<3xf32>
    %d = linalg.index 0 : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.addf %x, %f : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Two results, a scalar operand, a constant index, a nonlinear map.
// CHECK-LABEL: @maps
// CHECK-NEXT: result0 : tensor<4xi32> = [5, 6, 5, 6]
// CHECK-NEXT: result1 : i32 = 122
func.func @maps() -> (tensor<4xi32>, i32) {
  %a = arith.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
  %k = arith.constant 25 : i32
  %e = tensor.empty() : tensor<4xi32>
  %c0 = arith.constant dense<0> : tensor<i32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (0, d0 mod 2)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
                         iterator_types = ["reduction"]}
    ins(%a, %k : tensor<2x2xi32>, i32) outs(%e, %c0 : tensor<4xi32>, tensor<i32>) {
  ^bb0(%in: i32, %scalar: i32, %out: i32, %acc: i32):
    %s = arith.addi %acc, %in : i32
    %t = arith.addi %s, %scalar : i32
    linalg.yield %in, %t : i32, i32
  } -> (tensor<4xi32>, tensor<i32>)
  %r = tensor.extract %0#1[] : tensor<i32>
  return %0#0, %r : tensor<4xi32>, i32
}
