#map = affine_map<(d0, d1, d2) -> (d1, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1, d0)>
#map5 = affine_map<(d0, d1) -> (d1)>
#map6 = affine_map<(d0, d1) -> (d0, -d1 + 10)>
module {
  dist.process_mesh @m(shape = [2], dim_names = ["a0"])
  func.func @main(%arg0: tensor<11x7xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg1: tensor<8x1xindex> {dist.range = [-2, 9], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<10xi32> {dist.range = [-1, 8]}, %arg3: tensor<f32> {dist.sharding = #dist.sharding<@m, [replicate], priority = 2>}, %arg4: tensor<11x8xf32>) -> (tensor<8x11xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<8x1x11xf32>) {
    %gather = tensor.gather %arg0[%arg1] gather_dims([1]) : (tensor<11x7xf32>, tensor<8x1xindex>) -> tensor<8x11x1xf32>
    %0 = dist.shard_tensor %arg0, #dist.sharding<@m, dims = [[], ["a0"]]> : tensor<11x7xf32>
    %cst = arith.constant 1.000000e+00 : f32
    %1 = tensor.empty() : tensor<11x10xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<11x10xf32>) -> tensor<11x10xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["reduction", "parallel", "parallel"]} ins(%0, %arg2 : tensor<11x7xf32>, tensor<10xi32>) outs(%2 : tensor<11x10xf32>) {
    ^bb0(%in: f32, %in_2: i32, %out: f32):
      %13 = linalg.index 0 : index
      %14 = arith.index_cast %13 : index to i32
      %15 = arith.cmpi eq, %14, %in_2 : i32
      %cst_3 = arith.constant 1.000000e+00 : f32
      %16 = arith.select %15, %in, %cst_3 : f32
      %17 = arith.mulf %out, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<11x10xf32>
    %collapsed = tensor.collapse_shape %gather [[0], [1], [2]] : tensor<8x11x1xf32> into tensor<8x11x1xf32>
    %4 = math.exp %arg3 : tensor<f32>
    %cst_0 = arith.constant 1.000000e+00 : f32
    %5 = tensor.empty() : tensor<8x11xf32>
    %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<8x11xf32>) -> tensor<8x11xf32>
    %reduced = linalg.reduce ins(%collapsed : tensor<8x11x1xf32>) outs(%6 : tensor<8x11xf32>) dimensions = [2] 
      (%in: f32, %init: f32) {
        %13 = arith.mulf %in, %init : f32
        linalg.yield %13 : f32
      }
    %cst_1 = arith.constant 0.000000e+00 : f32
    %7 = tensor.empty() : tensor<11xf32>
    %8 = linalg.fill ins(%cst_1 : f32) outs(%7 : tensor<11xf32>) -> tensor<11xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["reduction", "parallel"]} ins(%reduced, %arg4 : tensor<8x11xf32>, tensor<11x8xf32>) outs(%8 : tensor<11xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %13 = arith.mulf %in, %in_2 : f32
      %14 = arith.addf %out, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<11xf32>
    %10 = tensor.empty() : tensor<8x1x11xf32>
    %transposed = linalg.transpose ins(%gather : tensor<8x11x1xf32>) outs(%10 : tensor<8x1x11xf32>) permutation = [0, 2, 1] 
    %11 = tensor.empty() : tensor<8x11xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel"]} ins(%reduced : tensor<8x11xf32>) outs(%11 : tensor<8x11xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8x11xf32>
    return %12, %transposed : tensor<8x11xf32>, tensor<8x1x11xf32>
  }
}

