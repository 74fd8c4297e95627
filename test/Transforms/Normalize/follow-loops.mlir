// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function looked_up | FileCheck %s --check-prefix=BYTES
// RUN: tessera explain %s --function scattered | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function looked_up --check
// RUN: tessera run %s --function scattered --check
// RUN: tessera explain %s --function diagonal | FileCheck %s --check-prefix=DIAGONAL
// RUN: tessera run %s --function beyond --check
// RUN: tessera run %s --function diagonal --check

// An element of each row, x[arange(n), i], and its derivative: the row of the look-up is that of
// the result, so it needs no search, and a device has the rows that it needs.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @looked_up(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0
// BYTES: total: 0 collectives
func.func @looked_up(%x: tensor<16x12xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                     %i: tensor<16xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<16xi32>) {
  ^bb0(%out: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    linalg.yield %b : i32
  } -> tensor<16xi32>
  %r = tensor.expand_shape %rows [[0, 1]] output_shape [16, 1] : tensor<16xi32> into tensor<16x1xi32>
  %c = tensor.expand_shape %i [[0, 1]] output_shape [16, 1] : tensor<16xi32> into tensor<16x1xi32>
  %both = tensor.concat dim(1) %r, %c : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x2xi32>
  %row = tensor.extract_slice %both[0, 0] [16, 1] [1, 1] : tensor<16x2xi32> to tensor<16x1xi32>
  %column = tensor.extract_slice %both[0, 1] [16, 1] [1, 1] : tensor<16x2xi32> to tensor<16x1xi32>
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, r, c) -> (r, c)>, affine_map<(b, r, c) -> (b, 0)>,
                                        affine_map<(b, r, c) -> (b, 0)>, affine_map<(b, r, c) -> (b)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %row, %column : tensor<16x12xf32>, tensor<16x1xi32>, tensor<16x1xi32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%element: f32, %at0: i32, %at1: i32, %sum: f32):
    %i0 = linalg.index 1 : index
    %j0 = arith.index_cast %i0 : index to i32
    %is0 = arith.cmpi eq, %at0, %j0 : i32
    %i1 = linalg.index 2 : index
    %j1 = arith.index_cast %i1 : index to i32
    %is1 = arith.cmpi eq, %at1, %j1 : i32
    %is = arith.andi %is0, %is1 : i1
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %element, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// CHECK-LABEL: func.func @scattered(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%arg1
func.func @scattered(%x: tensor<14x12xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                     %u: tensor<14xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                     %i: tensor<14xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<14x12xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %y = linalg.generic {indexing_maps = [affine_map<(r, c, b) -> (b)>, affine_map<(r, c, b) -> (b)>, affine_map<(r, c, b) -> (r, c)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %i : tensor<14xf32>, tensor<14xi32>) outs(%x : tensor<14x12xf32>) {
  ^bb0(%element: f32, %at1: i32, %sum: f32):
    %i0 = linalg.index 0 : index
    %i2 = linalg.index 2 : index
    %is0 = arith.cmpi eq, %i2, %i0 : index
    %i1 = linalg.index 1 : index
    %j1 = arith.index_cast %i1 : index to i32
    %is1 = arith.cmpi eq, %at1, %j1 : i32
    %is = arith.andi %is0, %is1 : i1
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %element, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<14x12xf32>
  return %y : tensor<14x12xf32>
}

// Row b + 1 of the last b is out of bounds and yields nothing, so it needs a search.
// CHECK-LABEL: func.func @beyond(
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @beyond(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, r) -> (r)>, affine_map<(b, r) -> (b)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16xf32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %b = linalg.index 0 : index
    %one = arith.constant 1 : index
    %b1 = arith.addi %b, %one : index
    %r = linalg.index 1 : index
    %is = arith.cmpi eq, %b1, %r : index
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %element, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// The first rows of a longer table are sliced: a loop that reads a dimension has its extent.
// CHECK-LABEL: func.func @first_rows(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0[0, 0] [6, 16] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[S]] : tensor<6x16xf32>
func.func @first_rows(%t: tensor<12x16xf32>, %init: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %e = tensor.empty() : tensor<6xi64>
  %i = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<6xi64>) {
  ^bb0(%out: i64):
    %b = linalg.index 0 : index
    %p = arith.index_cast %b : index to i64
    linalg.yield %p : i64
  } -> tensor<6xi64>
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %i : tensor<12x16xf32>, tensor<6xi64>) outs(%init : tensor<6x16xf32>) {
  ^bb0(%in: f32, %at: i64, %out: f32):
    %row = linalg.index 2 : index
    %rowi = arith.index_cast %row : index to i64
    %hit = arith.cmpi eq, %at, %rowi : i64
    %s = arith.select %hit, %in, %zero : f32
    %sum = arith.addf %out, %s : f32
    linalg.yield %sum : f32
  } -> tensor<6x16xf32>
  return %r : tensor<6x16xf32>
}

// The diagonal, x[arange(n), arange(n)]: one loop is that of the result, the other stays; read as x[b, b], rows alone would
// be of no use to a device.
// CHECK-LABEL: func.func @diagonal(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0
// DIAGONAL: total: 0 collectives
func.func @diagonal(%x: tensor<16x16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %i = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<16xi32>) {
  ^bb0(%out: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    linalg.yield %b : i32
  } -> tensor<16xi32>
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, r, c) -> (r, c)>, affine_map<(b, r, c) -> (b)>,
                                        affine_map<(b, r, c) -> (b)>, affine_map<(b, r, c) -> (b)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %i, %i : tensor<16x16xf32>, tensor<16xi32>, tensor<16xi32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%element: f32, %at0: i32, %at1: i32, %sum: f32):
    %i0 = linalg.index 1 : index
    %j0 = arith.index_cast %i0 : index to i32
    %same0 = arith.cmpi eq, %at0, %j0 : i32
    %i1 = linalg.index 2 : index
    %j1 = arith.index_cast %i1 : index to i32
    %same1 = arith.cmpi eq, %at1, %j1 : i32
    %same = arith.andi %same0, %same1 : i1
    %none = arith.constant 0.0 : f32
    %term = arith.select %same, %element, %none : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}
