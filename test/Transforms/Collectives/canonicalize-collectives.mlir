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

// What both branches reduce is reduced once in front of them, and again by none behind or inside.
// CHECK-LABEL: func.func @branches(
// CHECK: %[[R:.*]] = dist.all_reduce %arg0
// CHECK-NOT: dist.all_reduce
// CHECK: scf.if
// CHECK-NEXT: scf.yield %[[R]]
// CHECK: arith.addf %[[R]], %arg0
// CHECK-NOT: dist.all_reduce
// CHECK: scf.if
// CHECK-NEXT: scf.yield %[[R]]
// CHECK: dist.all_reduce %arg0 {{.*}} reduction = max
func.func @branches(%a: tensor<8xf32>, %c: i1) -> (tensor<8xf32>, tensor<8xf32>) attributes {dist.view = "local"} {
  %0 = scf.if %c -> tensor<8xf32> {
    %1 = dist.all_reduce %a over @m ["x"] reduction = sum {dist.reason = "one"} : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  } else {
    %1 = dist.all_reduce %a over @m ["x"] reduction = sum {dist.reason = "another"} : tensor<8xf32>
    %2 = arith.addf %1, %a : tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  }
  %3 = scf.if %c -> tensor<8xf32> {
    %4 = dist.all_reduce %a over @m ["x"] reduction = sum : tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  } else {
    %4 = dist.all_reduce %a over @m ["x"] reduction = max : tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  }
  return %0, %3 : tensor<8xf32>, tensor<8xf32>
}
