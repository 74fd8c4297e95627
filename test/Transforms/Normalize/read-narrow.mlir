// RUN: tessera-opt %s --dist-normalize | FileCheck %s

// The extension of a 16-bit float for a product with its own type is dropped.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @extended(
// CHECK-NOT: outs({{.*}}tensor<8x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<8x16xbf16>, tensor<4x16xbf16>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %[[C:.*]]: f32):
// CHECK-NEXT: %[[WIDE_A:.*]] = arith.extf %[[A]]
// CHECK-NEXT: %[[WIDE_B:.*]] = arith.extf %[[B]]
// CHECK-NEXT: arith.mulf %[[WIDE_B]], %[[WIDE_A]] : f32
func.func @extended(%x: tensor<8x16xbf16>, %w: tensor<4x16xbf16>) -> tensor<8x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x4xf32>
  %wide = arith.extf %x : tensor<8x16xbf16> to tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %w : tensor<8x16xf32>, tensor<4x16xbf16>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: bf16, %s: f32):
    %e = arith.extf %q : bf16 to f32
    %m = arith.mulf %e, %p : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Another type, and a value computed in f32: the extension stays.
// CHECK-LABEL: func.func @others(
// CHECK: ins(%{{.*}}, %arg1 : tensor<8x16xf32>, tensor<4x16xbf16>)
// CHECK: ins(%arg2, %arg1 : tensor<8x16xf32>, tensor<4x16xbf16>)
func.func @others(%x: tensor<8x16xf16>, %w: tensor<4x16xbf16>, %v: tensor<8x16xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x4xf32>
  %wide = arith.extf %x : tensor<8x16xf16> to tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %w : tensor<8x16xf32>, tensor<4x16xbf16>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: bf16, %s: f32):
    %e = arith.extf %q : bf16 to f32
    %m = arith.mulf %p, %e : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v, %w : tensor<8x16xf32>, tensor<4x16xbf16>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: bf16, %s: f32):
    %e = arith.extf %q : bf16 to f32
    %m = arith.mulf %p, %e : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %y, %z : tensor<8x4xf32>, tensor<8x4xf32>
}
