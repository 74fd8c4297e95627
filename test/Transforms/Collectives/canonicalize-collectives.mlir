// RUN: tessera-opt %s --dist-canonicalize-collectives | FileCheck %s

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @reduce_then_slice(
// CHECK: dist.reduce_scatter %arg0 over @m ["x"] dim = 0 reduction = sum
// CHECK-NOT: dist.all_reduce
// CHECK-NOT: dist.slice
func.func @reduce_then_slice(%a: tensor<8xf32>) -> tensor<2xf32> attributes {dist.view = "local"} {
  %0 = dist.all_reduce %a over @m ["x"] reduction = sum : tensor<8xf32>
  %1 = dist.slice %0 over @m ["x"] dim = 0 : tensor<8xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @duplicates(
// CHECK: %[[R:.*]] = dist.all_reduce
// CHECK-NOT: dist.all_reduce
// CHECK: return %[[R]], %[[R]]
func.func @duplicates(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {dist.view = "local"} {
  %0 = dist.all_reduce %a over @m ["x"] reduction = sum : tensor<8xf32>
  %1 = dist.all_reduce %a over @m ["x"] reduction = sum : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// Each device's value is a contribution to a mean; the values need not be equal.
// CHECK-LABEL: func.func @mean(
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce %arg0 over @m ["x"] reduction = avg
// CHECK-NEXT: %[[S:.*]] = dist.make_partial %arg0
// CHECK-NEXT: return %[[R]], %[[S]]
func.func @mean(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {dist.view = "local"} {
  %0 = dist.make_partial %a over @m ["x"] reduction = avg : tensor<8xf32>
  %1 = dist.all_reduce %0 over @m ["x"] reduction = avg : tensor<8xf32>
  %2 = dist.make_partial %a over @m ["x"] reduction = sum : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
