// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function nearest | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function nearest --check
// RUN: tessera run %s --function three_halves --check
// RUN: tessera run %s --function blocks --check

// Look-ups at indices known at compile time: repeated elements, alternating runs, consecutive runs.
// The elements of a cut table that a device needs are known.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0) -> (d0)>
#table = affine_map<(d0, d1, d2) -> (d2, d1)>
#index = affine_map<(d0, d1, d2) -> (d0)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @nearest(
// CHECK: %[[TWICE:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<8x3xf32>) outs(%{{.*}} : tensor<8x2x3xf32>)
// CHECK: tensor.collapse_shape %[[TWICE]] {{\[\[}}0, 1], [2]] : tensor<8x2x3xf32> into tensor<16x3xf32>
// BYTES: total: 0 collectives
func.func @nearest(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %half = arith.constant dense<0.5> : tensor<16xf32>
  %i = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%half : tensor<16xf32>) outs(%e : tensor<16xi32>) {
  ^bb0(%scale: f32, %out: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    %c = arith.sitofp %b : i32 to f32
    %d = arith.mulf %c, %scale : f32
    %f = math.floor %d : f32
    %g = arith.fptosi %f : f32 to i32
    linalg.yield %g : i32
  } -> tensor<16xi32>
  %zero = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#table, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %i : tensor<8x3xf32>, tensor<16xi32>) outs(%zero : tensor<16x3xf32>) {
  ^bb0(%row: f32, %at: i32, %sum: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// CHECK-LABEL: func.func @three_halves(
// CHECK: dist.rearrange %arg0, %arg0, %arg0 dim = 0 segments = [0, 2, 0, 3, 4, 0, 2, 1, 3, 4, 1, 2, 2, 3, 4]
func.func @three_halves(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<12x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = arith.constant dense<[0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]> : tensor<12xi32>
  %zero = arith.constant dense<0.0> : tensor<12x3xf32>
  %y = linalg.generic {indexing_maps = [#table, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %i : tensor<8x3xf32>, tensor<12xi32>) outs(%zero : tensor<12x3xf32>) {
  ^bb0(%row: f32, %at: i32, %sum: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<12x3xf32>
  return %y : tensor<12x3xf32>
}

// CHECK-LABEL: func.func @blocks(
// CHECK: dist.rearrange %arg0, %arg0, %arg0 dim = 0 segments = [4, 1, 0, 1, 4, 0, 1, 6, -1, 3, 6, 1, 7, 1, 1]
func.func @blocks(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = arith.constant dense<[4, 5, 6, 7, 2, 1, 0, 6]> : tensor<8xi32>
  %zero = arith.constant dense<0.0> : tensor<8x3xf32>
  %y = linalg.generic {indexing_maps = [#table, #index, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %i : tensor<8x3xf32>, tensor<8xi32>) outs(%zero : tensor<8x3xf32>) {
  ^bb0(%row: f32, %at: i32, %sum: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %row, %none : f32
    %next = arith.addf %sum, %taken : f32
    linalg.yield %next : f32
  } -> tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}
