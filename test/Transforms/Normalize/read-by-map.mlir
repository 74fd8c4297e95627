// RUN: tessera-opt %s --dist-normalize | FileCheck %s

// A look-up at indices that are affine in the iteration becomes a read by a map.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// Negative indices count from the end, others are clamped: these indices are in bounds.
// CHECK: affine_map<(d0, d1) -> (d0 + d1 * 2 + 1)>
// CHECK-LABEL: func.func @windows(
// CHECK: %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<16xf32>) outs(
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[IN]]
// CHECK: return %[[R]]
func.func @windows(%x: tensor<16xf32>) -> tensor<10x3xf32> {
  %e = tensor.empty() : tensor<10x3xi32>
  %i = linalg.generic {indexing_maps = [#both], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<10x3xi32>) {
  ^bb0(%out: i32):
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %zero = arith.constant 0 : i32
    %n = arith.constant 16 : i32
    %last = arith.constant 15 : i32
    %a = linalg.index 0 : index
    %b = linalg.index 1 : index
    %p = arith.index_cast %a : index to i32
    %q = arith.index_cast %b : index to i32
    %q2 = arith.muli %q, %two : i32
    %s = arith.addi %p, %q2 : i32
    %t = arith.addi %s, %one : i32
    %negative = arith.cmpi slt, %t, %zero : i32
    %wrapped = arith.addi %t, %n : i32
    %u = arith.select %negative, %wrapped, %t : i32
    %v = arith.maxsi %u, %zero : i32
    %w = arith.minsi %v, %last : i32
    linalg.yield %w : i32
  } -> tensor<10x3xi32>
  %zero = arith.constant dense<0.0> : tensor<10x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %i : tensor<16xf32>, tensor<10x3xi32>) outs(%zero : tensor<10x3xf32>) {
  ^bb0(%in: f32, %index: i32, %acc: f32):
    %v = linalg.index 2 : index
    %here = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %index, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %hit, %in, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<10x3xf32>
  return %y : tensor<10x3xf32>
}

// Indices beyond the edge yield nothing there: the look-up stays.
// CHECK-LABEL: func.func @beyond(
// CHECK: arith.select
func.func @beyond(%x: tensor<16xf32>) -> tensor<17xf32> {
  %zero = arith.constant dense<0.0> : tensor<17xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16xf32>) outs(%zero : tensor<17xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %i = linalg.index 0 : index
    %v = linalg.index 1 : index
    %hit = arith.cmpi eq, %i, %v : index
    %none = arith.constant 0.0 : f32
    %term = arith.select %hit, %in, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<17xf32>
  return %y : tensor<17xf32>
}

// Positions may be fewer than the rows of their table: a loop that reads a dimension has its extent.
// CHECK-LABEL: func.func @first_rows(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0[0, 0] [6, 16] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[S]] : tensor<6x16xf32>)
func.func @first_rows(%t: tensor<12x16xf32>) -> tensor<1x6x16xf32> {
  %e = tensor.empty() : tensor<1x6xi64>
  %i = linalg.generic {indexing_maps = [#both], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<1x6xi64>) {
  ^bb0(%out: i64):
    %b = linalg.index 1 : index
    %p = arith.index_cast %b : index to i64
    linalg.yield %p : i64
  } -> tensor<1x6xi64>
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<1x6x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x6x16xf32>) -> tensor<1x6x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%t, %i : tensor<12x16xf32>, tensor<1x6xi64>) outs(%f : tensor<1x6x16xf32>) {
  ^bb0(%in: f32, %at: i64, %out: f32):
    %row = linalg.index 3 : index
    %rowi = arith.index_cast %row : index to i64
    %hit = arith.cmpi eq, %at, %rowi : i64
    %s = arith.select %hit, %in, %zero : f32
    %sum = arith.addf %out, %s : f32
    linalg.yield %sum : f32
  } -> tensor<1x6x16xf32>
  return %r : tensor<1x6x16xf32>
}
