#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [1, 4], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<17x12xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(1)]>}, %arg1: tensor<17xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg2: tensor<2x10x6xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1":(1)2], ["a1":(2)2], []], open = ["a0"]>}, %arg3: tensor<f32>, %arg4: tensor<7x10x11xf32>, %arg5: tensor<i64> {dist.range = [-2, 4]}) -> (tensor<2xf32>, tensor<7x10x11xf32>) {
    %0 = tensor.empty() : tensor<17xi32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<17xi32>) {
    ^bb0(%out: i32):
      %23 = linalg.index 0 : index
      %24 = arith.index_cast %23 : index to i32
      linalg.yield %24 : i32
    } -> tensor<17xi32>
    %2:2 = ext.sort dim = 0 keys = 1 ins(%arg1, %1 : tensor<17xf32>, tensor<17xi32>)
    %cst = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst : tensor<17x12xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %2#1 : tensor<17x12xf32>, tensor<17xi32>) outs(%splat : tensor<17x12xf32>) {
    ^bb0(%in: f32, %in_4: i32, %out: f32):
      %23 = linalg.index 2 : index
      %24 = arith.index_cast %23 : index to i32
      %25 = arith.cmpi eq, %in_4, %24 : i32
      %cst_5 = arith.constant 0.000000e+00 : f32
      %26 = arith.select %25, %in, %cst_5 : f32
      %27 = arith.addf %out, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<17x12xf32>
    %4 = tensor.empty() : tensor<17x12xf32>
    %5 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<17x12xf32>) outs(%4 : tensor<17x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.negf %in : f32
      %24 = linalg.index 0 : index
      %25 = arith.index_cast %24 : index to i32
      %26 = arith.sitofp %25 : i32 to f32
      %27 = arith.addf %23, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<17x12xf32>
    %6:2 = ext.sort dim = 0 keys = 1 ins(%2#1, %1 : tensor<17xi32>, tensor<17xi32>)
    %cst_0 = arith.constant 0.000000e+00 : f32
    %splat_1 = tensor.splat %cst_0 : tensor<17x12xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5, %6#1 : tensor<17x12xf32>, tensor<17xi32>) outs(%splat_1 : tensor<17x12xf32>) {
    ^bb0(%in: f32, %in_4: i32, %out: f32):
      %23 = linalg.index 2 : index
      %24 = arith.index_cast %23 : index to i32
      %25 = arith.cmpi eq, %in_4, %24 : i32
      %cst_5 = arith.constant 0.000000e+00 : f32
      %26 = arith.select %25, %in, %cst_5 : f32
      %27 = arith.addf %out, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<17x12xf32>
    %8 = dist.shard_tensor %arg1, #dist.sharding<@m, [?, shard(0)]> : tensor<17xf32>
    %collapsed = tensor.collapse_shape %arg0 [[0], [1]] : tensor<17x12xf32> into tensor<17x12xf32>
    %9 = dist.shard_tensor %7, #dist.sharding<@m, [?, shard(1)]> : tensor<17x12xf32>
    %cst_2 = arith.constant dense<[16, 16, 8, 13, 11, 9, 7, 7, 11]> : tensor<9xi32>
    %10 = tensor.empty() : tensor<9x12xf32>
    %11 = linalg.generic {indexing_maps = [#map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_2 : tensor<9xi32>) outs(%10 : tensor<9x12xf32>) {
    ^bb0(%in: i32, %out: f32):
      %23 = arith.index_cast %in : i32 to index
      %24 = linalg.index 1 : index
      %extracted_4 = tensor.extract %collapsed[%23, %24] : tensor<17x12xf32>
      linalg.yield %extracted_4 : f32
    } -> tensor<9x12xf32>
    %12 = ext.sort dim = 0 keys = 1 limit = 2 ins(%arg1 : tensor<17xf32>)
    %13 = tensor.empty() : tensor<2x10x6xf32>
    %14 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel", "parallel", "parallel"]} outs(%13 : tensor<2x10x6xf32>) {
    ^bb0(%out: f32):
      %23 = linalg.index 0 : index
      %24 = linalg.index 1 : index
      %25 = linalg.index 2 : index
      %c9 = arith.constant 9 : index
      %26 = arith.subi %c9, %24 : index
      %extracted_4 = tensor.extract %arg2[%23, %26, %25] : tensor<2x10x6xf32>
      linalg.yield %extracted_4 : f32
    } -> tensor<2x10x6xf32>
    %collapsed_3 = tensor.collapse_shape %14 [[0, 1], [2]] : tensor<2x10x6xf32> into tensor<20x6xf32>
    %15 = tensor.empty() : tensor<2xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%12, %12 : tensor<2xf32>, tensor<2xf32>) outs(%15 : tensor<2xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %23 = arith.addf %in, %in_4 : f32
      linalg.yield %23 : f32
    } -> tensor<2xf32>
    %17 = tensor.empty() : tensor<2xf32>
    %18 = linalg.softmax dimension(0) ins(%16 : tensor<2xf32>) outs(%17 : tensor<2xf32>) -> tensor<2xf32>
    %19 = tensor.empty() : tensor<17xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel"]} ins(%8, %arg3 : tensor<17xf32>, tensor<f32>) outs(%19 : tensor<17xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %23 = arith.mulf %in, %in_4 : f32
      linalg.yield %23 : f32
    } -> tensor<17xf32>
    %21 = dist.shard_tensor %arg4, #dist.sharding<@m, [replicate, shard(0)]> : tensor<7x10x11xf32>
    %extracted = tensor.extract %arg5[] : tensor<i64>
    %22 = arith.index_cast %extracted : i64 to index
    %inserted_slice = tensor.insert_slice %12 into %18[%22] [2] [1] : tensor<2xf32> into tensor<2xf32>
    return %inserted_slice, %21 : tensor<2xf32>, tensor<7x10x11xf32>
  }
}

