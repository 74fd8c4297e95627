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
