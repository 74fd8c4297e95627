// A reduction with one nonzero iteration becomes a read of that element, at an index clamped to the table.
// RUN: tessera-opt %s --codegen-prepare --split-input-file | FileCheck %s

// A device's part of the rows: its index times 128 is added to the loop.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[TABLE:.*]]: tensor<128x64xf32>, %[[INDICES:.*]]: tensor<16xi32>, %[[FIRST:.*]]: tensor<index>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[INDICES]] :
// CHECK: ^bb0(%[[INDEX:.*]]: i32, %{{.*}}: f32):
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[AT:.*]] = arith.index_cast %[[INDEX]]
// CHECK: %[[LOCAL:.*]] = arith.subi %[[AT]]
// CHECK: %[[LOW:.*]] = arith.maxsi %[[LOCAL]]
// CHECK: %[[ROW:.*]] = arith.minsi %[[LOW]]
// CHECK: tensor.extract %[[TABLE]][%[[ROW]], %[[J]]]
// CHECK: arith.cmpi eq, %[[INDEX]]
func.func @rows(%table: tensor<128x64xf32>, %indices: tensor<16xi32>, %first: tensor<index>) -> tensor<16x64xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %begin = tensor.extract %first[] : tensor<index>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, v) -> (v, j)>, affine_map<(i, j, v) -> (i)>, affine_map<(i, j, v) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%table, %indices : tensor<128x64xf32>, tensor<16xi32>) outs(%zero : tensor<16x64xf32>) {
  ^bb0(%x: f32, %index: i32, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %v = linalg.index 2 : index
    %row = arith.addi %v, %begin : index
    %number = arith.index_cast %row : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// -----

// With another conjunct and a kept accumulator; the other reduction stays.
// CHECK-LABEL: func.func @kept(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK: tensor.extract
func.func @kept(%table: tensor<32xi64>, %indices: tensor<4x3xi64>, %valid: tensor<4x3xi1>, %init: tensor<4xi64>) -> tensor<4xi64> attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, k, v) -> (v)>, affine_map<(i, k, v) -> (i, k)>, affine_map<(i, k, v) -> (i, k)>, affine_map<(i, k, v) -> (i)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%table, %indices, %valid : tensor<32xi64>, tensor<4x3xi64>, tensor<4x3xi1>) outs(%init : tensor<4xi64>) {
  ^bb0(%x: i64, %index: i64, %ok: i1, %most: i64):
    %v = linalg.index 2 : index
    %number = arith.index_cast %v : index to i64
    %here = arith.cmpi eq, %number, %index : i64
    %both = arith.andi %ok, %here : i1
    %larger = arith.maxsi %most, %x : i64
    %next = arith.select %both, %larger, %most : i64
    linalg.yield %next : i64
  } -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// -----

