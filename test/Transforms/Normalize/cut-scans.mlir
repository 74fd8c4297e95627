// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" --dist-cut-scans | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" --dist-cut-scans=gathers-states | FileCheck %s --check-prefix=GATHERED
// RUN: tessera explain %s --function decayed | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function decayed --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function previous --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function bounded --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function scanned --check | FileCheck %s --check-prefix=VALUE

// Loops along a dimension that is cut over four devices. What is affine in the carry is computed in a block for each device.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// VALUE: check {{.*}} ok

// h' = a h + x: four blocks of 16 iterations, each from 0, with the product of the factors; a loop over the blocks; the blocks.
// CHECK-LABEL: func.func @decayed(
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2]] output_shape [4, 16, 8]
// CHECK: %[[ENDS:.*]]:2 = scf.for {{.*}} to %c16{{.*}} -> (tensor<4x8xf32>, tensor<4xf32>)
// CHECK: tensor.extract_slice %[[X]]{{.*}} [4, 1, 8] [1, 1, 1]
// CHECK: %[[STARTS:.*]]:2 = scf.for {{.*}} to %c4{{.*}} -> (tensor<8xf32>, tensor<4x8xf32>)
// CHECK: tensor.extract_slice %[[ENDS]]#0
// CHECK: tensor.extract_slice %[[ENDS]]#1
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} to %c16{{.*}} iter_args(%{{.*}} = %[[STARTS]]#1, {{.*}} -> (tensor<4x8xf32>, tensor<4x16x8xf32>)
// CHECK: tensor.collapse_shape %[[R]]#1
// GATHERED-LABEL: func.func @decayed(
// GATHERED: scf.for
// GATHERED: dist.shard_tensor
// GATHERED: dist.shard_tensor
// GATHERED: scf.for
// The state of each part, of 8 elements, and its factor to all, in place of 15 rows of each of three others.
// SENT: total: 1 collective, 108 bytes on the wire
func.func @decayed(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                   %a: tensor<64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<0.0> : tensor<8xf32>
  %stack = arith.constant dense<0.0> : tensor<64x8xf32>
  %r:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %none, %all = %stack) -> (tensor<8xf32>, tensor<64x8xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<64x8xf32> to tensor<1x8xf32>
    %b = tensor.collapse_shape %row [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
    %factor = tensor.extract_slice %a[%i] [1] [1] : tensor<64xf32> to tensor<1xf32>
    %empty = tensor.empty() : tensor<8xf32>
    %next = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>,
                                             affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%h, %factor, %b : tensor<8xf32>, tensor<1xf32>, tensor<8xf32>) outs(%empty : tensor<8xf32>) {
    ^bb0(%at: f32, %f: f32, %term: f32, %o: f32):
      %decayed = arith.mulf %at, %f : f32
      %sum = arith.addf %decayed, %term : f32
      linalg.yield %sum : f32
    } -> tensor<8xf32>
    %one = tensor.expand_shape %next [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
    %with = tensor.insert_slice %one into %all[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
    scf.yield %next, %with : tensor<8xf32>, tensor<64x8xf32>
  }
  return %r#1 : tensor<64x8xf32>
}

// Each row and the one behind it, from the last on: the first rows of the blocks are moved by one block.
// CHECK-LABEL: func.func @previous(
// CHECK: %[[ENDS:.*]] = scf.for {{.*}} to %c16{{.*}} -> (tensor<4x8xf32>)
// CHECK: %[[STARTS:.*]] = dist.rearrange %{{.*}}, %[[ENDS]] dim = 0 segments = [0, 1, 3, 1, 1, 1, 1, 0, 1, 3]
// CHECK: scf.for {{.*}} to %c16{{.*}} iter_args(%{{.*}} = %[[STARTS]]
func.func @previous(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<1.0> : tensor<8xf32>
  %stack = arith.constant dense<0.0> : tensor<64x8xf32>
  %r:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %none, %all = %stack) -> (tensor<8xf32>, tensor<64x8xf32>) {
    %at = arith.subi %c63, %i : index
    %row = tensor.extract_slice %x[%at, 0] [1, 8] [1, 1] : tensor<64x8xf32> to tensor<1x8xf32>
    %b = tensor.collapse_shape %row [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
    %product = arith.mulf %h, %b : tensor<8xf32>
    %one = tensor.expand_shape %product [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
    %with = tensor.insert_slice %one into %all[%at, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
    scf.yield %b, %with : tensor<8xf32>, tensor<64x8xf32>
  }
  return %r#1 : tensor<64x8xf32>
}

// Not affine: h' = tanh(h + x).
// CHECK-LABEL: func.func @bounded(
// CHECK: scf.for {{.*}} to %c64
// CHECK-NOT: scf.for
func.func @bounded(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<0.0> : tensor<8xf32>
  %r = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %none) -> (tensor<8xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<64x8xf32> to tensor<1x8xf32>
    %b = tensor.collapse_shape %row [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
    %sum = arith.addf %h, %b : tensor<8xf32>
    %next = math.tanh %sum : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What an iteration scans and sorts, it does in all blocks.
// CHECK-LABEL: func.func @scanned(
// CHECK: scf.for {{.*}} to %c16
// CHECK: ext.scan dim = 1 reverse ins({{.*}} : tensor<4x8xf32>)
// CHECK: ext.sort dim = 1 keys = 1 descending limit = 2 ins({{.*}} : tensor<4x8xf32>)
func.func @scanned(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<0.0> : tensor<2xf32>
  %stack = arith.constant dense<0.0> : tensor<64x2xf32>
  %r:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %none, %all = %stack) -> (tensor<2xf32>, tensor<64x2xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<64x8xf32> to tensor<8xf32>
    %sums = ext.scan dim = 0 reverse ins(%row : tensor<8xf32>) {
    ^bb0(%before: f32, %behind: f32):
      %sum = arith.addf %before, %behind : f32
      ext.yield %sum : f32
    }
    %top = ext.sort dim = 0 keys = 1 descending limit = 2 ins(%sums : tensor<8xf32>)
    %half = arith.constant dense<0.5> : tensor<2xf32>
    %kept = arith.mulf %h, %half : tensor<2xf32>
    %next = arith.addf %kept, %top : tensor<2xf32>
    %stacked = tensor.insert_slice %next into %all[%i, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<64x2xf32>
    scf.yield %next, %stacked : tensor<2xf32>, tensor<64x2xf32>
  }
  return %r#1 : tensor<64x2xf32>
}
