dist.process_mesh @m(shape = SHAPE, dim_names = ["a", "b"])

func.func @main(%x: tensor<8x6xf32> {dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                %y: tensor<8x6xf32> {dist.name = "y", dist.sharding = #dist.sharding<@m, [shard(0), ?]>},
                %w: tensor<6x6xf32> {dist.name = "w", dist.sharding = #dist.sharding<@m, [?, shard(1)]>})
    -> (tensor<8xf32> {dist.name = "squares"}, tensor<8x6xf32> {dist.name = "product"}, tensor<8xf32> {dist.name = "peak"}) {
  %0 = demo.scaled_add %x, %y {scale = 0.5} : tensor<8x6xf32>
  %1 = demo.sum_squares %x : tensor<8x6xf32> -> tensor<8xf32>
  %2 = demo.sum_squares %0 : tensor<8x6xf32> -> tensor<8xf32>
  %3 = demo.scaled_add %1, %2 {scale = 2.0} : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8x6xf32>
  %4 = demo.rms_norm %0 {epsilon = 1.0e-5} : tensor<8x6xf32>
  %5 = linalg.matmul ins(%4, %w : tensor<8x6xf32>, tensor<6x6xf32>) outs(%zero : tensor<8x6xf32>) -> tensor<8x6xf32>
  %6 = dist.shard_tensor %5, #dist.sharding<@m, [shard(0), replicate]> : tensor<8x6xf32>
  %7 = demo.peak %6 : tensor<8x6xf32> -> tensor<8xf32>
  return %3, %5, %7 : tensor<8xf32>, tensor<8x6xf32>, tensor<8xf32>
}
