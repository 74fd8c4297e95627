#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0)>
#map4 = affine_map<(d0) -> (d0 * 2 + 1)>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<11xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg1: tensor<12x7x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(2)]>}, %arg2: tensor<12xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg3: tensor<5xf32> {dist.sharding = #dist.sharding<@m, [?]>}) -> (tensor<12x7x4xi32>, tensor<11xf32> {dist.sharding = #dist.sharding<@m, [shard(-1)]>}, tensor<12x7x4xi32>) {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%arg0 : tensor<11xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.maximumf %in, %out : f32
      linalg.yield %8 : f32
    } -> tensor<f32>
    %c0_i32 = arith.constant 0 : i32
    %3 = tensor.empty() : tensor<12x7x4xi32>
    %4 = linalg.fill ins(%c0_i32 : i32) outs(%3 : tensor<12x7x4xi32>) -> tensor<12x7x4xi32>
    %5 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1, %arg2 : tensor<12x7x4xi32>, tensor<12xi32>) outs(%4 : tensor<12x7x4xi32>) {
    ^bb0(%in: i32, %in_0: i32, %out: i32):
      %8 = arith.muli %in, %in_0 : i32
      %9 = arith.addi %out, %8 : i32
      linalg.yield %9 : i32
    } -> tensor<12x7x4xi32>
    %6 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel"]} ins(%arg3 : tensor<5xf32>) outs(%arg0 : tensor<11xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<11xf32>
    %7 = arith.muli %5, %5 : tensor<12x7x4xi32>
    return %7, %6, %5 : tensor<12x7x4xi32>, tensor<11xf32>, tensor<12x7x4xi32>
  }
}

