#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0 + d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [2, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<10x13x2xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg1: tensor<5x13x2xf32>, %arg2: tensor<9x13x2xf32>, %arg3: tensor<12x1xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(1)], priority = 2>}, %arg4: tensor<12xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"]]>}, %arg5: tensor<7x12x10xf32>, %arg6: tensor<12xi32> {dist.range = [-2, 3], dist.sharding = #dist.sharding<@m, [shard(0), partial(min)]>}) -> (tensor<1xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a0"]]>}, tensor<12x1xf32>) {
    %0 = tensor.empty() : tensor<10x13x2xf32>
    %1 = linalg.softmax dimension(1) ins(%arg0 : tensor<10x13x2xf32>) outs(%0 : tensor<10x13x2xf32>) -> tensor<10x13x2xf32>
    %2 = dist.shard_tensor %1, #dist.sharding<@m, dims = [[], [], []]> : tensor<10x13x2xf32>
    %concat = tensor.concat dim(0) %2, %arg1, %arg2 : (tensor<10x13x2xf32>, tensor<5x13x2xf32>, tensor<9x13x2xf32>) -> tensor<24x13x2xf32>
    %3 = dist.reshard %2 to #dist.sharding<@m, [shard(1), replicate]> : tensor<10x13x2xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg3 : tensor<12x1xf32>) outs(%arg4 : tensor<12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.addf %out, %in : f32
      linalg.yield %8 : f32
    } -> tensor<12xf32>
    %5 = tensor.empty() : tensor<12x1xf32>
    %broadcasted = linalg.broadcast ins(%arg4 : tensor<12xf32>) outs(%5 : tensor<12x1xf32>) dimensions = [1] 
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %extracted = tensor.extract %arg5[%c4, %c5, %c1] : tensor<7x12x10xf32>
    %6 = arith.addf %extracted, %extracted : f32
    %splat = tensor.splat %6 : tensor<12xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<1xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["reduction", "parallel"]} ins(%splat, %arg6 : tensor<12xf32>, tensor<12xi32>) outs(%cst : tensor<1xf32>) {
    ^bb0(%in: f32, %in_0: i32, %out: f32):
      %8 = linalg.index 1 : index
      %9 = arith.index_cast %8 : index to i32
      %10 = arith.cmpi eq, %in_0, %9 : i32
      %cst_1 = arith.constant 0x7F800000 : f32
      %11 = arith.select %10, %in, %cst_1 : f32
      %12 = arith.minimumf %out, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<1xf32>
    return %7, %broadcasted : tensor<1xf32>, tensor<12x1xf32>
  }
}

