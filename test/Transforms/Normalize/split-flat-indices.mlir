// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function read | FileCheck %s --check-prefix=READ
// RUN: tessera explain %s --function added | FileCheck %s --check-prefix=READ
// RUN: tessera explain %s --function repeated | FileCheck %s --check-prefix=READ
// RUN: tessera run %s --function read --check=interpreter
// RUN: tessera run %s --function added --check=interpreter
// RUN: tessera run %s --function repeated --check=interpreter
// RUN: tessera run %s --function unbounded --check=interpreter

// READ: total: 0 collectives

dist.process_mesh @m(shape = [4], dim_names = ["d"])

#all = affine_map<(d0, d1) -> (d0, d1)>
#place = affine_map<(s, d, v) -> (s)>
#table = affine_map<(s, d, v) -> (v, d)>
#rows = affine_map<(s, d, v) -> (s, d)>

// Element `column + 6 * row` of each row's six, the column clamped: loops over row, place and feature remain, and one
// that looks up the column.
// CHECK-LABEL: func.func @read(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, {{.*}} : tensor<8x6x3xf32>, tensor<8x2xi32>)
// CHECK: return
func.func @read(%x: tensor<8x6x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %column: tensor<8x2xi32> {dist.range = [-2, 9], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<16x3xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x6x3xf32> into tensor<48x3xf32>
  %empty = tensor.empty() : tensor<8x2xi32>
  %index = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%column : tensor<8x2xi32>) outs(%empty : tensor<8x2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %five = arith.constant 5 : i32
    %six = arith.constant 6 : i32
    %low = arith.maxsi %in, %zero : i32
    %c = arith.minsi %low, %five : i32
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i32
    %start = arith.muli %r, %six : i32
    %at = arith.addi %start, %c : i32
    linalg.yield %at : i32
  } -> tensor<8x2xi32>
  %places = tensor.collapse_shape %index [[0, 1]] : tensor<8x2xi32> into tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#table, #place, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%flat, %places : tensor<48x3xf32>, tensor<16xi32>) outs(%none : tensor<16x3xf32>) {
  ^bb0(%in: f32, %p: i32, %out: f32):
    %v = linalg.index 2 : index
    %n = arith.index_cast %v : index to i32
    %is = arith.cmpi eq, %p, %n : i32
    %no = arith.constant 0.0 : f32
    %e = arith.select %is, %in, %no : f32
    %s = arith.addf %out, %e : f32
    linalg.yield %s : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// The derivative: sums at these places, of each row by its own device.
// CHECK-LABEL: func.func @added(
// CHECK: iterator_types = ["reduction", "parallel", "parallel", "parallel"]
// CHECK: } -> tensor<8x6x3xf32>
// CHECK-NEXT: return
func.func @added(%u: tensor<8x2x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                 %column: tensor<8x2xi32> {dist.range = [-2, 9], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x6x3xf32> {
  %flat = tensor.collapse_shape %u [[0, 1], [2]] : tensor<8x2x3xf32> into tensor<16x3xf32>
  %empty = tensor.empty() : tensor<8x2xi32>
  %index = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%column : tensor<8x2xi32>) outs(%empty : tensor<8x2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %five = arith.constant 5 : i32
    %six = arith.constant 6 : i32
    %low = arith.maxsi %in, %zero : i32
    %c = arith.minsi %low, %five : i32
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i32
    %start = arith.muli %r, %six : i32
    %at = arith.addi %start, %c : i32
    linalg.yield %at : i32
  } -> tensor<8x2xi32>
  %places = tensor.collapse_shape %index [[0, 1]] : tensor<8x2xi32> into tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<48x3xf32>
  %y = linalg.generic {indexing_maps = [#rows, #place, #table], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%flat, %places : tensor<16x3xf32>, tensor<16xi32>) outs(%none : tensor<48x3xf32>) {
  ^bb0(%in: f32, %p: i32, %out: f32):
    %v = linalg.index 2 : index
    %n = arith.index_cast %v : index to i32
    %is = arith.cmpi eq, %p, %n : i32
    %no = arith.constant 0.0 : f32
    %e = arith.select %is, %in, %no : f32
    %s = arith.addf %out, %e : f32
    linalg.yield %s : f32
  } -> tensor<48x3xf32>
  %wide = tensor.expand_shape %y [[0, 1], [2]] output_shape [8, 6, 3] : tensor<48x3xf32> into tensor<8x6x3xf32>
  return %wide : tensor<8x6x3xf32>
}

// Rows that are repeated for each place are known once the places are apart from the rows.
// CHECK-LABEL: func.func @repeated(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0,
func.func @repeated(%x: tensor<8x6x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                    %column: tensor<8x2xi32> {dist.range = [0, 6], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x2x3xf32> {
  %empty = tensor.empty() : tensor<8x2xi32>
  %numbers = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<8x2xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i32
    linalg.yield %r : i32
  } -> tensor<8x2xi32>
  %row = tensor.collapse_shape %numbers [[0, 1]] : tensor<8x2xi32> into tensor<16xi32>
  %places = tensor.collapse_shape %column [[0, 1]] : tensor<8x2xi32> into tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(s, d, r, c) -> (r, c, d)>, affine_map<(s, d, r, c) -> (s)>,
                                        affine_map<(s, d, r, c) -> (s)>, affine_map<(s, d, r, c) -> (s, d)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %row, %places : tensor<8x6x3xf32>, tensor<16xi32>, tensor<16xi32>) outs(%none : tensor<16x3xf32>) {
  ^bb0(%in: f32, %p: i32, %q: i32, %out: f32):
    %r = linalg.index 2 : index
    %n = arith.index_cast %r : index to i32
    %isRow = arith.cmpi eq, %p, %n : i32
    %c = linalg.index 3 : index
    %m = arith.index_cast %c : index to i32
    %isColumn = arith.cmpi eq, %q, %m : i32
    %is = arith.andi %isRow, %isColumn : i1
    %no = arith.constant 0.0 : f32
    %e = arith.select %is, %in, %no : f32
    %s = arith.addf %out, %e : f32
    linalg.yield %s : f32
  } -> tensor<16x3xf32>
  %wide = tensor.expand_shape %y [[0, 1], [2]] output_shape [8, 2, 3] : tensor<16x3xf32> into tensor<8x2x3xf32>
  return %wide : tensor<8x2x3xf32>
}

// A column that may be 6 is the first of the next row.
// CHECK-LABEL: func.func @unbounded(
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<48x3xf32>, tensor<8x2xi32>)
func.func @unbounded(%x: tensor<48x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                     %column: tensor<8x2xi32> {dist.range = [-2, 9], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x2x3xf32> {
  %empty = tensor.empty() : tensor<8x2xi32>
  %index = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%column : tensor<8x2xi32>) outs(%empty : tensor<8x2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %six = arith.constant 6 : i32
    %low = arith.maxsi %in, %zero : i32
    %c = arith.minsi %low, %six : i32
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i32
    %start = arith.muli %r, %six : i32
    %at = arith.addi %start, %c : i32
    linalg.yield %at : i32
  } -> tensor<8x2xi32>
  %none = arith.constant dense<0.0> : tensor<8x2x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, d, v) -> (v, d)>, affine_map<(b, m, d, v) -> (b, m)>, affine_map<(b, m, d, v) -> (b, m, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %index : tensor<48x3xf32>, tensor<8x2xi32>) outs(%none : tensor<8x2x3xf32>) {
  ^bb0(%in: f32, %p: i32, %out: f32):
    %v = linalg.index 3 : index
    %n = arith.index_cast %v : index to i32
    %is = arith.cmpi eq, %p, %n : i32
    %no = arith.constant 0.0 : f32
    %e = arith.select %is, %in, %no : f32
    %s = arith.addf %out, %e : f32
    linalg.yield %s : f32
  } -> tensor<8x2x3xf32>
  return %y : tensor<8x2x3xf32>
}
