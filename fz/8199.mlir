#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
#map5 = affine_map<(d0) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map7 = affine_map<(d0, d1, d2) -> (d0)>
#map8 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map9 = affine_map<(d0, d1, d2) -> (d2)>
module {
  dist.process_mesh @m(shape = [5, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<14x4x10xf64>, %arg1: tensor<8x14xf64> {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}, %arg2: tensor<15xf32>, %arg3: tensor<10x2xf64> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}, %arg4: tensor<4x9x1x10xi32> {dist.range = [-4, 5]}, %arg5: tensor<15x8xf32>) -> (tensor<15x8xf32> {dist.feeds = 5 : i64}, tensor<10x2xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a1"]], priority = 2>}, tensor<15xf32>, tensor<14x10xf64>, tensor<14x8x10xf64>) {
    %cst = arith.constant 0.000000e+00 : f64
    %splat = tensor.splat %cst : tensor<14x8x10xf64>
    %inserted_slice = tensor.insert_slice %arg0 into %splat[0, 0, 0] [14, 4, 10] [1, 2, 1] : tensor<14x4x10xf64> into tensor<14x8x10xf64>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<14x8x10xf64>
    %inserted_slice_1 = tensor.insert_slice %arg0 into %cst_0[0, 1, 0] [14, 4, 10] [1, 2, 1] : tensor<14x4x10xf64> into tensor<14x8x10xf64>
    %0 = tensor.empty() : tensor<14x8x10xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%inserted_slice, %inserted_slice_1 : tensor<14x8x10xf64>, tensor<14x8x10xf64>) outs(%0 : tensor<14x8x10xf64>) {
    ^bb0(%in: f64, %in_8: f64, %out: f64):
      %14 = arith.addf %in, %in_8 : f64
      linalg.yield %14 : f64
    } -> tensor<14x8x10xf64>
    %2 = dist.shard_tensor %1, #dist.sharding<@m, [shard(0), shard(0)]> : tensor<14x8x10xf64>
    %cst_2 = arith.constant 0.000000e+00 : f64
    %3 = tensor.empty() : tensor<14x10xf64>
    %4 = linalg.fill ins(%cst_2 : f64) outs(%3 : tensor<14x10xf64>) -> tensor<14x10xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "reduction", "parallel"]} ins(%1, %arg1 : tensor<14x8x10xf64>, tensor<8x14xf64>) outs(%4 : tensor<14x10xf64>) {
    ^bb0(%in: f64, %in_8: f64, %out: f64):
      %14 = arith.mulf %in, %in_8 : f64
      %15 = arith.addf %out, %14 : f64
      linalg.yield %15 : f64
    } -> tensor<14x10xf64>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c2_3 = arith.constant 2 : index
    %6:2 = scf.for %arg6 = %c0 to %c2 step %c2_3 iter_args(%arg7 = %arg2, %arg8 = %arg3) -> (tensor<15xf32>, tensor<10x2xf64>) {
      %c2147483647_i32 = arith.constant 2147483647 : i32
      %14 = tensor.empty() : tensor<4x5x1x10xi32>
      %15 = linalg.fill ins(%c2147483647_i32 : i32) outs(%14 : tensor<4x5x1x10xi32>) -> tensor<4x5x1x10xi32>
      %16 = tensor.empty() : tensor<1x1xi32>
      %17 = linalg.pooling_nhwc_min {dilations = dense<[2, 1]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%arg4, %16 : tensor<4x9x1x10xi32>, tensor<1x1xi32>) outs(%15 : tensor<4x5x1x10xi32>) -> tensor<4x5x1x10xi32>
      %18 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%arg5 : tensor<15x8xf32>) outs(%arg7 : tensor<15xf32>) {
      ^bb0(%in: f32, %out: f32):
        %20 = arith.addf %out, %in : f32
        linalg.yield %20 : f32
      } -> tensor<15xf32>
      %cst_8 = arith.constant dense<2.500000e-01> : tensor<15xf32>
      %19 = arith.mulf %18, %cst_8 : tensor<15xf32>
      scf.yield %19, %arg8 : tensor<15xf32>, tensor<10x2xf64>
    }
    %7 = tensor.empty() : tensor<15xi32>
    %8 = linalg.generic {indexing_maps = [#map5], iterator_types = ["parallel"]} outs(%7 : tensor<15xi32>) {
    ^bb0(%out: i32):
      %14 = linalg.index 0 : index
      %15 = arith.index_cast %14 : index to i32
      linalg.yield %15 : i32
    } -> tensor<15xi32>
    %9:2 = ext.sort dim = 0 keys = 1 ins(%arg2, %8 : tensor<15xf32>, tensor<15xi32>)
    %cst_4 = arith.constant 0.000000e+00 : f32
    %splat_5 = tensor.splat %cst_4 : tensor<15x8xf32>
    %10 = linalg.generic {indexing_maps = [#map6, #map7, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg5, %9#1 : tensor<15x8xf32>, tensor<15xi32>) outs(%splat_5 : tensor<15x8xf32>) {
    ^bb0(%in: f32, %in_8: i32, %out: f32):
      %14 = linalg.index 2 : index
      %15 = arith.index_cast %14 : index to i32
      %16 = arith.cmpi eq, %in_8, %15 : i32
      %cst_9 = arith.constant 0.000000e+00 : f32
      %17 = arith.select %16, %in, %cst_9 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<15x8xf32>
    %11 = tensor.empty() : tensor<15x8xf32>
    %12 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<15x8xf32>) outs(%11 : tensor<15x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.negf %in : f32
      %15 = linalg.index 0 : index
      %16 = arith.index_cast %15 : index to i32
      %17 = arith.sitofp %16 : i32 to f32
      %18 = arith.addf %14, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<15x8xf32>
    %cst_6 = arith.constant 0.000000e+00 : f32
    %splat_7 = tensor.splat %cst_6 : tensor<15x8xf32>
    %13 = linalg.generic {indexing_maps = [#map6, #map9, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%12, %9#1 : tensor<15x8xf32>, tensor<15xi32>) outs(%splat_7 : tensor<15x8xf32>) {
    ^bb0(%in: f32, %in_8: i32, %out: f32):
      %14 = linalg.index 0 : index
      %15 = arith.index_cast %14 : index to i32
      %16 = arith.cmpi eq, %in_8, %15 : i32
      %cst_9 = arith.constant 0.000000e+00 : f32
      %17 = arith.select %16, %in, %cst_9 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<15x8xf32>
    return %13, %6#1, %6#0, %5, %1 : tensor<15x8xf32>, tensor<10x2xf64>, tensor<15xf32>, tensor<14x10xf64>, tensor<14x8x10xf64>
  }
}

