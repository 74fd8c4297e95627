#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0) -> ()>
#map3 = affine_map<(d0, d1) -> (d0 + d1)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [4, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<10xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), ?, shard(0)]>}, %arg1: tensor<15x14x2x4xf32>, %arg2: tensor<5x6x1x4xf32>, %arg3: tensor<i64> {dist.range = [-2, 16], dist.sharding = #dist.sharding<@m, dims = [], open = ["a1", "a2", "a0"]>}, %arg4: tensor<1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), shard(0), shard(0)]>}) -> (tensor<f32>, tensor<f32> {dist.sharding = #dist.sharding<@m, dims = [], open = ["a0":(1)2, "a2", "a0":(2)2], priority = 2>}, tensor<12xi32> {dist.sharding = #dist.sharding<@m, dims = [["a0":(1)2, "a2", "a0":(2)2, "a1"]]>}) {
    %cst = arith.constant dense<[[3, 1], [3, 8], [9, 7], [4, 0], [6, 8], [2, 1], [7, 4], [6, 9], [7, 1], [5, 1], [9, 7], [7, 0], [0, 6]]> : tensor<13x2xi32>
    %0 = tensor.empty() : tensor<13x2xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<13x2xi32>) outs(%0 : tensor<13x2xf32>) {
    ^bb0(%in: i32, %out: f32):
      %11 = arith.index_cast %in : i32 to index
      %extracted_2 = tensor.extract %arg0[%11] : tensor<10xf32>
      linalg.yield %extracted_2 : f32
    } -> tensor<13x2xf32>
    %2 = tensor.empty() : tensor<14xi32>
    %3 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%2 : tensor<14xi32>) {
    ^bb0(%out: i32):
      %c1 = arith.constant 1 : index
      %11 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %12 = arith.muli %c1, %c2 : index
      %13 = arith.addi %12, %11 : index
      %14 = arith.index_cast %13 : index to i32
      linalg.yield %14 : i32
    } -> tensor<14xi32>
    %inserted_slice = tensor.insert_slice %arg2 into %arg1[0, 0, 1, 0] [5, 6, 1, 4] [3, 1, 2, 1] : tensor<5x6x1x4xf32> into tensor<15x14x2x4xf32>
    %4 = dist.shard_tensor %inserted_slice, #dist.sharding<@m, dims = [[], [], ["a0"], ["a1"]]> : tensor<15x14x2x4xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1, #map2], iterator_types = ["reduction"]} ins(%arg0, %arg0 : tensor<10xf32>, tensor<10xf32>) outs(%cst_0 : tensor<f32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %11 = arith.subf %in, %in_2 : f32
      %12 = arith.mulf %11, %11 : f32
      %13 = arith.addf %12, %out : f32
      linalg.yield %13 : f32
    } -> tensor<f32>
    %cst_1 = arith.constant dense<6.250000e-02> : tensor<f32>
    %6 = arith.mulf %5, %cst_1 : tensor<f32>
    %extracted = tensor.extract %arg3[] : tensor<i64>
    %7 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %3[%7] [12] [1] : tensor<14xi32> to tensor<12xi32>
    %c0_i32 = arith.constant 0 : i32
    %splat = tensor.splat %c0_i32 : tensor<12xi32>
    %8 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "reduction"]} ins(%extracted_slice, %arg4 : tensor<12xi32>, tensor<1xi32>) outs(%splat : tensor<12xi32>) {
    ^bb0(%in: i32, %in_2: i32, %out: i32):
      %11 = arith.muli %in, %in_2 : i32
      %12 = arith.addi %11, %out : i32
      linalg.yield %12 : i32
    } -> tensor<12xi32>
    %9 = arith.addf %6, %6 : tensor<f32>
    %10 = dist.shard_tensor %6, #dist.sharding<@m, [replicate, replicate, replicate]> : tensor<f32>
    return %10, %9, %8 : tensor<f32>, tensor<f32>, tensor<12xi32>
  }
}

