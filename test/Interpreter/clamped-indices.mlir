// An index out of bounds is clamped to the nearest valid one.
// RUN: tessera-opt %s --interpret | FileCheck %s

// CHECK-LABEL: @element
// CHECK: = 4
// CHECK: = 1
func.func @element() -> (f32, f32) {
  %a = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %c4 = arith.constant 4 : index
  %minus = arith.constant -9 : index
  %0 = tensor.extract %a[%c4] : tensor<4xf32>
  %1 = tensor.extract %a[%minus] : tensor<4xf32>
  return %0, %1 : f32, f32
}

// The whole slice is in bounds: of 4 elements, a slice of 2 elements with stride 2 may begin at 0 or 1.
// CHECK-LABEL: @slice
// CHECK: = [2, 4]
// CHECK: = [9, 2, 8, 4]
func.func @slice() -> (tensor<2xf32>, tensor<4xf32>) {
  %a = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %b = arith.constant dense<[9.0, 8.0]> : tensor<2xf32>
  %c3 = arith.constant 3 : index
  %minus = arith.constant -3 : index
  %0 = tensor.extract_slice %a[%c3] [2] [2] : tensor<4xf32> to tensor<2xf32>
  %1 = tensor.insert_slice %b into %a[%minus] [2] [2] : tensor<2xf32> into tensor<4xf32>
  return %0, %1 : tensor<2xf32>, tensor<4xf32>
}

// CHECK-LABEL: @body
// CHECK: = [1, 4]
// CHECK: = [1, 4]
func.func @body() -> (tensor<2xf32>, tensor<2xf32>) {
  %t = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %i = arith.constant dense<[-1, 4]> : tensor<2xindex>
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%i : tensor<2xindex>) outs(%e : tensor<2xf32>) {
  ^bb0(%in: index, %out: f32):
    %x = tensor.extract %t[%in] : tensor<4xf32>
    linalg.yield %x : f32
  } -> tensor<2xf32>
  %at = arith.constant dense<[[-7], [7]]> : tensor<2x1xi32>
  %1 = tensor.gather %t[%at] gather_dims([0]) : (tensor<4xf32>, tensor<2x1xi32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
