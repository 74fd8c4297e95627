module {
  dist.process_mesh @m(shape = [3, 4], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<7xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg1: tensor<3x5x3xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"], ["a1"]]>}, %arg2: tensor<3x3x6xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], []], open = ["a1"]>}) -> (tensor<3x5x6xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], ["a0"]], open = ["a1":(2)2]>}, tensor<7xi64> {dist.sharding = #dist.sharding<@m, [shard(-1)]>}) {
    %cst = arith.constant dense<3> : tensor<1xi64>
    %inserted_slice = tensor.insert_slice %cst into %arg0[0] [1] [1] : tensor<1xi64> into tensor<7xi64>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<3x5x6xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
    %2 = linalg.batch_matmul ins(%arg1, %arg2 : tensor<3x5x3xf32>, tensor<3x3x6xf32>) outs(%1 : tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
    return %2, %inserted_slice : tensor<3x5x6xf32>, tensor<7xi64>
  }
}

