// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function beams | FileCheck %s --check-prefix=BYTES
// RUN: tessera explain %s --function both | FileCheck %s --check-prefix=BOTH
// RUN: tessera run %s --function beams --check
// RUN: tessera run %s --function both --check
// RUN: tessera run %s --function ties --check

// The first elements of a dimension that merges several, of which an inner one is cut.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#id = affine_map<(i, j) -> (i, j)>

// First of each beam, then of these. The index is computed over both dimensions.
// CHECK-LABEL: func.func @beams(
// CHECK-SAME: %[[X:[^:]*]]: tensor<5x3x1002xf32>
// CHECK-NOT: tensor<5x3006x
// CHECK: %[[I:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<5x3x1002xi32>)
// CHECK: arith.muli
// CHECK: %[[FIRST:.*]]:2 = ext.sort dim = 2 keys = 1 descending limit = 2 ins(%[[X]], %[[I]] : {{.*}})
// CHECK-DAG: %[[V:.*]] = tensor.collapse_shape %[[FIRST]]#0 {{\[\[}}0], [1, 2]] : tensor<5x3x2xf32> into tensor<5x6xf32>
// CHECK-DAG: %[[P:.*]] = tensor.collapse_shape %[[FIRST]]#1 {{\[\[}}0], [1, 2]] : tensor<5x3x2xi32> into tensor<5x6xi32>
// CHECK: ext.sort dim = 1 keys = 1 descending limit = 2 ins(%[[V]], %[[P]] : {{.*}})
// Two candidates of each beam and device, with their indices: 5 * 3 * 2 * 4 bytes from each of three devices.
// BYTES: all_gather {{.*}} f32 {{.*}} 360 on the wire
// BYTES: all_gather {{.*}} i32 {{.*}} 360 on the wire
// BYTES: total: 2 collectives, 720 bytes
func.func @beams(%x: tensor<5x3x1002xf32> {dist.sharding = #dist.sharding<@line, [shard(2)]>})
    -> (tensor<5x2xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}, tensor<5x2xi32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %merged = tensor.collapse_shape %x [[0], [1, 2]] : tensor<5x3x1002xf32> into tensor<5x3006xf32>
  %e = tensor.empty() : tensor<5x3006xi32>
  %i = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<5x3006xi32>) {
  ^bb0(%out: i32):
    %n = linalg.index 1 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<5x3006xi32>
  %values, %places = ext.sort dim = 1 keys = 1 descending limit = 2 ins(%merged, %i : tensor<5x3006xf32>, tensor<5x3006xi32>)
  return %values, %places : tensor<5x2xf32>, tensor<5x2xi32>
}

// Equal elements keep their order, within and between the rows of the inner dimension.
// CHECK-LABEL: func.func @ties(
// CHECK: ext.sort dim = 1 keys = 1 limit = 7
// CHECK: ext.sort dim = 0 keys = 1 limit = 7
func.func @ties(%x: tensor<4x10xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}, %order: tensor<40xi32>)
    -> (tensor<7xf32>, tensor<7xi32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x10xf32>
  %signs = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x10xf32>) outs(%e : tensor<4x10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %is = arith.cmpf olt, %in, %zero : f32
    %sign = arith.uitofp %is : i1 to f32
    linalg.yield %sign : f32
  } -> tensor<4x10xf32>
  %merged = tensor.collapse_shape %signs [[0, 1]] : tensor<4x10xf32> into tensor<40xf32>
  %values, %places = ext.sort dim = 0 keys = 1 limit = 7 ins(%merged, %order : tensor<40xf32>, tensor<40xi32>)
  return %values, %places : tensor<7xf32>, tensor<7xi32>
}

// The outer dimension is cut: the merged one is, too, and its parts are the rows.
// CHECK-LABEL: func.func @outer(
// CHECK: ext.sort dim = 1 keys = 1 limit = 2 ins(%arg0 : tensor<4x10xf32>)
// CHECK: ext.sort dim = 0 keys = 1 limit = 2 ins(%{{.*}} : tensor<8xf32>)
func.func @outer(%x: tensor<4x10xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<2xf32> {
  %merged = tensor.collapse_shape %x [[0, 1]] : tensor<4x10xf32> into tensor<40xf32>
  %values = ext.sort dim = 0 keys = 1 limit = 2 ins(%merged : tensor<40xf32>)
  return %values : tensor<2xf32>
}

// A dimension that is cut: the first of each part, then of these, which are sent to the rows that a device wants. Nobody
// reads the indices.
// CHECK-LABEL: func.func @both(
// CHECK: %[[P:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [16, 4, 25]
// CHECK: %[[FIRST:.*]] = ext.sort dim = 2 keys = 1 descending limit = 2 ins(%[[P]] : tensor<16x4x25xf32>)
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[FIRST]] {{\[\[}}0], [1, 2]] : tensor<16x4x2xf32> into tensor<16x8xf32>
// CHECK: ext.sort dim = 1 keys = 1 descending limit = 2 ins(%[[V]] : tensor<16x8xf32>)
// Two candidates for each of four rows, to each of three devices: 4 * 2 * 4 * 3 bytes.
// BOTH: all_to_all {{.*}} f32 {{.*}} 96 on the wire
// BOTH: total: 1 collective, 96 bytes
func.func @both(%x: tensor<16x100xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<16x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16x100xi32>
  %i = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<16x100xi32>) {
  ^bb0(%out: i32):
    %n = linalg.index 1 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16x100xi32>
  %values, %places = ext.sort dim = 1 keys = 1 descending limit = 2 ins(%x, %i : tensor<16x100xf32>, tensor<16x100xi32>)
  return %values : tensor<16x2xf32>
}
