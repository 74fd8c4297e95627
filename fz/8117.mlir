#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [4, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<7x10xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(1), replicate]>}) -> tensor<7x10xi64> {
    %0 = tensor.empty() : tensor<7x10xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<7x10xi64>) {
    ^bb0(%out: i64):
      %2 = linalg.index 0 : index
      %3 = linalg.index 1 : index
      %c9 = arith.constant 9 : index
      %4 = arith.subi %c9, %3 : index
      %extracted = tensor.extract %arg0[%2, %4] : tensor<7x10xi64>
      linalg.yield %extracted : i64
    } -> tensor<7x10xi64>
    return %1 : tensor<7x10xi64>
  }
}

