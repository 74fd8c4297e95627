module {
  dist.process_mesh @m(shape = [1, 6], dim_names = ["a0", "a1"], process_ids = [1, 4, 0, 5, 3, 2])
  func.func @main(%arg0: tensor<5x1xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg1: tensor<1x4xf32>) -> (tensor<5x4xf32> {dist.sharding = #dist.sharding<@m, dims = [[], []], partial = [min("a1")]>}) {
    %cst = arith.constant 2.000000e+00 : f32
    %splat = tensor.splat %cst : tensor<5x4xf32>
    %0 = linalg.matmul ins(%arg0, %arg1 : tensor<5x1xf32>, tensor<1x4xf32>) outs(%splat : tensor<5x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
}

