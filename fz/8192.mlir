#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [1, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<2x33xf32>, %arg1: tensor<2x9xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg2: tensor<33x9xf32> {dist.sharding = #dist.sharding<@m, [shard(1), ?]>}, %arg3: tensor<11x14x5xf64>, %arg4: tensor<2x17xf32>, %arg5: tensor<11x56xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg6: tensor<8x4x11xbf16> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg7: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate], priority = 2>}, %arg8: tensor<12xf32>) -> (tensor<12xf32> {dist.feeds = 8 : i64, dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"]], priority = 2>}, tensor<i32>) {
    %0 = tensor.empty() : tensor<15xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<15xi64>) {
    ^bb0(%out: i64):
      %c1 = arith.constant 1 : index
      %18 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %19 = arith.muli %c1, %c2 : index
      %20 = arith.addi %19, %18 : index
      %21 = arith.index_cast %20 : index to i64
      linalg.yield %21 : i64
    } -> tensor<15xi64>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<33x9xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<33x9xf32>) -> tensor<33x9xf32>
    %4 = linalg.matmul indexing_maps = [#map1, #map2, #map3] ins(%arg0, %arg1 : tensor<2x33xf32>, tensor<2x9xf32>) outs(%3 : tensor<33x9xf32>) -> tensor<33x9xf32>
    %cst_0 = arith.constant 3.125000e-02 : f32
    %splat = tensor.splat %cst_0 : tensor<33x9xf32>
    %5 = arith.mulf %4, %splat : tensor<33x9xf32>
    %6 = arith.subf %arg2, %5 : tensor<33x9xf32>
    %collapsed = tensor.collapse_shape %arg3 [[0], [1, 2]] : tensor<11x14x5xf64> into tensor<11x70xf64>
    %cst_1 = arith.constant dense<2.000000e+00> : tensor<33x17xf32>
    %7 = linalg.matmul indexing_maps = [#map1, #map2, #map3] ins(%arg0, %arg4 : tensor<2x33xf32>, tensor<2x17xf32>) outs(%cst_1 : tensor<33x17xf32>) -> tensor<33x17xf32>
    %inserted_slice = tensor.insert_slice %arg5 into %collapsed[0, 14] [11, 56] [1, 1] : tensor<11x56xf64> into tensor<11x70xf64>
    %8 = arith.negf %arg6 : tensor<8x4x11xbf16>
    %9 = dist.reshard %arg2 to #dist.sharding<@m, dims = [[], ["a1"]], open = ["a0"]> : tensor<33x9xf32>
    %cst_2 = arith.constant -1.000000e+30 : f64
    %10 = tensor.empty() : tensor<11xf64>
    %11 = linalg.fill ins(%cst_2 : f64) outs(%10 : tensor<11xf64>) -> tensor<11xf64>
    %c0_i32 = arith.constant 0 : i32
    %splat_3 = tensor.splat %c0_i32 : tensor<11xi32>
    %12:2 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "reduction"]} ins(%inserted_slice : tensor<11x70xf64>) outs(%11, %splat_3 : tensor<11xf64>, tensor<11xi32>) {
    ^bb0(%in: f64, %out: f64, %out_6: i32):
      %18 = linalg.index 1 : index
      %19 = arith.index_cast %18 : index to i32
      %20 = arith.cmpf ogt, %in, %out : f64
      %21 = arith.select %20, %in, %out : f64
      %22 = arith.select %20, %19, %out_6 : i32
      linalg.yield %21, %22 : f64, i32
    } -> (tensor<11xf64>, tensor<11xi32>)
    %cst_4 = arith.constant dense<[-3.750000e-01, -5.000000e-01, -7.500000e-01, -1.250000e-01, -6.250000e-01, -7.500000e-01, -7.500000e-01, -1.000000e+00, -5.000000e-01]> : tensor<9xf32>
    %cst_5 = arith.constant 0.000000e+00 : f32
    %13 = tensor.empty() : tensor<33xf32>
    %14 = linalg.fill ins(%cst_5 : f32) outs(%13 : tensor<33xf32>) -> tensor<33xf32>
    %15 = linalg.matvec ins(%9, %cst_4 : tensor<33x9xf32>, tensor<9xf32>) outs(%14 : tensor<33xf32>) -> tensor<33xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map, #map6], iterator_types = ["reduction"]} ins(%12#1, %12#1 : tensor<11xi32>, tensor<11xi32>) outs(%arg7 : tensor<i32>) {
    ^bb0(%in: i32, %in_6: i32, %out: i32):
      %18 = arith.subi %in, %in_6 : i32
      %19 = arith.addi %out, %18 : i32
      linalg.yield %19 : i32
    } -> tensor<i32>
    %17 = dist.shard_tensor %arg8, #dist.sharding<@m, dims = [["a1"]]> : tensor<12xf32>
    return %17, %16 : tensor<12xf32>, tensor<i32>
  }
}

