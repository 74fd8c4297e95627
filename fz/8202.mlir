module {
  dist.process_mesh @m(shape = [4, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<6x14x3xf32>) -> (tensor<6x14x3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], ["a2"]], open = ["a1"], priority = 0>}, tensor<6x14x3xf32> {dist.sharding = #dist.sharding<@m, [replicate, ?, shard(1)]>}) {
    %0 = arith.addf %arg0, %arg0 : tensor<6x14x3xf32>
    return %0, %arg0 : tensor<6x14x3xf32>, tensor<6x14x3xf32>
  }
}

