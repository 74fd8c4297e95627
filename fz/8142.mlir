#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [12], dim_names = ["a0"])
  func.func @main(%arg0: tensor<11x5xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg1: tensor<5x12xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0":(2)6]]>}, %arg2: tensor<i64> {dist.range = [-4, 5]}, %arg3: tensor<9x2x4x12xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<14x14xf32>, tensor<9x2xf32>, tensor<5x4xi64> {dist.sharding = #dist.sharding<@m, [shard(-1)], priority = 0>}, tensor<11x12xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
    %0 = tensor.empty() : tensor<11x5xf32>
    %1 = linalg.softmax dimension(0) ins(%arg0 : tensor<11x5xf32>) outs(%0 : tensor<11x5xf32>) -> tensor<11x5xf32>
    %cst = arith.constant 2.000000e+00 : f32
    %2 = tensor.empty() : tensor<11x12xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<11x12xf32>) -> tensor<11x12xf32>
    %4 = linalg.matmul ins(%1, %arg1 : tensor<11x5xf32>, tensor<5x12xf32>) outs(%3 : tensor<11x12xf32>) -> tensor<11x12xf32>
    %cst_0 = arith.constant 3.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0] high[3, 2] {
    ^bb0(%arg4: index, %arg5: index):
      tensor.yield %cst_0 : f32
    } : tensor<11x5xf32> to tensor<14x7xf32>
    %5 = tensor.empty() : tensor<5x4xi64>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<i64>) outs(%5 : tensor<5x4xi64>) dimensions = [0, 1] 
    %cst_1 = arith.constant 0.000000e+00 : f32
    %padded_2 = tensor.pad %arg3 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst_1 : f32
    } : tensor<9x2x4x12xf32> to tensor<9x4x6x12xf32>
    %cst_3 = arith.constant 0.000000e+00 : f32
    %6 = tensor.empty() : tensor<9x2x6x12xf32>
    %7 = linalg.fill ins(%cst_3 : f32) outs(%6 : tensor<9x2x6x12xf32>) -> tensor<9x2x6x12xf32>
    %8 = tensor.empty() : tensor<3x1xf32>
    %9 = linalg.pooling_nhwc_sum {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded_2, %8 : tensor<9x4x6x12xf32>, tensor<3x1xf32>) outs(%7 : tensor<9x2x6x12xf32>) -> tensor<9x2x6x12xf32>
    %cst_4 = arith.constant 2.000000e+00 : f32
    %10 = tensor.empty() : tensor<9x2xf32>
    %11 = linalg.fill ins(%cst_4 : f32) outs(%10 : tensor<9x2xf32>) -> tensor<9x2xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%9 : tensor<9x2x6x12xf32>) outs(%11 : tensor<9x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.maximumf %in, %out : f32
      linalg.yield %15 : f32
    } -> tensor<9x2xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<14x14xf32>
    %inserted_slice = tensor.insert_slice %padded into %cst_5[0, 0] [14, 7] [1, 2] : tensor<14x7xf32> into tensor<14x14xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<14x14xf32>
    %inserted_slice_7 = tensor.insert_slice %padded into %cst_6[0, 1] [14, 7] [1, 2] : tensor<14x7xf32> into tensor<14x14xf32>
    %13 = tensor.empty() : tensor<14x14xf32>
    %14 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%inserted_slice, %inserted_slice_7 : tensor<14x14xf32>, tensor<14x14xf32>) outs(%13 : tensor<14x14xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %15 = arith.addf %in, %in_8 : f32
      linalg.yield %15 : f32
    } -> tensor<14x14xf32>
    return %14, %12, %broadcasted, %4 : tensor<14x14xf32>, tensor<9x2xf32>, tensor<5x4xi64>, tensor<11x12xf32>
  }
}

