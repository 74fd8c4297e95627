// RUN: tessera-opt %s --dist-normalize --canonicalize | FileCheck %s
// RUN: tessera run %s --function descent --check
// RUN: tessera run %s --function momentum --check
// RUN: tessera run %s --function both --check
// RUN: tessera run %s --function sums --check
// RUN: tessera run %s --function squares --check

// A scaled sum at indices that is added to state is added to it at the indices.

#updates = affine_map<(r, d, i) -> (i, d)>
#indices = affine_map<(r, d, i) -> (i)>
#rows = affine_map<(r, d, i) -> (r, d)>
#ij = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
!table = tensor<512x8xf32>

// w - rate * g: the table itself is updated, with -(u * rate).
// CHECK-LABEL: func.func @descent(
// CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%arg1, %arg3 : tensor<16x8xf32>, tensor<f32>)
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[U]], %arg2 : tensor<16x8xf32>, tensor<16xi32>) outs(%arg0 :
// CHECK: return %[[R]]
func.func @descent(%w: !table, %u: tensor<16x8xf32>, %i: tensor<16xi32> {dist.range = [0, 512]}, %rate: tensor<f32>) -> !table {
  %g = func.call @scatter(%u, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %e = tensor.empty() : !table
  %r = linalg.generic {indexing_maps = [#ij, #ij, #none, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w, %g, %rate : !table, !table, tensor<f32>) outs(%e : !table) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %s = arith.mulf %b, %c : f32
    %d = arith.subf %a, %s : f32
    linalg.yield %d : f32
  } -> !table
  return %r : !table
}

// A moment decays everywhere, then gets the updates.
// CHECK-LABEL: func.func @momentum(
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<512x8xf32>, tensor<512x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg1, %arg2 : tensor<16x8xf32>, tensor<16xi32>) outs(%[[M]] :
func.func @momentum(%m: !table, %u: tensor<16x8xf32>, %i: tensor<16xi32> {dist.range = [0, 512]}) -> !table {
  %g = func.call @scatter(%u, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %decay = arith.constant dense<0.9> : !table
  %old = arith.mulf %m, %decay : !table
  %r = arith.addf %old, %g : !table
  return %r : !table
}

// Two tables' worth of updates of one table.
// CHECK-LABEL: func.func @both(
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} outs(%arg0 :
// CHECK: linalg.generic {{.*}} outs(%[[FIRST]] :
func.func @both(%w: !table, %u: tensor<16x8xf32>, %i: tensor<16xi32> {dist.range = [0, 512]},
                %k: tensor<16xi32> {dist.range = [0, 512]}) -> !table {
  %g = func.call @scatter(%u, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %h = func.call @scatter(%u, %k) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %0 = arith.addf %w, %g : !table
  %r = arith.addf %0, %h : !table
  return %r : !table
}

// A sum of sums at indices, scaled before it is subtracted: the table gets the updates of each in turn.
// CHECK-LABEL: func.func @sums(
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins(%{{.*}}, %arg2 : {{.*}} outs(%arg0 :
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins(%{{.*}}, %arg3 : {{.*}} outs(%[[FIRST]] :
// CHECK: %[[THIRD:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins(%{{.*}}, %arg2 : {{.*}} outs(%[[SECOND]] :
// CHECK-NEXT: ^bb0
// CHECK: return %[[THIRD]]
func.func @sums(%w: !table, %u: tensor<16x8xf32>, %i: tensor<16xi32> {dist.range = [0, 512]},
                %k: tensor<16xi32> {dist.range = [0, 512]}, %v: tensor<16x8xf32>, %rate: tensor<f32>) -> !table {
  %f = func.call @scatter(%u, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %g = func.call @scatter(%u, %k) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %h = func.call @scatter(%v, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %0 = arith.addf %f, %g : !table
  %1 = arith.addf %0, %h : !table
  %e = tensor.empty() : !table
  %2 = linalg.generic {indexing_maps = [#ij, #none, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%1, %rate : !table, tensor<f32>) outs(%e : !table) {
  ^bb0(%b: f32, %c: f32, %out: f32):
    %s = arith.mulf %c, %b : f32
    linalg.yield %s : f32
  } -> !table
  %r = arith.subf %w, %2 : !table
  return %r : !table
}

// Not where the sum has another use, or is not linear in the result.
// CHECK-LABEL: func.func @squares(
// CHECK-COUNT-1: iterator_types = ["parallel", "parallel", "reduction"]{{.*}} outs(%cst
// CHECK: arith.mulf
// CHECK: return
func.func @squares(%w: !table, %u: tensor<16x8xf32>, %i: tensor<16xi32> {dist.range = [0, 512]}) -> !table {
  %g = func.call @scatter(%u, %i) : (tensor<16x8xf32>, tensor<16xi32>) -> !table
  %s = arith.mulf %g, %g : !table
  %r = arith.addf %w, %s : !table
  return %r : !table
}

func.func private @scatter(%u: tensor<16x8xf32>, %i: tensor<16xi32>) -> !table {
  %zero = arith.constant dense<0.0> : !table
  %g = linalg.generic {indexing_maps = [#updates, #indices, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<16x8xf32>, tensor<16xi32>) outs(%zero : !table) {
  ^bb0(%v: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %v, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> !table
  return %g : !table
}
