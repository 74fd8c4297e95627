module {
  dist.process_mesh @m(shape = [5, 2, 1], dim_names = ["a0", "a1", "a2"], process_ids = [6, 5, 1, 4, 7, 0, 9, 3, 8, 2])
  func.func @main(%arg0: tensor<10x5x1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(2), shard(2), shard(2)]>}, %arg1: tensor<3x9x2xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate, shard(1)]>}, %arg2: tensor<i64> {dist.range = [-2, 5], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0", "a2", "a1"]>}, %arg3: tensor<1x9x2xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], []], open = ["a1", "a2"]>}) -> (tensor<2x9x3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a2"], [], ["a0"]], priority = 1>}, tensor<10x8x1xi32>, tensor<10x8x1xi32> {dist.sharding = #dist.sharding<@m, [shard(0), partial(sum), partial(sum)], priority = 0>}) {
    %cst = arith.constant dense<[[[-1], [-1], [1], [2], [-3], [3], [3], [-3]], [[-1], [3], [-1], [0], [-3], [2], [2], [-2]], [[-2], [-2], [-3], [0], [-2], [-1], [-2], [-3]], [[-2], [2], [-2], [1], [0], [1], [-3], [-2]], [[-2], [0], [3], [-2], [-2], [-3], [0], [1]], [[-2], [-3], [0], [-1], [-1], [0], [-1], [-2]], [[3], [2], [2], [-2], [-2], [0], [-3], [-2]], [[-2], [0], [1], [-3], [0], [1], [3], [1]], [[3], [-1], [1], [-2], [-1], [3], [0], [-3]], [[-3], [2], [-1], [3], [3], [-3], [0], [3]]]> : tensor<10x8x1xi32>
    %inserted_slice = tensor.insert_slice %arg0 into %cst[0, 0, 0] [10, 5, 1] [1, 1, 1] : tensor<10x5x1xi32> into tensor<10x8x1xi32>
    %0 = dist.shard_tensor %inserted_slice, #dist.sharding<@m, [shard(0), shard(2), replicate]> : tensor<10x8x1xi32>
    %1 = tensor.empty() : tensor<3x9x2xf32>
    %2 = linalg.softmax dimension(1) ins(%arg1 : tensor<3x9x2xf32>) outs(%1 : tensor<3x9x2xf32>) -> tensor<3x9x2xf32>
    %extracted = tensor.extract %arg2[] : tensor<i64>
    %3 = arith.index_cast %extracted : i64 to index
    %inserted_slice_0 = tensor.insert_slice %arg3 into %2[%3, 0, 0] [1, 9, 2] [1, 1, 1] : tensor<1x9x2xf32> into tensor<3x9x2xf32>
    %4 = tensor.empty() : tensor<2x9x3xf32>
    %transposed = linalg.transpose ins(%inserted_slice_0 : tensor<3x9x2xf32>) outs(%4 : tensor<2x9x3xf32>) permutation = [2, 1, 0] 
    return %transposed, %0, %inserted_slice : tensor<2x9x3xf32>, tensor<10x8x1xi32>, tensor<10x8x1xi32>
  }
}

