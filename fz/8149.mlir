#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [1, 1, 2], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<4x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a2"]], open = ["a0"]>}, %arg1: tensor<5x7xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1, order = 0), shard(1, order = 1)]>}, %arg2: tensor<1x1x17x2xi64> {dist.range = [-4, 5]}, %arg3: tensor<1x12xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate, shard(0)]>}, %arg4: tensor<5xf32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 2), shard(0, order = 0)]>}, %arg5: tensor<1x12xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, ?, replicate]>}, %arg6: tensor<12xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), replicate, replicate]>}) -> (tensor<12xi64> {dist.sharding = #dist.sharding<@m, [?, ?, replicate]>}, tensor<1x12xi64> {dist.sharding = #dist.sharding<@m, [shard(1, order = 1), shard(0), shard(1, order = 0)]>}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x7xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x7xf32>) -> tensor<4x7xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<4x5xf32>, tensor<5x7xf32>) outs(%1 : tensor<4x7xf32>) -> tensor<4x7xf32>
    %cst_0 = arith.constant dense<[[[[0, 2]]]]> : tensor<1x1x1x2xi64>
    %c0_i64 = arith.constant 0 : i64
    %3 = tensor.empty() : tensor<1x1x17x1xi64>
    %4 = linalg.fill ins(%c0_i64 : i64) outs(%3 : tensor<1x1x17x1xi64>) -> tensor<1x1x17x1xi64>
    %5 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%arg2, %cst_0 : tensor<1x1x17x2xi64>, tensor<1x1x1x2xi64>) outs(%4 : tensor<1x1x17x1xi64>) -> tensor<1x1x17x1xi64>
    %cst_1 = arith.constant dense<[[2, 3, -3, -3, 0, -2, 2, 1, 2, 3, -1, 0]]> : tensor<1x12xi64>
    %6 = arith.cmpi sgt, %cst_1, %arg3 : tensor<1x12xi64>
    %7 = arith.select %6, %cst_1, %arg3 : tensor<1x12xi1>, tensor<1x12xi64>
    %8 = tensor.empty() : tensor<1x1x1x17xi64>
    %transposed = linalg.transpose ins(%5 : tensor<1x1x17x1xi64>) outs(%8 : tensor<1x1x1x17xi64>) permutation = [1, 3, 0, 2] 
    %cst_2 = arith.constant 2.000000e+00 : f32
    %9 = tensor.empty() : tensor<5x7xf32>
    %10 = linalg.fill ins(%cst_2 : f32) outs(%9 : tensor<5x7xf32>) -> tensor<5x7xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg4 : tensor<5x7xf32>, tensor<5xf32>) outs(%10 : tensor<5x7xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.mulf %in, %in_3 : f32
      %16 = arith.addf %out, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<5x7xf32>
    %12 = arith.cmpi sgt, %7, %arg3 : tensor<1x12xi64>
    %13 = arith.select %12, %7, %arg5 : tensor<1x12xi1>, tensor<1x12xi64>
    %14 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction"]} ins(%7 : tensor<1x12xi64>) outs(%arg6 : tensor<12xi64>) {
    ^bb0(%in: i64, %out: i64):
      %15 = arith.addi %out, %in : i64
      linalg.yield %15 : i64
    } -> tensor<12xi64>
    return %14, %13 : tensor<12xi64>, tensor<1x12xi64>
  }
}

