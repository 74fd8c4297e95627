// RUN: tessera-opt %s --dist-autodiff="function=set wrt=x,u" --interpret="function=main"
// RUN: tessera-opt %s --dist-autodiff="function=set wrt=x,u" | FileCheck %s

// Of updates of one element the last gets its cotangent, an element without updates keeps it. The number of the last one
// is a minimum over the updates; the derivative of the updates looks it up.
// CHECK-LABEL: func.func private @set_grad(
// CHECK: arith.minsi
// CHECK: arith.cmpi eq
// CHECK: arith.andi
// CHECK: arith.select
func.func private @set(%x: tensor<3x2xf32> {dist.name = "x"}, %u: tensor<4x2xf32> {dist.name = "u"}, %i: tensor<4xi32>, %w: tensor<3x2xf32>) -> tensor<f32> {
  %y = linalg.generic {indexing_maps = [affine_map<(v, j, k) -> (k, j)>, affine_map<(v, j, k) -> (k)>, affine_map<(v, j, k) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<4x2xf32>, tensor<4xi32>) outs(%x : tensor<3x2xf32>) {
  ^bb0(%in: f32, %index: i32, %old: f32):
    %v = linalg.index 0 : index
    %n = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %n : i32
    %next = arith.select %here, %in, %old : f32
    linalg.yield %next : f32
  } -> tensor<3x2xf32>
  %p = arith.mulf %y, %w : tensor<3x2xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<3x2xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
  return %sum : tensor<f32>
}
func.func private @set_grad(tensor<3x2xf32>, tensor<4x2xf32>, tensor<4xi32>, tensor<3x2xf32>) -> (tensor<f32>, tensor<3x2xf32>, tensor<4x2xf32>)

func.func @main() {
  %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %u = arith.constant dense<[[7.0, 8.0], [9.0, 10.0], [11.0, 12.0], [13.0, 14.0]]> : tensor<4x2xf32>
  // Row 2 is set twice, row 0 not at all; the last index is out of bounds.
  %i = arith.constant dense<[2, 1, 2, 3]> : tensor<4xi32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %0:3 = func.call @set_grad(%x, %u, %i, %w) : (tensor<3x2xf32>, tensor<4x2xf32>, tensor<4xi32>, tensor<3x2xf32>) -> (tensor<f32>, tensor<3x2xf32>, tensor<4x2xf32>)
  %sum = arith.constant dense<199.0> : tensor<f32>
  check.expect_eq %0#0, %sum : tensor<f32>
  %dx = arith.constant dense<[[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]> : tensor<3x2xf32>
  check.expect_eq %0#1, %dx : tensor<3x2xf32>
  %du = arith.constant dense<[[0.0, 0.0], [3.0, 4.0], [5.0, 6.0], [0.0, 0.0]]> : tensor<4x2xf32>
  check.expect_eq %0#2, %du : tensor<4x2xf32>
  return
}
