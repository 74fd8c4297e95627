// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// CHECK-LABEL: @slices
// CHECK-NEXT: result0 : tensor<2x2xi32> = {{\[\[}}2, 4], [7, 9]]
// CHECK-NEXT: result1 : tensor<2xi32> = [3, 8]
// CHECK-NEXT: result2 : tensor<2x5xi32> = {{\[\[}}0, 3, 2, 3, 4], [5, 8, 7, 8, 9]]
// CHECK-NEXT: result3 : tensor<0x5xi32> = []
func.func @slices() -> (tensor<2x2xi32>, tensor<2xi32>, tensor<2x5xi32>, tensor<0x5xi32>) {
  %a = arith.constant dense<[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]> : tensor<2x5xi32>
  %0 = tensor.extract_slice %a[0, 2] [2, 2] [1, 2] : tensor<2x5xi32> to tensor<2x2xi32>
  %c3 = arith.constant 3 : index
  %1 = tensor.extract_slice %a[0, %c3] [2, 1] [1, 1] : tensor<2x5xi32> to tensor<2xi32>
  %2 = tensor.insert_slice %1 into %a[0, 1] [2, 1] [1, 1] : tensor<2xi32> into tensor<2x5xi32>
  %3 = tensor.extract_slice %a[1, 0] [0, 5] [1, 1] : tensor<2x5xi32> to tensor<0x5xi32>
  return %0, %1, %2, %3 : tensor<2x2xi32>, tensor<2xi32>, tensor<2x5xi32>, tensor<0x5xi32>
}

// CHECK-LABEL: @pad
// CHECK-NEXT: result0 : tensor<2x4xi32> = {{\[\[}}9, 1, 2, 9], [9, 9, 9, 9]]
// CHECK-NEXT: result1 : tensor<4xindex> = [0, 5, 2, 3]
func.func @pad() -> (tensor<2x4xi32>, tensor<4xindex>) {
  %a = arith.constant dense<[[1, 2]]> : tensor<1x2xi32>
  %k = arith.constant 9 : i32
  %0 = tensor.pad %a low[0, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %k : i32
  } : tensor<1x2xi32> to tensor<2x4xi32>
  %b = arith.constant dense<[5]> : tensor<1xindex>
  // The arguments of the region are the indices of the result.
  %1 = tensor.pad %b low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<1xindex> to tensor<4xindex>
  return %0, %1 : tensor<2x4xi32>, tensor<4xindex>
}

// CHECK-LABEL: @concat
// CHECK-NEXT: result0 : tensor<2x4xi32> = {{\[\[}}1, 5, 6, 1], [2, 7, 8, 2]]
func.func @concat() -> tensor<2x4xi32> {
  %a = arith.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %b = arith.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
  %0 = tensor.concat dim(1) %a, %b, %a : (tensor<2x1xi32>, tensor<2x2xi32>, tensor<2x1xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// CHECK-LABEL: @reshapes
// CHECK-NEXT: result0 : tensor<3x2x1xi32> = {{\[\[\[}}1], [2]], {{\[\[}}3], [4]], {{\[\[}}5], [6]]]
// CHECK-NEXT: result1 : tensor<6xi32> = [1, 2, 3, 4, 5, 6]
// CHECK-NEXT: result2 : tensor<2x3xi32> = {{\[\[}}1, 2, 3], [4, 5, 6]]
// CHECK-NEXT: result3 : index = 6
func.func @reshapes() -> (tensor<3x2x1xi32>, tensor<6xi32>, tensor<2x3xi32>, index) {
  %a = arith.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [3, 2, 1] : tensor<3x2xi32> into tensor<3x2x1xi32>
  %1 = tensor.collapse_shape %a [[0, 1]] : tensor<3x2xi32> into tensor<6xi32>
  %s = arith.constant dense<[2, 3]> : tensor<2xindex>
  %2 = tensor.reshape %1(%s) : (tensor<6xi32>, tensor<2xindex>) -> tensor<2x3xi32>
  %d = tensor.cast %1 : tensor<6xi32> to tensor<?xi32>
  %c0 = arith.constant 0 : index
  %3 = tensor.dim %d, %c0 : tensor<?xi32>
  return %0, %1, %2, %3 : tensor<3x2x1xi32>, tensor<6xi32>, tensor<2x3xi32>, index
}
