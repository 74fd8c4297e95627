#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [4, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}, %arg1: tensor<9x1x10x16xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate], priority = 0>}, %arg2: tensor<17x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(-1)], priority = 2>}) -> (tensor<22xf32>, tensor<5x1x5x1xi32> {dist.sharding = #dist.sharding<@m, [?, shard(0)]>}, tensor<14xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0":(1)2, "a1", "a0":(2)2]], priority = 1>}) {
    %cst = arith.constant dense<[8.750000e-01, 2.500000e-01, -2.500000e-01, -1.000000e+00, 5.000000e-01, -2.500000e-01, -1.250000e-01, -7.500000e-01, 1.000000e+00, 7.500000e-01, 6.250000e-01, 6.250000e-01, -1.250000e-01, -7.500000e-01]> : tensor<14xf32>
    %inserted_slice = tensor.insert_slice %arg0 into %cst[0] [3] [1] : tensor<3xf32> into tensor<14xf32>
    %extracted_slice = tensor.extract_slice %arg1[4, 0, 3, 11] [5, 1, 5, 1] [1, 1, 1, 3] : tensor<9x1x10x16xi32> to tensor<5x1x5x1xi32>
    %cst_0 = arith.constant dense<[-6.250000e-01, 7.500000e-01, 7.500000e-01, -1.000000e+00, 1.250000e-01, 3.750000e-01, -6.250000e-01, 1.000000e+00, -1.000000e+00, 1.250000e-01, 0.000000e+00, -1.250000e-01, 3.750000e-01, -8.750000e-01, 3.750000e-01, 2.500000e-01, -2.500000e-01, 1.250000e-01, 1.250000e-01, 1.250000e-01, 3.750000e-01, -7.500000e-01]> : tensor<22xf32>
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg2 : tensor<17x6xf32>) outs(%cst_0 : tensor<22xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %out, %in : f32
      linalg.yield %1 : f32
    } -> tensor<22xf32>
    return %0, %extracted_slice, %inserted_slice : tensor<22xf32>, tensor<5x1x5x1xi32>, tensor<14xf32>
  }
}

