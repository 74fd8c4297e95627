#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [5, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<3xi64> {dist.range = [-1, 16]}, %arg2: tensor<15xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}, %arg3: tensor<3x4x16x5xf32> {dist.sharding = #dist.sharding<@m, [shard(2), replicate]>}, %arg4: tensor<1x2x5xf32>, %arg5: tensor<3x4x15x5xf32> {dist.sharding = #dist.sharding<@m, [?, partial(prod)]>}, %arg6: tensor<8xi32> {dist.range = [-1, 16], dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg7: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [partial(min), partial(min)]>}) -> (tensor<8xi32>, tensor<8xf32> {dist.sharding = #dist.sharding<@m, [?, shard(0)]>}, tensor<15xf32> {dist.feeds = 2 : i64, dist.sharding = #dist.sharding<@m, [shard(0), shard(0)]>}, tensor<3x4x15x5xf32>) {
    %0 = arith.maximumf %arg0, %arg0 : tensor<3xf32>
    %1 = dist.reshard %0 to #dist.sharding<@m, [shard(0), replicate]> : tensor<3xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction", "parallel"]} ins(%arg0, %arg1 : tensor<3xf32>, tensor<3xi64>) outs(%arg2 : tensor<15xf32>) {
    ^bb0(%in: f32, %in_2: i64, %out: f32):
      %9 = linalg.index 1 : index
      %10 = arith.index_cast %9 : index to i64
      %11 = arith.cmpi eq, %in_2, %10 : i64
      %cst_3 = arith.constant 0.000000e+00 : f32
      %12 = arith.select %11, %in, %cst_3 : f32
      %13 = arith.addf %out, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<15xf32>
    %3 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<[2, 1]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%arg3, %arg4 : tensor<3x4x16x5xf32>, tensor<1x2x5xf32>) outs(%arg5 : tensor<3x4x15x5xf32>) -> tensor<3x4x15x5xf32>
    %4 = math.exp %arg2 : tensor<15xf32>
    %cst = arith.constant dense<2.500000e-01> : tensor<15xf32>
    %5 = arith.mulf %2, %cst : tensor<15xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["reduction", "parallel"]} ins(%5, %arg6 : tensor<15xf32>, tensor<8xi32>) outs(%arg7 : tensor<8xf32>) {
    ^bb0(%in: f32, %in_2: i32, %out: f32):
      %9 = linalg.index 0 : index
      %10 = arith.index_cast %9 : index to i32
      %11 = arith.cmpi eq, %in_2, %10 : i32
      %cst_3 = arith.constant 1.000000e+00 : f32
      %12 = arith.select %11, %in, %cst_3 : f32
      %13 = arith.mulf %out, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<8xf32>
    %cst_0 = arith.constant dense<3> : tensor<8xi32>
    %7 = math.absi %arg6 : tensor<8xi32>
    %cst_1 = arith.constant dense<2.500000e-01> : tensor<15xf32>
    %8 = arith.mulf %4, %cst_1 : tensor<15xf32>
    return %7, %6, %8, %3 : tensor<8xi32>, tensor<8xf32>, tensor<15xf32>, tensor<3x4x15x5xf32>
  }
}

