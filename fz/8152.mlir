#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d3, d2, d0, d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [2, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<14x4x9xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg1: tensor<1x9x14x4xf32>, %arg2: tensor<10x8xf64> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg3: tensor<17xf64>) -> (tensor<17xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1"]], partial = [min("a0")]>}, tensor<1x11x12x4xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"], [], [], []], open = ["a0"]>}, tensor<14x4x1xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<14x4x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<14x4x1xf32>) -> tensor<14x4x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%arg0, %arg1 : tensor<14x4x9xf32>, tensor<1x9x14x4xf32>) outs(%1 : tensor<14x4x1xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %7 = arith.mulf %in, %in_3 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<14x4x1xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst_0 : f32
    } : tensor<1x9x14x4xf32> to tensor<1x11x16x4xf32>
    %cst_1 = arith.constant dense<[[[0.000000e+00, -1.000000e+00, -2.500000e-01, -8.750000e-01], [-8.750000e-01, -7.500000e-01, -2.500000e-01, -8.750000e-01], [1.000000e+00, 7.500000e-01, -6.250000e-01, 5.000000e-01]]]> : tensor<1x3x4xf32>
    %cst_2 = arith.constant 2.000000e+00 : f32
    %3 = tensor.empty() : tensor<1x11x12x4xf32>
    %4 = linalg.fill ins(%cst_2 : f32) outs(%3 : tensor<1x11x12x4xf32>) -> tensor<1x11x12x4xf32>
    %5 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %cst_1 : tensor<1x11x16x4xf32>, tensor<1x3x4xf32>) outs(%4 : tensor<1x11x12x4xf32>) -> tensor<1x11x12x4xf32>
    %6 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["reduction", "reduction"]} ins(%arg2 : tensor<10x8xf64>) outs(%arg3 : tensor<17xf64>) {
    ^bb0(%in: f64, %out: f64):
      %7 = arith.addf %out, %in : f64
      linalg.yield %7 : f64
    } -> tensor<17xf64>
    return %6, %5, %2 : tensor<17xf64>, tensor<1x11x12x4xf32>, tensor<14x4x1xf32>
  }
}

