// Two dense layers, forward, data parallel: the batch is cut, everything else is whole on every device.
// By hand: no collective. The rows of the batch are independent.

dist.process_mesh @pod(shape = [8], dim_names = ["dp"])

#rows = affine_map<(b, n) -> (b, n)>
#bias = affine_map<(b, n) -> (n)>

func.func @main(%x: tensor<64x1024xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0)]>},
                %w0: tensor<1024x4096xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %b0: tensor<4096xf32> {dist.name = "b0", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %w1: tensor<4096x1024xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@pod, [replicate]>},
                %b1: tensor<1024xf32> {dist.name = "b1", dist.sharding = #dist.sharding<@pod, [replicate]>})
    -> (tensor<64x1024xf32> {dist.name = "y", dist.sharding = #dist.sharding<@pod, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32

  // h = relu(x w0 + b0)
  %e0 = tensor.empty() : tensor<64x4096xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %m0 = linalg.matmul ins(%x, %w0 : tensor<64x1024xf32>, tensor<1024x4096xf32>) outs(%f0 : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %h = linalg.generic {indexing_maps = [#rows, #bias, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m0, %b0 : tensor<64x4096xf32>, tensor<4096xf32>) outs(%e0 : tensor<64x4096xf32>) {
  ^bb0(%m: f32, %b: f32, %out: f32):
    %s = arith.addf %m, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<64x4096xf32>

  // y = h w1 + b1
  %e1 = tensor.empty() : tensor<64x1024xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %m1 = linalg.matmul ins(%h, %w1 : tensor<64x4096xf32>, tensor<4096x1024xf32>) outs(%f1 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %y = linalg.generic {indexing_maps = [#rows, #bias, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m1, %b1 : tensor<64x1024xf32>, tensor<1024xf32>) outs(%e1 : tensor<64x1024xf32>) {
  ^bb0(%m: f32, %b: f32, %out: f32):
    %s = arith.addf %m, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  return %y : tensor<64x1024xf32>
}
