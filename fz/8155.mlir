module {
  dist.process_mesh @m(shape = [8], dim_names = ["a0"])
  func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<5x1x8xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], []], open = ["a0"]>}) -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<8x8xf32> {dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
    %cst = arith.constant dense<[[6], [1], [5], [3], [7]]> : tensor<5x1xindex>
    %scatter = tensor.scatter %arg1 into %arg0[%cst] scatter_dims([0]) unique : (tensor<5x1x8xf32>, tensor<8x8xf32>, tensor<5x1xindex>) -> tensor<8x8xf32>
    return %scatter, %arg0 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}