// Another summand counts in every iteration.
// CHECK-LABEL: func.func @counts(
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK-NOT: tensor.extract %arg0
func.func @counts(%table: tensor<32xf32>, %indices: tensor<4xi64>) -> tensor<4xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v) -> (v)>, affine_map<(i, v) -> (i)>, affine_map<(i, v) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%table, %indices : tensor<32xf32>, tensor<4xi64>) outs(%zero : tensor<4xf32>) {
  ^bb0(%x: f32, %index: i64, %sum: f32):
    %one = arith.constant 1.0 : f32
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i64
    %here = arith.cmpi eq, %number, %index : i64
    %term = arith.select %here, %x, %one : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// 8 bits: 300 rows have repeated indices.
// CHECK-LABEL: func.func @narrow(
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @narrow(%table: tensor<300xf32>, %indices: tensor<4xi8>) -> tensor<4xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v) -> (v)>, affine_map<(i, v) -> (i)>, affine_map<(i, v) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%table, %indices : tensor<300xf32>, tensor<4xi8>) outs(%zero : tensor<4xf32>) {
  ^bb0(%x: f32, %index: i8, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i8
    %here = arith.cmpi eq, %number, %index : i8
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A short dimension uses comparisons; only the table determined its length.
// CHECK-LABEL: func.func @two_indices(
// CHECK: %[[LENGTH:.*]] = tensor.empty() : tensor<4xi8>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins({{.*}}, %[[LENGTH]] :
func.func @two_indices(%table: tensor<4x16xf32>, %rows: tensor<9xi32>, %columns: tensor<9xi32>) -> tensor<9xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v, w) -> (v, w)>, affine_map<(i, v, w) -> (i)>, affine_map<(i, v, w) -> (i)>,
                                        affine_map<(i, v, w) -> (i)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%table, %rows, %columns : tensor<4x16xf32>, tensor<9xi32>, tensor<9xi32>) outs(%zero : tensor<9xf32>) {
  ^bb0(%x: f32, %row: i32, %column: i32, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %v = linalg.index 1 : index
    %w = linalg.index 2 : index
    %vi = arith.index_cast %v : index to i32
    %wi = arith.index_cast %w : index to i32
    %here = arith.cmpi eq, %vi, %row : i32
    %there = arith.cmpi eq, %wi, %column : i32
    %both = arith.andi %here, %there : i1
    %term = arith.select %both, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// A sum starts from the scalar of a fill: its tensor is not read.
// CHECK-LABEL: func.func @filled(
// CHECK: tensor.extract
// CHECK: arith.addf %cst
func.func @filled(%table: tensor<128x64xf32>, %indices: tensor<16xi32>) -> tensor<16x64xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x64xf32>) -> tensor<16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, v) -> (v, j)>, affine_map<(i, j, v) -> (i)>, affine_map<(i, j, v) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%table, %indices : tensor<128x64xf32>, tensor<16xi32>) outs(%filled : tensor<16x64xf32>) {
  ^bb0(%x: f32, %index: i32, %sum: f32):
    %v = linalg.index 2 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// -----

// Three short dimensions have 64 elements: reads at two indices, and four comparisons.
// CHECK-LABEL: func.func @short(
// CHECK: iterator_types = ["parallel", "reduction"]}
// CHECK: tensor.extract %arg0
func.func @short(%table: tensor<4x5x6xf32>, %a: tensor<9xi32>, %b: tensor<9xi32>, %c: tensor<9xi32>) -> tensor<9xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, u, v, w) -> (u, v, w)>, affine_map<(i, u, v, w) -> (i)>, affine_map<(i, u, v, w) -> (i)>,
                                        affine_map<(i, u, v, w) -> (i)>, affine_map<(i, u, v, w) -> (i)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%table, %a, %b, %c : tensor<4x5x6xf32>, tensor<9xi32>, tensor<9xi32>, tensor<9xi32>) outs(%zero : tensor<9xf32>) {
  ^bb0(%x: f32, %i: i32, %j: i32, %k: i32, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %u = linalg.index 1 : index
    %v = linalg.index 2 : index
    %w = linalg.index 3 : index
    %m = arith.index_cast %u : index to i32
    %n = arith.index_cast %v : index to i32
    %o = arith.index_cast %w : index to i32
    %p = arith.cmpi eq, %i, %m : i32
    %q = arith.cmpi eq, %j, %n : i32
    %r = arith.cmpi eq, %k, %o : i32
    %pq = arith.andi %p, %q : i1
    %here = arith.andi %pq, %r : i1
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// Rows cut unevenly: the sum skips the padding.
// CHECK-LABEL: func.func @padded(
// CHECK: iterator_types = ["parallel"]}
// CHECK: tensor.extract %arg0
func.func @padded(%table: tensor<17xf32>, %indices: tensor<9xi32>, %first: tensor<index>) -> tensor<9xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<9xf32>
  %begin = tensor.extract %first[] : tensor<index>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v) -> (v)>, affine_map<(i, v) -> (i)>, affine_map<(i, v) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%table, %indices : tensor<17xf32>, tensor<9xi32>) outs(%zero : tensor<9xf32>) {
  ^bb0(%x: f32, %index: i32, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %c50 = arith.constant 50 : index
    %v = linalg.index 1 : index
    %row = arith.addi %v, %begin : index
    %number = arith.index_cast %row : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    %inside = arith.cmpi slt, %row, %c50 : index
    %kept = arith.select %inside, %next, %sum : f32
    linalg.yield %kept : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}
