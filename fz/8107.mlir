#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
module {
  dist.process_mesh @m(shape = [4, 1, 2], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<2x7xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a1"]], open = ["a0":(1)2, "a0":(2)2, "a2"]>}, %arg1: tensor<11x7xi32> {dist.range = [-4, 5]}) -> tensor<11x7xi32> {
    %cst = arith.constant dense<[1, 8]> : tensor<2xi64>
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["reduction", "parallel", "parallel"]} ins(%arg0, %cst : tensor<2x7xi32>, tensor<2xi64>) outs(%arg1 : tensor<11x7xi32>) {
    ^bb0(%in: i32, %in_0: i64, %out: i32):
      %2 = linalg.index 1 : index
      %3 = arith.index_cast %2 : index to i64
      %4 = arith.cmpi eq, %in_0, %3 : i64
      %c-2147483648_i32 = arith.constant -2147483648 : i32
      %5 = arith.select %4, %in, %c-2147483648_i32 : i32
      %6 = arith.maxsi %out, %5 : i32
      linalg.yield %6 : i32
    } -> tensor<11x7xi32>
    %1 = dist.shard_tensor %arg1, #dist.sharding<@m, [replicate, shard(0, order = 0), shard(0, order = 1)]> : tensor<11x7xi32>
    return %1 : tensor<11x7xi32>
  }
}

