module {
  dist.process_mesh @m(shape = [4, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<12x2xf64>, %arg1: tensor<2x2xf64>) -> (tensor<12x2xf64> {dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@m, [?, replicate, shard(0)]>}, tensor<12x2xf64> {dist.sharding = #dist.sharding<@m, [?, shard(0, order = 1), shard(0, order = 0)]>}) {
    %cst = arith.constant 0.000000e+00 : f64
    %0 = tensor.empty() : tensor<12x2xf64>
    %1 = linalg.fill ins(%cst : f64) outs(%0 : tensor<12x2xf64>) -> tensor<12x2xf64>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<12x2xf64>, tensor<2x2xf64>) outs(%1 : tensor<12x2xf64>) -> tensor<12x2xf64>
    %3 = arith.minimumf %2, %arg0 : tensor<12x2xf64>
    %4 = dist.shard_tensor %2, #dist.sharding<@m, dims = [["a0"], []], open = ["a1"]> : tensor<12x2xf64>
    %cst_0 = arith.constant dense<5.000000e-01> : tensor<12x2xf64>
    %5 = arith.mulf %4, %cst_0 : tensor<12x2xf64>
    return %5, %3 : tensor<12x2xf64>, tensor<12x2xf64>
  }
}

