#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [8], dim_names = ["a0"])
  func.func @main(%arg0: tensor<15x14x2xf32> {dist.sharding = #dist.sharding<@m, [?]>}, %arg1: tensor<15x2x2xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<13x5xf64>, %arg3: tensor<17xf64>, %arg4: tensor<15x12x1x1xi64> {dist.range = [-4, 5]}) -> (tensor<15x12x1x1xi64>, tensor<17xf64>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<15x14x2xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<15x14x2xf32>) -> tensor<15x14x2xf32>
    %2 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<15x14x2xf32>, tensor<15x2x2xf32>) outs(%1 : tensor<15x14x2xf32>) -> tensor<15x14x2xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg2 : tensor<13x5xf64>) outs(%arg3 : tensor<17xf64>) {
    ^bb0(%in: f64, %out: f64):
      %5 = arith.addf %out, %in : f64
      linalg.yield %5 : f64
    } -> tensor<17xf64>
    %4 = dist.shard_tensor %arg4, #dist.sharding<@m, [replicate]> : tensor<15x12x1x1xi64>
    return %4, %3 : tensor<15x12x1x1xi64>, tensor<17xf64>
  }
}

