#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1) -> (d0, d1)>
#map7 = affine_map<(d0, d1) -> (d1, d0)>
module {
  dist.process_mesh @m(shape = [11], dim_names = ["a0"])
  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<bf16>, %arg2: tensor<2x39xf64> {dist.sharding = #dist.sharding<@m, [replicate], priority = 2>}, %arg3: tensor<2x6xf64>, %arg4: tensor<39x6xf64> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg5: tensor<2x7xf32>, %arg6: tensor<7x2xf32>, %arg7: tensor<9x2xf32>) -> (tensor<7x4xf32>, tensor<24x2xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, tensor<39x6xf64> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<39x6xf64> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
    %cst = arith.constant dense<-5.000000e-01> : tensor<f32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_0 : tensor<2xf32>
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel"]} ins(%arg0, %cst : tensor<2xf32>, tensor<f32>) outs(%splat : tensor<2xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %8 = arith.mulf %in, %in_7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<2xf32>
    %1 = math.exp %arg1 : tensor<bf16>
    %cst_1 = arith.constant 0.000000e+00 : f64
    %2 = tensor.empty() : tensor<39x6xf64>
    %3 = linalg.fill ins(%cst_1 : f64) outs(%2 : tensor<39x6xf64>) -> tensor<39x6xf64>
    %4 = linalg.matmul indexing_maps = [#map2, #map3, #map4] ins(%arg2, %arg3 : tensor<2x39xf64>, tensor<2x6xf64>) outs(%3 : tensor<39x6xf64>) -> tensor<39x6xf64>
    %cst_2 = arith.constant dense<3.125000e-02> : tensor<39x6xf64>
    %5 = arith.mulf %4, %cst_2 : tensor<39x6xf64>
    %6 = arith.subf %arg4, %5 : tensor<39x6xf64>
    %7 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel"]} ins(%0, %arg5 : tensor<2xf32>, tensor<2x7xf32>) outs(%arg6 : tensor<7x2xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %8 = arith.mulf %in, %in_7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<7x2xf32>
    %cst_3 = arith.constant dense<[[1.250000e-01, 1.000000e+00], [2.500000e-01, 0.000000e+00], [7.500000e-01, 8.750000e-01], [-8.750000e-01, -7.500000e-01], [3.750000e-01, -8.750000e-01], [2.500000e-01, 1.000000e+00], [-5.000000e-01, -1.000000e+00], [0.000000e+00, -8.750000e-01]]> : tensor<8x2xf32>
    %concat = tensor.concat dim(0) %7, %cst_3, %arg7 : (tensor<7x2xf32>, tensor<8x2xf32>, tensor<9x2xf32>) -> tensor<24x2xf32>
    %extracted_slice = tensor.extract_slice %7[0, 1] [7, 1] [1, 1] : tensor<7x2xf32> to tensor<7x1xf32>
    %extracted_slice_4 = tensor.extract_slice %7[0, 1] [7, 1] [1, 1] : tensor<7x2xf32> to tensor<7x1xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<7x2xf32>
    %concat_6 = tensor.concat dim(1) %extracted_slice, %cst_5, %extracted_slice_4 : (tensor<7x1xf32>, tensor<7x2xf32>, tensor<7x1xf32>) -> tensor<7x4xf32>
    return %concat_6, %concat, %6, %arg4 : tensor<7x4xf32>, tensor<24x2xf32>, tensor<39x6xf64>, tensor<39x6xf64>
  }
}

