#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [6, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<17x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0"], []], open = ["a1"]>}, %arg1: tensor<16x4xi64> {dist.range = [-4, 5]}, %arg2: tensor<1x5x1x5xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]>}, %arg3: tensor<17x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg4: tensor<17x16xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}) -> (tensor<16xi64> {dist.sharding = #dist.sharding<@m, [?, ?]>}, tensor<17x4xi64> {dist.sharding = #dist.sharding<@m, dims = [["a0":(2)3, "a1"], ["a0":(1)2]]>}, tensor<3x5x1x5xi32> {dist.sharding = #dist.sharding<@m, dims = [[], [], [], []], open = ["a1", "a0"]>}) {
    %collapsed = tensor.collapse_shape %arg0 [[0], [1]] : tensor<17x4xi64> into tensor<17x4xi64>
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<17x16xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<17x16xi64>) -> tensor<17x16xi64>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<17x4xi64>, tensor<16x4xi64>) outs(%1 : tensor<17x16xi64>) -> tensor<17x16xi64>
    %cst = arith.constant dense<[[2, 0, -2, 3, 2], [-3, 1, 2, 0, 2], [0, -1, -2, 3, -2], [-1, -3, -2, -1, 0], [-1, 1, -1, 1, 2], [3, -2, -1, -1, 0], [-2, 1, 1, 1, 0], [0, 2, -3, 3, 0], [-3, 2, -3, -1, 0], [1, 3, -1, -2, 3], [2, 3, -3, 0, 3], [2, 0, 3, 0, 2], [-1, -3, 2, -2, -2], [1, 0, 2, 2, 0], [3, -3, -3, -2, -1]]> : tensor<15x5xi32>
    %expanded = tensor.expand_shape %cst [[0, 1], [2, 3]] output_shape [3, 5, 1, 5] : tensor<15x5xi32> into tensor<3x5x1x5xi32>
    %inserted_slice = tensor.insert_slice %arg2 into %expanded[2, 0, 0, 0] [1, 5, 1, 5] [1, 1, 1, 1] : tensor<1x5x1x5xi32> into tensor<3x5x1x5xi32>
    %3 = arith.cmpi sgt, %arg0, %arg3 : tensor<17x4xi64>
    %4 = arith.select %3, %arg0, %collapsed : tensor<17x4xi1>, tensor<17x4xi64>
    %cst_0 = arith.constant dense<0> : tensor<16xi64>
    %5 = linalg.generic {indexing_maps = [#map3, #map3, #map4], iterator_types = ["reduction", "parallel"]} ins(%2, %arg4 : tensor<17x16xi64>, tensor<17x16xi64>) outs(%cst_0 : tensor<16xi64>) {
    ^bb0(%in: i64, %in_1: i64, %out: i64):
      %6 = arith.subi %in, %in_1 : i64
      %7 = arith.muli %6, %6 : i64
      %8 = arith.addi %out, %7 : i64
      linalg.yield %8 : i64
    } -> tensor<16xi64>
    return %5, %4, %inserted_slice : tensor<16xi64>, tensor<17x4xi64>, tensor<3x5x1x5xi32>
  }
}

