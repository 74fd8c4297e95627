// A small convnet on 32x32 images whose height is cut over 8 devices (4 rows each).
// By hand: each 3x3 convolution fetches one row from the device above and one from below (two slabs), the 2x2 pools fetch
// nothing because 4 and 2 rows are whole windows, and the classifier contracts over rows that lie apart: one all-reduce
// of the 16x10 logits. No annotation but that of the image.

dist.process_mesh @pod(shape = [8], dim_names = ["h"])

#bias = affine_map<(n, h, w, c) -> (c)>
#image = affine_map<(n, h, w, c) -> (n, h, w, c)>
#row = affine_map<(n, c) -> (c)>
#logits = affine_map<(n, c) -> (n, c)>

func.func @main(%x: tensor<16x32x32x3xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(1)]>},
                %c0: tensor<3x3x3x16xf32> {dist.name = "c0", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %b0: tensor<16xf32> {dist.name = "b0", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %c1: tensor<3x3x16x32xf32> {dist.name = "c1", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %b1: tensor<32xf32> {dist.name = "b1", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %w: tensor<2048x10xf32> {dist.name = "w"},
                %b: tensor<10xf32> {dist.name = "b", dist.sharding = #dist.sharding<@pod, [replicate]>})
    -> (tensor<16x10xf32> {dist.name = "logits", dist.sharding = #dist.sharding<@pod, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32

  // 3x3 convolution, padding 1, + bias, relu: 16x32x32x16
  %x1 = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<16x32x32x3xf32> to tensor<16x34x34x3xf32>
  %e1 = tensor.empty() : tensor<16x32x32x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x32x32x16xf32>) -> tensor<16x32x32x16xf32>
  %m1 = linalg.conv_2d_nhwc_hwcf ins(%x1, %c0 : tensor<16x34x34x3xf32>, tensor<3x3x3x16xf32>) outs(%f1 : tensor<16x32x32x16xf32>) -> tensor<16x32x32x16xf32>
  %h1 = linalg.generic {indexing_maps = [#image, #bias, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m1, %b0 : tensor<16x32x32x16xf32>, tensor<16xf32>) outs(%e1 : tensor<16x32x32x16xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %s = arith.addf %m, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<16x32x32x16xf32>

  // 2x2 max pool: 16x16x16x16
  %window = tensor.empty() : tensor<2x2xf32>
  %e2 = tensor.empty() : tensor<16x16x16x16xf32>
  %f2 = linalg.fill ins(%least : f32) outs(%e2 : tensor<16x16x16x16xf32>) -> tensor<16x16x16x16xf32>
  %p1 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%h1, %window : tensor<16x32x32x16xf32>, tensor<2x2xf32>) outs(%f2 : tensor<16x16x16x16xf32>) -> tensor<16x16x16x16xf32>

  // 3x3 convolution, padding 1, + bias, relu: 16x16x16x32
  %x2 = tensor.pad %p1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<16x16x16x16xf32> to tensor<16x18x18x16xf32>
  %e3 = tensor.empty() : tensor<16x16x16x32xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<16x16x16x32xf32>) -> tensor<16x16x16x32xf32>
  %m2 = linalg.conv_2d_nhwc_hwcf ins(%x2, %c1 : tensor<16x18x18x16xf32>, tensor<3x3x16x32xf32>) outs(%f3 : tensor<16x16x16x32xf32>) -> tensor<16x16x16x32xf32>
  %h2 = linalg.generic {indexing_maps = [#image, #bias, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m2, %b1 : tensor<16x16x16x32xf32>, tensor<32xf32>) outs(%e3 : tensor<16x16x16x32xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %s = arith.addf %m, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<16x16x16x32xf32>

  // 2x2 max pool: 16x8x8x32
  %e4 = tensor.empty() : tensor<16x8x8x32xf32>
  %f4 = linalg.fill ins(%least : f32) outs(%e4 : tensor<16x8x8x32xf32>) -> tensor<16x8x8x32xf32>
  %p2 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%h2, %window : tensor<16x16x16x32xf32>, tensor<2x2xf32>) outs(%f4 : tensor<16x8x8x32xf32>) -> tensor<16x8x8x32xf32>

  // logits = flat w + b; the rows of w follow the rows of the image.
  %flat = tensor.collapse_shape %p2 [[0], [1, 2, 3]] : tensor<16x8x8x32xf32> into tensor<16x2048xf32>
  %e5 = tensor.empty() : tensor<16x10xf32>
  %f5 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<16x10xf32>) -> tensor<16x10xf32>
  %m3 = linalg.matmul ins(%flat, %w : tensor<16x2048xf32>, tensor<2048x10xf32>) outs(%f5 : tensor<16x10xf32>) -> tensor<16x10xf32>
  %logits = linalg.generic {indexing_maps = [#logits, #row, #logits], iterator_types = ["parallel", "parallel"]}
      ins(%m3, %b : tensor<16x10xf32>, tensor<10xf32>) outs(%e5 : tensor<16x10xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %s = arith.addf %m, %bias : f32
    linalg.yield %s : f32
  } -> tensor<16x10xf32>
  return %logits : tensor<16x10xf32>
}
