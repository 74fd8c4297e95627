// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// A reshape merges channels of a group, rows and columns of images whose rows are cut. Sums over the merged dimension are
// sums over the three: each device contributes those of its rows, and no image moves.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#all = affine_map<(d0, d1) -> (d0, d1)>
#groups = affine_map<(d0, d1) -> (d0)>
#ones = affine_map<(d0, d1) -> (d0, 0)>

// CHECK: total: 1 collective, 12 bytes on the wire
func.func @main(%x: tensor<8x8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<8x8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %0 = tensor.collapse_shape %x [[0, 1, 2]] : tensor<8x8x3xf32> into tensor<192xf32>
  %y = tensor.expand_shape %0 [[0, 1]] output_shape [2, 96] : tensor<192xf32> into tensor<2x96xf32>
  %zero = arith.constant dense<0.0> : tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#all, #groups], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<2x96xf32>) outs(%zero : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %mean = tensor.expand_shape %sum [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %init = tensor.empty() : tensor<2x96xf32>
  %z = linalg.generic {indexing_maps = [#all, #ones, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %mean : tensor<2x96xf32>, tensor<2x1xf32>) outs(%init : tensor<2x96xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %s = arith.subf %in, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x96xf32>
  %1 = tensor.collapse_shape %z [[0, 1]] : tensor<2x96xf32> into tensor<192xf32>
  %2 = tensor.expand_shape %1 [[0, 1, 2]] output_shape [8, 8, 3] : tensor<192xf32> into tensor<8x8x3xf32>
  return %2 : tensor<8x8x3xf32>
}
