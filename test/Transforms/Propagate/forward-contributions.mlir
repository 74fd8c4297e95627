// RUN: tessera explain %s | FileCheck %s

// The gradient of a block of grouped queries and a residual sum. Ops with several candidate cuts
// may take the contributions of a product as it computes them, cut over "d" and partial over "t":
// the residual sum is reduced once over "t", and never over "d".
// CHECK: collectives
// CHECK-NOT: @mesh [d] of 2
// CHECK: total: 4 collectives, 1379840 bytes
dist.process_mesh @mesh(shape = [2, 4], dim_names = ["d", "t"])

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1, d2)>
#map6 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4, d5)>
#map7 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d1, d3, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4, d5)>
#map10 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5, d3)>
#map11 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d2)>
#map12 = affine_map<(d0) -> (d0)>

func.func @main(%arg0: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg1: tensor<16x2x4x64x64xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg2: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg3: tensor<16x64x1408xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), shard(2)]>},
                %arg7: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg8: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg9: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg10: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg11: tensor<512xf32> {dist.sharding = #dist.sharding<@mesh, [replicate, replicate]>},
                %arg13: tensor<1408x512xf32> {dist.sharding = #dist.sharding<@mesh, [replicate, shard(0)]>},
                %arg16: tensor<512x512xf32> {dist.sharding = #dist.sharding<@mesh, [replicate, shard(0)]>},
                %arg19: tensor<512x128xf32> {dist.sharding = #dist.sharding<@mesh, [replicate, shard(1)]>},
                %arg20: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
                %arg21: tensor<16x64x512xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>})
    -> (tensor<512xf32> {dist.sharding = #dist.sharding<@mesh, [replicate, replicate]>}) {
  %cst = arith.constant 1.000000e-01 : f32
  %cst_0 = arith.constant dense<0.000000e+00> : tensor<16x64x2x64xf32>
  %cst_1 = arith.constant dense<0.000000e+00> : tensor<512xf32>
  %cst_2 = arith.constant 1.90734863E-6 : f32
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<16x64x2x4x64xf32>
  %cst_4 = arith.constant dense<0.000000e+00> : tensor<16x64x128xf32>
  %cst_5 = arith.constant 2.000000e+00 : f32
  %cst_6 = arith.constant dense<0.000000e+00> : tensor<16x64x512xf32>
  %0 = tensor.empty() : tensor<16x64x512xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg11 : tensor<16x64x512xf32>, tensor<512xf32>) outs(%0 : tensor<16x64x512xf32>) {
  ^bb0(%in: f32, %in_9: f32, %out: f32):
    %25 = arith.mulf %in, %in_9 : f32
    linalg.yield %25 : f32
  } -> tensor<16x64x512xf32>
  %2 = linalg.contract indexing_maps = [#map2, #map3, #map4] ins(%1, %arg19 : tensor<16x64x512xf32>, tensor<512x128xf32>) outs(%cst_4 : tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
  %expanded = tensor.expand_shape %2 [[0], [1], [2, 3]] output_shape [16, 64, 2, 64] : tensor<16x64x128xf32> into tensor<16x64x2x64xf32>
  %3 = linalg.contract indexing_maps = [#map5, #map6, #map7] ins(%expanded, %arg1 : tensor<16x64x2x64xf32>, tensor<16x2x4x64x64xf32>) outs(%cst_3 : tensor<16x64x2x4x64xf32>) -> tensor<16x64x2x4x64xf32>
  %collapsed = tensor.collapse_shape %3 [[0], [1], [2, 3, 4]] : tensor<16x64x2x4x64xf32> into tensor<16x64x512xf32>
  %4 = linalg.contract indexing_maps = [#map2, #map3, #map4] ins(%collapsed, %arg16 : tensor<16x64x512xf32>, tensor<512x512xf32>) outs(%cst_6 : tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
  %5 = arith.addf %arg20, %4 : tensor<16x64x512xf32>
  %6 = linalg.contract indexing_maps = [#map2, #map3, #map4] ins(%arg3, %arg13 : tensor<16x64x1408xf32>, tensor<1408x512xf32>) outs(%cst_6 : tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
  %7 = arith.addf %5, %6 : tensor<16x64x512xf32>
  %8 = arith.subf %7, %arg21 : tensor<16x64x512xf32>
  %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<16x64x512xf32>) outs(%0 : tensor<16x64x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %25 = arith.mulf %in, %cst_5 : f32
    linalg.yield %25 : f32
  } -> tensor<16x64x512xf32>
  %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<16x64x512xf32>) outs(%0 : tensor<16x64x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %25 = arith.mulf %in, %cst_2 : f32
    linalg.yield %25 : f32
  } -> tensor<16x64x512xf32>
  %11 = arith.addf %10, %arg2 : tensor<16x64x512xf32>
  %12 = arith.addf %11, %arg7 : tensor<16x64x512xf32>
  %13 = arith.addf %12, %arg8 : tensor<16x64x512xf32>
  %14 = linalg.contract indexing_maps = [#map2, #map8, #map4] ins(%13, %arg16 : tensor<16x64x512xf32>, tensor<512x512xf32>) outs(%cst_6 : tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
  %expanded_7 = tensor.expand_shape %14 [[0], [1], [2, 3, 4]] output_shape [16, 64, 2, 4, 64] : tensor<16x64x512xf32> into tensor<16x64x2x4x64xf32>
  %15 = tensor.empty() : tensor<16x2x64x4x64xf32>
  %transposed = linalg.transpose ins(%expanded_7 : tensor<16x64x2x4x64xf32>) outs(%15 : tensor<16x2x64x4x64xf32>) permutation = [0, 2, 4, 3, 1] 
  %16 = linalg.contract indexing_maps = [#map9, #map10, #map11] ins(%transposed, %arg1 : tensor<16x2x64x4x64xf32>, tensor<16x2x4x64x64xf32>) outs(%cst_0 : tensor<16x64x2x64xf32>) -> tensor<16x64x2x64xf32>
  %collapsed_8 = tensor.collapse_shape %16 [[0], [1], [2, 3]] : tensor<16x64x2x64xf32> into tensor<16x64x128xf32>
  %17 = linalg.contract indexing_maps = [#map2, #map8, #map4] ins(%collapsed_8, %arg19 : tensor<16x64x128xf32>, tensor<512x128xf32>) outs(%cst_6 : tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
  %18 = arith.addf %17, %arg9 : tensor<16x64x512xf32>
  %19 = arith.addf %18, %arg10 : tensor<16x64x512xf32>
  %20 = arith.mulf %arg0, %19 : tensor<16x64x512xf32>
  %21 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction", "parallel"]} ins(%20 : tensor<16x64x512xf32>) outs(%cst_1 : tensor<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %25 = arith.addf %out, %in : f32
    linalg.yield %25 : f32
  } -> tensor<512xf32>
  %22 = tensor.empty() : tensor<512xf32>
  %23 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = ["parallel"]} ins(%21 : tensor<512xf32>) outs(%22 : tensor<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %25 = arith.mulf %in, %cst : f32
    linalg.yield %25 : f32
  } -> tensor<512xf32>
  %24 = arith.subf %arg11, %23 : tensor<512xf32>
  return %24 : tensor<512xf32>
}
