module {
  dist.process_mesh @m(shape = [6], dim_names = ["a0"])
  func.func @main(%arg0: tensor<14xi64> {dist.range = [-4, 5]}) -> (tensor<16x4xi64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
    %c9 = arith.constant 9 : index
    %extracted = tensor.extract %arg0[%c9] : tensor<14xi64>
    %0 = arith.addi %extracted, %extracted : i64
    %1 = tensor.empty() : tensor<16x4xi64>
    %2 = linalg.fill ins(%0 : i64) outs(%1 : tensor<16x4xi64>) -> tensor<16x4xi64>
    return %2 : tensor<16x4xi64>
  }
}

