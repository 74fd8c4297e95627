module {
  dist.process_mesh @m(shape = [1, 4, 3], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<13x5x14xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2), shard(0)]>}, %arg1: tensor<13x14x5xf32>) -> (tensor<13x5x5xf32>, tensor<13x5x14xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate, replicate]>}, tensor<13x5x14xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1":(1)2], [], ["a2"]], priority = 0>}) {
    %0 = tensor.empty() : tensor<13x5x14xf32>
    %1 = linalg.softmax dimension(2) ins(%arg0 : tensor<13x5x14xf32>) outs(%0 : tensor<13x5x14xf32>) -> tensor<13x5x14xf32>
    %extracted_slice = tensor.extract_slice %arg0[0, 4, 0] [13, 1, 14] [1, 1, 1] : tensor<13x5x14xf32> to tensor<13x1x14xf32>
    %extracted_slice_0 = tensor.extract_slice %arg0[0, 0, 0] [13, 4, 14] [1, 1, 1] : tensor<13x5x14xf32> to tensor<13x4x14xf32>
    %concat = tensor.concat dim(1) %extracted_slice, %extracted_slice_0 : (tensor<13x1x14xf32>, tensor<13x4x14xf32>) -> tensor<13x5x14xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<13x5x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<13x5x5xf32>) -> tensor<13x5x5xf32>
    %4 = linalg.batch_matmul ins(%1, %arg1 : tensor<13x5x14xf32>, tensor<13x14x5xf32>) outs(%3 : tensor<13x5x5xf32>) -> tensor<13x5x5xf32>
    return %4, %concat, %1 : tensor<13x5x5xf32>, tensor<13x5x14xf32>, tensor<13x5x14xf32>
  }
}

