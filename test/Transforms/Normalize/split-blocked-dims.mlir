// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function gated --check
// RUN: tessera run %s --function whole --check
// RUN: tessera run %s --function few_rows --check
// RUN: tessera run %s --function gradients --check
// RUN: tessera run %s --function read_cut --check
// RUN: tessera run %s --function reshaped --check
// RUN: tessera run %s --function heads --check

dist.process_mesh @m(shape = [4], dim_names = ["tp"])

// Two products with one weight, whose columns are two blocks. The weight is exchanged, the blocks
// of the result are not.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x8xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x32xf32>
// CHECK-DAG: %[[BLOCKS:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0], [1, 2]] {{.*}} {dist.blocks} : tensor<8x32xf32> into tensor<8x2x16xf32>
// CHECK-DAG: tensor.expand_shape {{.*}} {dist.blocks} : tensor<32xf32> into tensor<2x16xf32>
// CHECK: linalg.contract {{.*}} ins(%[[X]], %[[BLOCKS]] : {{.*}} -> tensor<64x2x16xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0] [64, 1, 16]
// SENT-LABEL: func.func @gated(
// SENT-NOT: dist.all
// SENT: dist.exchange %arg2, %arg2, %arg1, %arg1 from
// SENT: linalg.contract
// SENT-NOT: dist.exchange
// SENT: return
func.func @gated(%x: tensor<64x8xf32>, %w: tensor<8x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                 %b: tensor<32xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x32xf32>) outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %biased = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<64x32xf32>, tensor<32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%one: f32, %other: f32, %out: f32):
    %sum = arith.addf %one, %other : f32
    linalg.yield %sum : f32
  } -> tensor<64x32xf32>
  %gate = tensor.extract_slice %biased[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %up = tensor.extract_slice %biased[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %t = math.tanh %gate : tensor<64x16xf32>
  %y = arith.mulf %t, %up : tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// The weight is not cut: it stays unchanged.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT: dist.blocks
// SENT-LABEL: func.func @whole(
func.func @whole(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<8x32xf32>) -> tensor<64x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x32xf32>) outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %gate = tensor.extract_slice %p[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %up = tensor.extract_slice %p[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %y = arith.mulf %gate, %up : tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// The weight is larger than the blocks: the blocks are exchanged.
// CHECK-LABEL: func.func @few_rows(
// CHECK-NOT: dist.blocks
// SENT-LABEL: func.func @few_rows(
func.func @few_rows(%x: tensor<2x8xf32>, %w: tensor<8x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<2x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<2x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<2x8xf32>, tensor<8x32xf32>) outs(%zero : tensor<2x32xf32>) -> tensor<2x32xf32>
  %gate = tensor.extract_slice %p[0, 0] [2, 16] [1, 1] : tensor<2x32xf32> to tensor<2x16xf32>
  %up = tensor.extract_slice %p[0, 16] [2, 16] [1, 1] : tensor<2x32xf32> to tensor<2x16xf32>
  %y = arith.mulf %gate, %up : tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

// The gradients of three blocks, concatenated before the products that read them.
// CHECK-LABEL: func.func @gradients(
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<64x3x8xf32>
// CHECK: linalg.contract {{.*}} -> tensor<64x8xf32>
// CHECK: %[[DW:.*]] = linalg.contract {{.*}} -> tensor<8x3x8xf32>
// CHECK: tensor.collapse_shape %[[DW]] {{.*}} {dist.blocks} : tensor<8x3x8xf32> into tensor<8x24xf32>
// SENT-LABEL: func.func @gradients(
func.func @gradients(%x: tensor<64x8xf32>, %w: tensor<8x24xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                     %dq: tensor<64x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                     %dk: tensor<64x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                     %dv: tensor<64x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<64x8xf32>, tensor<8x24xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %d = tensor.concat dim(1) %dq, %dk, %dv : (tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x24xf32>
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %dx = linalg.contract indexing_maps = [affine_map<(t, c, j) -> (t, j)>, affine_map<(t, c, j) -> (c, j)>, affine_map<(t, c, j) -> (t, c)>]
      ins(%d, %w : tensor<64x24xf32>, tensor<8x24xf32>) outs(%zero : tensor<64x8xf32>) -> tensor<64x8xf32>
  %none = arith.constant dense<0.0> : tensor<8x24xf32>
  %dw = linalg.contract indexing_maps = [affine_map<(c, j, t) -> (t, c)>, affine_map<(c, j, t) -> (t, j)>, affine_map<(c, j, t) -> (c, j)>]
      ins(%x, %d : tensor<64x8xf32>, tensor<64x24xf32>) outs(%none : tensor<8x24xf32>) -> tensor<8x24xf32>
  return %dx, %dw : tensor<64x8xf32>, tensor<8x24xf32>
}

// What reads the blocks is cut: the whole weight has them in a dimension, without an exchange. The
// gradients are padded and added, as those of slices are, which is a concatenation.
// CHECK-LABEL: func.func @read_cut(
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x8xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x32xf32>
// CHECK-DAG: %[[BLOCKS:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0], [1, 2]] output_shape [8, 2, 16] : tensor<8x32xf32> into tensor<8x2x16xf32>
// CHECK: linalg.contract {{.*}} ins(%[[X]], %[[BLOCKS]] : {{.*}} -> tensor<64x2x16xf32>
// CHECK-NOT: tensor.pad
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<64x2x16xf32>
// CHECK: %[[DW:.*]] = linalg.contract {{.*}} -> tensor<8x2x16xf32>
// CHECK: tensor.collapse_shape %[[DW]] {{.*}} {dist.blocks} : tensor<8x2x16xf32> into tensor<8x32xf32>
// SENT-LABEL: func.func @read_cut(
// SENT-NOT: dist.exchange
// SENT: dist.all_reduce {{.*}} : tensor<64x8xf32>
// SENT: dist.exchange {{.*}}global_types = [tensor<8x16xf32>, tensor<8x16xf32>]
// SENT-NOT: dist.exchange
// SENT: return
func.func @read_cut(%x: tensor<64x8xf32>, %w: tensor<8x32xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                    %down: tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<8x32xf32>) {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x32xf32>) outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %gate = tensor.extract_slice %p[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %up = tensor.extract_slice %p[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %h = arith.mulf %gate, %up : tensor<64x16xf32>
  %none = arith.constant dense<0.0> : tensor<64x8xf32>
  %y = linalg.matmul ins(%h, %down : tensor<64x16xf32>, tensor<16x8xf32>) outs(%none : tensor<64x8xf32>) -> tensor<64x8xf32>
  %nothing = arith.constant 0.0 : f32
  %dgate = math.exp %up : tensor<64x16xf32>
  %dup = math.exp %gate : tensor<64x16xf32>
  %first = tensor.pad %dgate low[0, 0] high[0, 16] {
  ^bb0(%i: index, %j: index):
    tensor.yield %nothing : f32
  } : tensor<64x16xf32> to tensor<64x32xf32>
  %second = tensor.pad %dup low[0, 16] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %nothing : f32
  } : tensor<64x16xf32> to tensor<64x32xf32>
  %d = arith.addf %second, %first : tensor<64x32xf32>
  %empty = arith.constant dense<0.0> : tensor<8x32xf32>
  %dw = linalg.contract indexing_maps = [affine_map<(c, j, t) -> (t, c)>, affine_map<(c, j, t) -> (t, j)>, affine_map<(c, j, t) -> (c, j)>]
      ins(%x, %d : tensor<64x8xf32>, tensor<64x32xf32>) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y, %dw : tensor<64x8xf32>, tensor<8x32xf32>
}

// A reshape to three blocks of four heads, which the last weight cuts.
// CHECK-LABEL: func.func @reshaped(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [8, 3, 16] {dist.blocks}
// CHECK: %[[P:.*]] = linalg.contract {{.*}} -> tensor<64x3x16xf32>
// CHECK: tensor.expand_shape %[[P]] {{\[\[}}0], [1], [2, 3]] output_shape [64, 3, 4, 4]
// SENT-LABEL: func.func @reshaped(
// SENT: dist.exchange {{.*}}global_types = [tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>]
// SENT-NOT: dist.exchange
// SENT: dist.all_reduce
// SENT-NOT: dist.exchange
// SENT: return
func.func @reshaped(%x: tensor<64x8xf32>, %w: tensor<8x48xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                    %out: tensor<4x4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x3x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x48xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x48xf32>) outs(%zero : tensor<64x48xf32>) -> tensor<64x48xf32>
  %heads = tensor.expand_shape %p [[0], [1, 2, 3]] output_shape [64, 3, 4, 4] : tensor<64x48xf32> into tensor<64x3x4x4xf32>
  %t = math.tanh %heads : tensor<64x3x4x4xf32>
  %none = arith.constant dense<0.0> : tensor<64x3x8xf32>
  %y = linalg.contract indexing_maps = [affine_map<(t, b, c, h, e) -> (t, b, h, e)>, affine_map<(t, b, c, h, e) -> (h, e, c)>,
                                        affine_map<(t, b, c, h, e) -> (t, b, c)>]
      ins(%t, %out : tensor<64x3x4x4xf32>, tensor<4x4x8xf32>) outs(%none : tensor<64x3x8xf32>) -> tensor<64x3x8xf32>
  return %y : tensor<64x3x8xf32>
}

// Six heads over four devices: nothing cuts their elements, so they stay merged.
// CHECK-LABEL: func.func @heads(
// CHECK-NOT: dist.blocks
// SENT-LABEL: func.func @heads(
func.func @heads(%x: tensor<64x8xf32>, %w: tensor<8x24xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> tensor<64x6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x24xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x24xf32>) outs(%zero : tensor<64x24xf32>) -> tensor<64x24xf32>
  %heads = tensor.expand_shape %p [[0], [1, 2]] output_shape [64, 6, 4] : tensor<64x24xf32> into tensor<64x6x4xf32>
  %t = math.tanh %heads : tensor<64x6x4xf32>
  return %t : tensor<64x6x4xf32>
}
