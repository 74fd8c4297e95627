#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1, d0)>
#map2 = affine_map<(d0, d1) -> (d0, d1 * 2)>
module {
  dist.process_mesh @m(shape = [6, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<5x6xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"], ["a1"]]>}, %arg1: tensor<2x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg2: tensor<5x1xf64> {dist.sharding = #dist.sharding<@m, [?, replicate]>}) -> (tensor<5x2xf64> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)], priority = 2>}, tensor<8x4xf64>) {
    %0 = arith.negf %arg0 : tensor<5x6xf64>
    %extracted_slice = tensor.extract_slice %0[0, 0] [5, 2] [1, 1] : tensor<5x6xf64> to tensor<5x2xf64>
    %1 = tensor.empty() : tensor<5x2xf64>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice, %arg1 : tensor<5x2xf64>, tensor<2x5xf64>) outs(%1 : tensor<5x2xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %6 = arith.mulf %in, %in_2 : f64
      linalg.yield %6 : f64
    } -> tensor<5x2xf64>
    %3 = dist.shard_tensor %2, #dist.sharding<@m, [shard(1)]> : tensor<5x2xf64>
    %extracted_slice_0 = tensor.extract_slice %3[2, 0] [3, 2] [1, 1] : tensor<5x2xf64> to tensor<3x2xf64>
    %extracted_slice_1 = tensor.extract_slice %3[0, 0] [2, 2] [1, 1] : tensor<5x2xf64> to tensor<2x2xf64>
    %concat = tensor.concat dim(0) %extracted_slice_0, %extracted_slice_1 : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<5x2xf64>
    %4 = tensor.empty() : tensor<5x2xf64>
    %transposed = linalg.transpose ins(%2 : tensor<5x2xf64>) outs(%4 : tensor<5x2xf64>) permutation = [0, 1] 
    %cst = arith.constant 3.000000e+00 : f64
    %padded = tensor.pad %transposed low[1, 0] high[2, 2] {
    ^bb0(%arg3: index, %arg4: index):
      tensor.yield %cst : f64
    } : tensor<5x2xf64> to tensor<8x4xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel"]} ins(%arg2 : tensor<5x1xf64>) outs(%concat : tensor<5x2xf64>) {
    ^bb0(%in: f64, %out: f64):
      linalg.yield %in : f64
    } -> tensor<5x2xf64>
    return %5, %padded : tensor<5x2xf64>, tensor<8x4xf64>
  }
}

