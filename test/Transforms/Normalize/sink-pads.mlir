// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function stencil --check
// RUN: tessera run %s --function steps --check
// RUN: tessera run %s --function grouped --check
// RUN: tessera run %s --function half --check
// RUN: tessera explain %s --function half | FileCheck %s --check-prefix=SLICED

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// A stencil reads shifted rows and shifted columns of a padded grid. Each becomes a shift of the
// grid: for rows a neighbor sends one row, for columns nothing is sent.
// CHECK-LABEL: func.func @stencil(
// CHECK-NOT: tensor.pad
// CHECK: dist.rearrange %arg0 dim = 0 segments = [0, 1, 1, 1, 7] fill = 0.000000e+00
// CHECK: dist.rearrange %arg0 dim = 0 segments = [1, 1, 0, 1, 7] fill = 0.000000e+00
// CHECK: dist.rearrange %arg0 dim = 1 segments = [0, 1, 1, 1, 4] fill = 0.000000e+00
// SENT-LABEL: func.func @stencil(
// SENT-COUNT-2: dist.exchange
// SENT-NOT: dist.exchange
// SENT: return
func.func @stencil(%x: tensor<8x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x5xf32> to tensor<10x7xf32>
  %up = tensor.extract_slice %p[0, 1] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %down = tensor.extract_slice %p[2, 1] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %left = tensor.extract_slice %p[1, 0] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %a = arith.addf %up, %down : tensor<8x5xf32>
  %b = arith.mulf %a, %left : tensor<8x5xf32>
  return %b : tensor<8x5xf32>
}

// A corner with strides: each dimension has its border and stride, and all have the pad's value.
// CHECK-LABEL: func.func @steps(
// CHECK: %[[ROWS:.*]] = dist.rearrange %arg0 dim = 0 segments = [1, 3, 1, 1, 3] fill = 2.000000e+00 : f32 : (tensor<8x5xf32>) -> tensor<4x5xf32>
// CHECK: dist.rearrange %[[ROWS]] dim = 1 segments = [0, 2, 0, 1, 3] fill = 2.000000e+00 : f32 : (tensor<4x5xf32>) -> tensor<4x4xf32>
func.func @steps(%x: tensor<8x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<4x4xf32> {
  %two = arith.constant 2.0 : f32
  %p = tensor.pad %x low[2, 1] high[1, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %two : f32
  } : tensor<8x5xf32> to tensor<11x8xf32>
  %y = tensor.extract_slice %p[0, 1] [4, 4] [3, 2] : tensor<11x8xf32> to tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A grouped convolution splits the channels after the pad; it only needs a border of rows.
// CHECK-LABEL: func.func @grouped(
// CHECK: %[[GROUPS:.*]] = tensor.expand_shape %arg0
// CHECK: tensor.pad %[[GROUPS]] low[1, 0, 0] high[1, 0, 0]
// SENT-LABEL: func.func @grouped(
// SENT: dist.halo_exchange
// SENT-NOT: dist.exchange
// SENT: return
func.func @grouped(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<3x2x3xf32>)
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x6xf32> to tensor<10x6xf32>
  %g = tensor.expand_shape %p [[0], [1, 2]] output_shape [10, 2, 3] : tensor<10x6xf32> into tensor<10x2x3xf32>
  %init = arith.constant dense<0.0> : tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, g, k, c) -> (i + k, g, c)>, affine_map<(i, g, k, c) -> (k, g, c)>,
                                        affine_map<(i, g, k, c) -> (i, g)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%g, %w : tensor<10x2x3xf32>, tensor<3x2x3xf32>) outs(%init : tensor<8x2xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// A pad of a dimension that the reshape merges stays before it.
// CHECK-LABEL: func.func @joined(
// CHECK: tensor.pad %arg0
// CHECK: tensor.collapse_shape
func.func @joined(%x: tensor<4x3xf32>) -> tensor<20xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x5xf32>
  %y = tensor.collapse_shape %p [[0, 1]] : tensor<4x5xf32> into tensor<20xf32>
  return %y : tensor<20xf32>
}

// Half of the columns is shifted by a row, as in gradients of windows of blocks: they are sliced first,
// so that a neighbor sends half of a row.
// CHECK-LABEL: func.func @half(
// CHECK: %[[HALF:.*]] = tensor.extract_slice %arg0[0, 0] [8, 3] [1, 1]
// CHECK: dist.rearrange %[[HALF]] dim = 0 segments = [1, 1, 0, 1, 7] fill = 0.000000e+00
// SLICED: total: 1 collective, 12 bytes on the wire
func.func @half(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %left = tensor.extract_slice %x[0, 0] [8, 3] [1, 1] : tensor<8x6xf32> to tensor<8x3xf32>
  %right = tensor.extract_slice %x[0, 3] [8, 3] [1, 1] : tensor<8x6xf32> to tensor<8x3xf32>
  %p = tensor.pad %left low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x3xf32> to tensor<9x3xf32>
  %shifted = tensor.extract_slice %p[1, 0] [8, 3] [1, 1] : tensor<9x3xf32> to tensor<8x3xf32>
  %y = arith.addf %shifted, %right : tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}
