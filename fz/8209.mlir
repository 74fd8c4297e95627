#map = affine_map<(d0, d1, d2) -> (d0, d1, -d2 + 2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d3, d2, d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d3, d1)>
module {
  dist.process_mesh @m(shape = [3, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<7x14x3xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}, %arg1: tensor<7x3x7x14xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg2: tensor<i64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) -> (tensor<7x14x3xf32> {dist.feeds = 0 : i64}, tensor<i64> {dist.sharding = #dist.sharding<@m, [?, ?]>}, tensor<7x14xf32>, tensor<7x14x3xf32> {dist.sharding = #dist.sharding<@m, [shard(-1), shard(0)]>}) {
    %0 = tensor.empty() : tensor<7x14x3xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<7x14x3xf32>) outs(%0 : tensor<7x14x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<7x14x3xf32>
    %2 = dist.reshard %arg0 to #dist.sharding<@m, [shard(-3), ?]> : tensor<7x14x3xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<7x14xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["reduction", "parallel", "reduction", "parallel"]} ins(%arg0, %arg1 : tensor<7x14x3xf32>, tensor<7x3x7x14xf32>) outs(%cst : tensor<7x14xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %6 = arith.mulf %in, %in_2 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<7x14xf32>
    %cst_0 = arith.constant dense<1.250000e-01> : tensor<7x14xf32>
    %4 = arith.mulf %3, %cst_0 : tensor<7x14xf32>
    %5 = dist.shard_tensor %arg2, #dist.sharding<@m, [replicate, replicate]> : tensor<i64>
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 1] [7, 14, 2] [1, 1, 1] : tensor<7x14x3xf32> to tensor<7x14x2xf32>
    %extracted_slice_1 = tensor.extract_slice %arg0[0, 0, 0] [7, 14, 1] [1, 1, 1] : tensor<7x14x3xf32> to tensor<7x14x1xf32>
    %concat = tensor.concat dim(2) %extracted_slice, %extracted_slice_1 : (tensor<7x14x2xf32>, tensor<7x14x1xf32>) -> tensor<7x14x3xf32>
    return %concat, %5, %4, %2 : tensor<7x14x3xf32>, tensor<i64>, tensor<7x14xf32>, tensor<7x14x3xf32>
  }
}

