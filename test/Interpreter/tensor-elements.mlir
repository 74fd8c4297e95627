// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// CHECK-LABEL: @elements
// CHECK-NEXT: result0 : tensor<2x2xi32> = {{\[\[}}1, 2], [7, 1]]
// CHECK-NEXT: result1 : tensor<2xi32> = [7, 7]
// CHECK-NEXT: result2 : tensor<2x3xindex> = {{\[\[}}0, 1, 2], [10, 11, 12]]
func.func @elements() -> (tensor<2x2xi32>, tensor<2xi32>, tensor<2x3xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %seven = arith.constant 7 : i32
  %a = tensor.from_elements %one, %two, %two, %one : tensor<2x2xi32>
  %0 = tensor.insert %seven into %a[%c1, %c0] : tensor<2x2xi32>
  %x = tensor.extract %0[%c1, %c0] : tensor<2x2xi32>
  %1 = tensor.splat %x : tensor<2xi32>
  %2 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %t = arith.muli %i, %c10 : index
    %s = arith.addi %t, %j : index
    tensor.yield %s : index
  } : tensor<2x3xindex>
  return %0, %1, %2 : tensor<2x2xi32>, tensor<2xi32>, tensor<2x3xindex>
}

// CHECK-LABEL: @gather
// CHECK-NEXT: result0 : tensor<2x2xi32> = {{\[\[}}3, 6], [1, 4]]
// CHECK-NEXT: result1 : tensor<2x2x1xi32> = {{\[\[\[}}3], [6]], {{\[\[}}1], [4]]]
// CHECK-NEXT: result2 : tensor<1xi32> = [6]
func.func @gather() -> (tensor<2x2xi32>, tensor<2x2x1xi32>, tensor<1xi32>) {
  %a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %i = arith.constant dense<[[2], [0]]> : tensor<2x1xindex>
  %0 = tensor.gather %a[%i] gather_dims([1]) : (tensor<2x3xi32>, tensor<2x1xindex>) -> tensor<2x2xi32>
  %1 = tensor.gather %a[%i] gather_dims([1]) : (tensor<2x3xi32>, tensor<2x1xindex>) -> tensor<2x2x1xi32>
  %j = arith.constant dense<[[1, 2]]> : tensor<1x2xindex>
  %2 = tensor.gather %a[%j] gather_dims([0, 1]) : (tensor<2x3xi32>, tensor<1x2xindex>) -> tensor<1xi32>
  return %0, %1, %2 : tensor<2x2xi32>, tensor<2x2x1xi32>, tensor<1xi32>
}

// CHECK-LABEL: @scatter
// CHECK-NEXT: result0 : tensor<2x3xi32> = {{\[\[}}8, 0, 7], [18, 0, 17]]
func.func @scatter() -> tensor<2x3xi32> {
  %d = arith.constant dense<0> : tensor<2x3xi32>
  %s = arith.constant dense<[[[7], [17]], [[8], [18]]]> : tensor<2x2x1xi32>
  %i = arith.constant dense<[[2], [0]]> : tensor<2x1xindex>
  %0 = tensor.scatter %s into %d[%i] scatter_dims([1]) unique
    : (tensor<2x2x1xi32>, tensor<2x3xi32>, tensor<2x1xindex>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// Uninitialized elements are NaN.
// CHECK-LABEL: @undefined
// CHECK-NEXT: result0 : tensor<2xf32> = [nan, nan]
func.func @undefined() -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  return %e : tensor<2xf32>
}

// CHECK-LABEL: @resource
// CHECK-NEXT: result0 : tensor<3xi32> = [1, 2, 3]
func.func @resource() -> tensor<3xi32> {
  %0 = arith.constant dense_resource<blob> : tensor<3xi32>
  return %0 : tensor<3xi32>
}

{-#
  dialect_resources: {
    builtin: { blob: "0x04000000010000000200000003000000" }
  }
#-}
