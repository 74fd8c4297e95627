#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [6, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<2x40xf32>, %arg1: tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a2"]], open = ["a1", "a0"]>}, %arg2: tensor<40x2xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate, replicate]>}, %arg3: tensor<8x13xf64> {dist.sharding = #dist.sharding<@m, [?, replicate, shard(1)]>}, %arg4: tensor<4x2xi64> {dist.range = [-1, 9]}) -> (tensor<20x2x3xf32>, tensor<4x2x13xf64>) {
    %cst = arith.constant dense<0.000000e+00> : tensor<40x2xf32>
    %0 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<2x40xf32>, tensor<2x2xf32>) outs(%cst : tensor<40x2xf32>) -> tensor<40x2xf32>
    %cst_0 = arith.constant dense<3.125000e-02> : tensor<40x2xf32>
    %1 = arith.mulf %0, %cst_0 : tensor<40x2xf32>
    %2 = arith.subf %arg2, %1 : tensor<40x2xf32>
    %3 = dist.shard_tensor %arg3, #dist.sharding<@m, [replicate, replicate, shard(0)]> : tensor<8x13xf64>
    %extracted_slice = tensor.extract_slice %2[33, 0] [5, 1] [1, 3] : tensor<40x2xf32> to tensor<5x1xf32>
    %4 = tensor.empty() : tensor<4x2x13xf64>
    %5 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg4 : tensor<4x2xi64>) outs(%4 : tensor<4x2x13xf64>) {
    ^bb0(%in: i64, %out: f64):
      %7 = arith.index_cast %in : i64 to index
      %8 = linalg.index 2 : index
      %extracted = tensor.extract %3[%7, %8] : tensor<8x13xf64>
      linalg.yield %extracted : f64
    } -> tensor<4x2x13xf64>
    %6 = tensor.empty() : tensor<40x2x5xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<40x2xf32>) outs(%6 : tensor<40x2x5xf32>) dimensions = [2] 
    %extracted_slice_1 = tensor.extract_slice %broadcasted[0, 0, 0] [20, 2, 3] [1, 1, 1] : tensor<40x2x5xf32> to tensor<20x2x3xf32>
    return %extracted_slice_1, %5 : tensor<20x2x3xf32>, tensor<4x2x13xf64>
  }
}

