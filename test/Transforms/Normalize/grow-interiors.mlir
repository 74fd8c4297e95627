// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function step --check
// RUN: tessera run %s --function ends --check
// RUN: tessera run %s --function masked --check
// RUN: tessera run %s --function gradient --check

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// The interior of a grid is computed for the whole grid and selected inside: two shifts are sent, together.
// CHECK-LABEL: func.func @step(
// CHECK-NOT: tensor.insert_slice
// CHECK-DAG: %[[DOWN:.*]] = dist.rearrange %arg0 dim = 0 segments = [0, 1, 1, 1, 15] fill = 0.000000e+00
// CHECK-DAG: %[[UP:.*]] = dist.rearrange %arg0 dim = 0 segments = [1, 1, 0, 1, 15] fill = 0.000000e+00
// CHECK: %[[GROWN:.*]] = linalg.generic {{.*}} ins(%[[DOWN]], %[[UP]], %arg1 : tensor<16x5xf32>, tensor<16x5xf32>, tensor<5xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[GROWN]] :
// CHECK: arith.select
// SENT-LABEL: func.func @step(
// SENT: dist.exchange %arg0, %arg0 from
// SENT-NOT: dist.exchange
// SENT: return
func.func @step(%u: tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %c: tensor<5xf32>)
    -> (tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %a = tensor.extract_slice %u[0, 0] [14, 5] [1, 1] : tensor<16x5xf32> to tensor<14x5xf32>
  %b = tensor.extract_slice %u[2, 0] [14, 5] [1, 1] : tensor<16x5xf32> to tensor<14x5xf32>
  %e = tensor.empty() : tensor<14x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c : tensor<14x5xf32>, tensor<14x5xf32>, tensor<5xf32>) outs(%e : tensor<14x5xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.mulf %s, %z : f32
    linalg.yield %m : f32
  } -> tensor<14x5xf32>
  %v = tensor.insert_slice %f into %u[1, 0] [14, 5] [1, 1] : tensor<14x5xf32> into tensor<16x5xf32>
  return %v : tensor<16x5xf32>
}

// The first element unchanged, then differences.
// CHECK-LABEL: func.func @ends(
// CHECK-NOT: tensor.concat
// CHECK: dist.rearrange %arg0 dim = 0 segments = [0, 1, 1, 1, 15] fill = 0.000000e+00
// CHECK: return
// SENT-LABEL: func.func @ends(
// SENT-COUNT-1: dist.exchange
// SENT-NOT: dist.exchange
// SENT: return
func.func @ends(%u: tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %first = tensor.extract_slice %u[0, 0] [1, 5] [1, 1] : tensor<16x5xf32> to tensor<1x5xf32>
  %a = tensor.extract_slice %u[0, 0] [15, 5] [1, 1] : tensor<16x5xf32> to tensor<15x5xf32>
  %b = tensor.extract_slice %u[1, 0] [15, 5] [1, 1] : tensor<16x5xf32> to tensor<15x5xf32>
  %d = arith.subf %b, %a : tensor<15x5xf32>
  %v = tensor.concat dim(0) %first, %d : (tensor<1x5xf32>, tensor<15x5xf32>) -> tensor<16x5xf32>
  return %v : tensor<16x5xf32>
}

// A box written back to its position: nothing is sent.
// CHECK-LABEL: func.func @masked(
// CHECK-NOT: tensor.pad
// CHECK: arith.select
// SENT-LABEL: func.func @masked(
// SENT-NOT: dist.exchange
// SENT: return
func.func @masked(%u: tensor<16x12xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x12xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %u[1, 1] [14, 10] [1, 1] : tensor<16x12xf32> to tensor<14x10xf32>
  %v = tensor.pad %a low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<14x10xf32> to tensor<16x12xf32>
  return %v : tensor<16x12xf32>
}

// The derivative of a stencil adds pads and drops their border: the slice moves to the pads.
// CHECK-LABEL: func.func @gradient(
// CHECK-NOT: tensor.pad
// CHECK-DAG: dist.rearrange %arg0 dim = 0 segments = [0, 1, 1, 1, 15]
// CHECK-DAG: dist.rearrange %arg0 dim = 1 segments = [1, 1, 0, 1, 4]
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @gradient(%g: tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.pad %g low[2, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<16x5xf32> to tensor<18x7xf32>
  %b = tensor.pad %g low[1, 0] high[1, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<16x5xf32> to tensor<18x7xf32>
  %s = arith.addf %a, %b : tensor<18x7xf32>
  %v = tensor.extract_slice %s[1, 1] [16, 5] [1, 1] : tensor<18x7xf32> to tensor<16x5xf32>
  return %v : tensor<16x5xf32>
}

// Quarters, rotated and joined, are not interiors: each would be computed four times.
// CHECK-LABEL: func.func @quarters(
// CHECK: tensor.concat
func.func @quarters(%u: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %a = tensor.extract_slice %u[0, 0] [4, 4] [1, 1] : tensor<16x4xf32> to tensor<4x4xf32>
  %b = tensor.extract_slice %u[4, 0] [4, 4] [1, 1] : tensor<16x4xf32> to tensor<4x4xf32>
  %s = arith.addf %a, %b : tensor<4x4xf32>
  %d = arith.subf %a, %b : tensor<4x4xf32>
  %p = arith.mulf %a, %b : tensor<4x4xf32>
  %q = arith.divf %a, %b : tensor<4x4xf32>
  %v = tensor.concat dim(0) %s, %d, %p, %q : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  return %v : tensor<16x4xf32>
}
