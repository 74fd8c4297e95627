#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d1, d0)>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<12x10x10x1xf64>, %arg1: tensor<10x1x14xf32>, %arg2: tensor<2x14x1xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], []]>}, %arg3: tensor<10x1x1xf32>, %arg4: tensor<i64> {dist.range = [-2, 3]}, %arg5: tensor<1x1x1xf32>, %arg6: tensor<1x15xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?]>}, %arg7: tensor<10x1x14xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"], []]>}, %arg8: tensor<1x14xf32>, %arg9: tensor<1xi32> {dist.range = [-1, 17]}, %arg10: tensor<1x10xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<10x1x1xf32>, tensor<16xi32>, tensor<1x14xf32>) {
    %0 = math.tanh %arg0 : tensor<12x10x10x1xf64>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg1 low[0, 1, 0] high[0, 1, 0] {
    ^bb0(%arg11: index, %arg12: index, %arg13: index):
      tensor.yield %cst : f32
    } : tensor<10x1x14xf32> to tensor<10x3x14xf32>
    %1 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>} ins(%padded, %arg2 : tensor<10x3x14xf32>, tensor<2x14x1xf32>) outs(%arg3 : tensor<10x1x1xf32>) -> tensor<10x1x1xf32>
    %cst_0 = arith.constant dense<1.250000e-01> : tensor<10x1x1xf32>
    %2 = arith.mulf %1, %cst_0 : tensor<10x1x1xf32>
    %3 = dist.shard_tensor %2, #dist.sharding<@m, [shard(0)]> : tensor<10x1x1xf32>
    %extracted = tensor.extract %arg4[] : tensor<i64>
    %4 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %2[0, %4, 0] [10, 1, 1] [1, 1, 1] : tensor<10x1x1xf32> to tensor<10x1x1xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_1 : tensor<10x1x1xf32>
    %5 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%2, %arg5 : tensor<10x1x1xf32>, tensor<1x1x1xf32>) outs(%splat : tensor<10x1x1xf32>) -> tensor<10x1x1xf32>
    %c-2147483648_i32 = arith.constant -2147483648 : i32
    %6 = tensor.empty() : tensor<1xi32>
    %7 = linalg.fill ins(%c-2147483648_i32 : i32) outs(%6 : tensor<1xi32>) -> tensor<1xi32>
    %cst_2 = arith.constant dense<0> : tensor<1xi32>
    %8:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg6 : tensor<1x15xi32>) outs(%7, %cst_2 : tensor<1xi32>, tensor<1xi32>) {
    ^bb0(%in: i32, %out: i32, %out_5: i32):
      %21 = linalg.index 1 : index
      %22 = arith.index_cast %21 : index to i32
      %23 = arith.cmpi sgt, %in, %out : i32
      %24 = arith.select %23, %in, %out : i32
      %25 = arith.select %23, %22, %out_5 : i32
      linalg.yield %24, %25 : i32, i32
    } -> (tensor<1xi32>, tensor<1xi32>)
    %cst_3 = arith.constant dense<[-7.500000e-01, -3.750000e-01, -7.500000e-01, 8.750000e-01, 0.000000e+00, 1.000000e+00, -1.000000e+00, 3.750000e-01, -3.750000e-01]> : tensor<9xf64>
    %9 = ext.sort dim = 0 keys = 1 descending limit = 9 ins(%cst_3 : tensor<9xf64>)
    %10 = dist.shard_tensor %8#1, #dist.sharding<@m, [shard(0)]> : tensor<1xi32>
    %11 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["reduction", "parallel", "parallel"]} ins(%arg1, %arg7 : tensor<10x1x14xf32>, tensor<10x1x14xf32>) outs(%arg8 : tensor<1x14xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %21 = arith.subf %in, %in_5 : f32
      %22 = arith.addf %21, %out : f32
      linalg.yield %22 : f32
    } -> tensor<1x14xf32>
    %cst_4 = arith.constant dense<1.250000e-01> : tensor<1x14xf32>
    %12 = arith.mulf %11, %cst_4 : tensor<1x14xf32>
    %c0_i32 = arith.constant 0 : i32
    %13 = tensor.empty() : tensor<16xi32>
    %14 = linalg.fill ins(%c0_i32 : i32) outs(%13 : tensor<16xi32>) -> tensor<16xi32>
    %15 = linalg.generic {indexing_maps = [#map1, #map1, #map4], iterator_types = ["reduction", "parallel"]} ins(%8#1, %arg9 : tensor<1xi32>, tensor<1xi32>) outs(%14 : tensor<16xi32>) {
    ^bb0(%in: i32, %in_5: i32, %out: i32):
      %21 = linalg.index 1 : index
      %22 = arith.index_cast %21 : index to i32
      %23 = arith.cmpi eq, %22, %in_5 : i32
      %c2147483647_i32 = arith.constant 2147483647 : i32
      %24 = arith.select %23, %in, %c2147483647_i32 : i32
      %25 = arith.minsi %out, %24 : i32
      linalg.yield %25 : i32
    } -> tensor<16xi32>
    %16 = dist.shard_tensor %15, #dist.sharding<@m, dims = [["a0"]], priority = 0> : tensor<16xi32>
    %17 = tensor.empty() : tensor<16xi32>
    %18 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%16, %16 : tensor<16xi32>, tensor<16xi32>) outs(%17 : tensor<16xi32>) {
    ^bb0(%in: i32, %in_5: i32, %out: i32):
      %21 = arith.muli %in, %in_5 : i32
      linalg.yield %21 : i32
    } -> tensor<16xi32>
    %19 = tensor.empty() : tensor<10x1x1xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %arg10 : tensor<10x1x1xf32>, tensor<1x10xf32>) outs(%19 : tensor<10x1x1xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %21 = arith.minimumf %in, %in_5 : f32
      linalg.yield %21 : f32
    } -> tensor<10x1x1xf32>
    return %20, %18, %12 : tensor<10x1x1xf32>, tensor<16xi32>, tensor<1x14xf32>
  }
}

