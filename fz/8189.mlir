#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [1, 3, 2], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<6x8xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0", "a1"]], open = ["a2"]>}, %arg1: tensor<4x8xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"], []], open = ["a2", "a1"]>}, %arg2: tensor<16x8xf64>, %arg3: tensor<16x3xf64>, %arg4: tensor<i64> {dist.range = [-2, 9], dist.sharding = #dist.sharding<@m, dims = [], open = ["a1", "a0", "a2"], priority = 1>}, %arg5: tensor<i64> {dist.range = [-2, 5], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0", "a2"], priority = 0>}, %arg6: tensor<1x2xf64> {dist.sharding = #dist.sharding<@m, [shard(0)], priority = 1>}, %arg7: tensor<6xf64>) -> (tensor<6x24xf64>, tensor<6xf64>, tensor<7xf64>) {
    %cst = arith.constant dense<0.000000e+00> : tensor<6x4xf64>
    %0 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<6x8xf64>, tensor<4x8xf64>) outs(%cst : tensor<6x4xf64>) -> tensor<6x4xf64>
    %cst_0 = arith.constant dense<[[-1.250000e-01, 7.500000e-01, 3.750000e-01, 1.250000e-01, -1.000000e+00, -2.500000e-01, 3.750000e-01, -3.750000e-01], [2.500000e-01, -2.500000e-01, 2.500000e-01, 3.750000e-01, -2.500000e-01, -3.750000e-01, 3.750000e-01, -5.000000e-01], [-2.500000e-01, 2.500000e-01, 1.000000e+00, -8.750000e-01, 5.000000e-01, 6.250000e-01, -1.250000e-01, 7.500000e-01]]> : tensor<3x8xf64>
    %extracted_slice = tensor.extract_slice %cst_0[2, 0] [1, 8] [1, 1] : tensor<3x8xf64> to tensor<1x8xf64>
    %extracted_slice_1 = tensor.extract_slice %arg0[0, 0] [3, 8] [1, 1] : tensor<6x8xf64> to tensor<3x8xf64>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<3x8xf64>
    %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_1, %cst_2 : (tensor<1x8xf64>, tensor<3x8xf64>, tensor<3x8xf64>) -> tensor<7x8xf64>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<7x16xf64>
    %1 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%concat, %arg2 : tensor<7x8xf64>, tensor<16x8xf64>) outs(%cst_3 : tensor<7x16xf64>) -> tensor<7x16xf64>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<7x3xf64>
    %2 = linalg.matmul ins(%1, %arg3 : tensor<7x16xf64>, tensor<16x3xf64>) outs(%cst_4 : tensor<7x3xf64>) -> tensor<7x3xf64>
    %cst_5 = arith.constant 3.125000e-02 : f64
    %splat = tensor.splat %cst_5 : tensor<7x3xf64>
    %3 = arith.mulf %2, %splat : tensor<7x3xf64>
    %cst_6 = arith.constant dense<[[-7.500000e-01, 1.000000e+00, 1.250000e-01, 6.250000e-01, 1.250000e-01, 2.500000e-01, 1.000000e+00, -5.000000e-01, -7.500000e-01, -2.500000e-01, 6.250000e-01, 7.500000e-01, 6.250000e-01, -2.500000e-01], [6.250000e-01, 6.250000e-01, 6.250000e-01, 0.000000e+00, -3.750000e-01, -1.000000e+00, 7.500000e-01, 3.750000e-01, -7.500000e-01, 1.250000e-01, -3.750000e-01, -7.500000e-01, -1.000000e+00, -5.000000e-01], [0.000000e+00, 7.500000e-01, -3.750000e-01, -2.500000e-01, -3.750000e-01, 1.250000e-01, -2.500000e-01, 2.500000e-01, 2.500000e-01, -1.000000e+00, 0.000000e+00, -2.500000e-01, -3.750000e-01, 8.750000e-01]]> : tensor<3x14xf64>
    %cst_7 = arith.constant 0.000000e+00 : f64
    %4 = tensor.empty() : tensor<7x14xf64>
    %5 = linalg.fill ins(%cst_7 : f64) outs(%4 : tensor<7x14xf64>) -> tensor<7x14xf64>
    %6 = linalg.matmul ins(%3, %cst_6 : tensor<7x3xf64>, tensor<3x14xf64>) outs(%5 : tensor<7x14xf64>) -> tensor<7x14xf64>
    %extracted = tensor.extract %arg4[] : tensor<i64>
    %7 = arith.index_cast %extracted : i64 to index
    %extracted_8 = tensor.extract %arg5[] : tensor<i64>
    %8 = arith.index_cast %extracted_8 : i64 to index
    %inserted_slice = tensor.insert_slice %arg6 into %3[%7, %8] [1, 2] [1, 1] : tensor<1x2xf64> into tensor<7x3xf64>
    %cst_9 = arith.constant 0.000000e+00 : f64
    %9 = tensor.empty() : tensor<7xf64>
    %10 = linalg.fill ins(%cst_9 : f64) outs(%9 : tensor<7xf64>) -> tensor<7xf64>
    %11 = linalg.generic {indexing_maps = [#map3, #map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%6, %6 : tensor<7x14xf64>, tensor<7x14xf64>) outs(%10 : tensor<7xf64>) {
    ^bb0(%in: f64, %in_13: f64, %out: f64):
      %14 = arith.mulf %in, %in_13 : f64
      %15 = arith.addf %out, %14 : f64
      linalg.yield %15 : f64
    } -> tensor<7xf64>
    %cst_10 = arith.constant dense<0.001953125> : tensor<7xf64>
    %12 = arith.mulf %11, %cst_10 : tensor<7xf64>
    %cst_11 = arith.constant dense<[-8.750000e-01, 7.500000e-01, -6.250000e-01, -2.500000e-01, -8.750000e-01, -8.750000e-01, -1.250000e-01, -3.750000e-01]> : tensor<8xf64>
    %13 = linalg.matvec ins(%arg0, %cst_11 : tensor<6x8xf64>, tensor<8xf64>) outs(%arg7 : tensor<6xf64>) -> tensor<6xf64>
    %concat_12 = tensor.concat dim(1) %arg0, %arg0, %arg0 : (tensor<6x8xf64>, tensor<6x8xf64>, tensor<6x8xf64>) -> tensor<6x24xf64>
    return %concat_12, %13, %12 : tensor<6x24xf64>, tensor<6xf64>, tensor<7xf64>
  }
}

