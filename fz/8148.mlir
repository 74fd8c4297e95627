#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
module {
  dist.process_mesh @m(shape = [3, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [?, replicate, shard(0)]>}, %arg1: tensor<14x17xf32> {dist.sharding = #dist.sharding<@m, dims = [["a2"], ["a0"]], open = ["a1"]>}, %arg2: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [?, shard(0), replicate]>}, %arg3: tensor<4x14x17xf32>) -> (tensor<4x14x17xf32>, tensor<8xf32>) {
    %0 = tensor.empty() : tensor<8xf32>
    %1 = linalg.softmax dimension(0) ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1, %arg2 : tensor<14x17xf32>, tensor<4xf32>) outs(%arg3 : tensor<4x14x17xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %3 = arith.mulf %in, %in_0 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<4x14x17xf32>
    return %2, %1 : tensor<4x14x17xf32>, tensor<8xf32>
  }
}

