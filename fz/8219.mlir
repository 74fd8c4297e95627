#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map4 = affine_map<(d0, d1) -> (d1, d0)>
#map5 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [6], dim_names = ["a0"])
  func.func @main(%arg0: tensor<2x15xi32> {dist.range = [-4, 5]}, %arg1: tensor<15xi32> {dist.range = [-1, 12], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<1x2x17xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg3: tensor<7xi32> {dist.range = [-1, 16], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<7x4xi32>, tensor<4x15xi32>, tensor<4x15xi32>) {
    %c0_i32 = arith.constant 0 : i32
    %splat = tensor.splat %c0_i32 : tensor<4x15xi32>
    %inserted_slice = tensor.insert_slice %arg0 into %splat[0, 0] [2, 15] [2, 1] : tensor<2x15xi32> into tensor<4x15xi32>
    %cst = arith.constant dense<0> : tensor<4x15xi32>
    %inserted_slice_0 = tensor.insert_slice %arg0 into %cst[1, 0] [2, 15] [2, 1] : tensor<2x15xi32> into tensor<4x15xi32>
    %0 = tensor.empty() : tensor<4x15xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%inserted_slice, %inserted_slice_0 : tensor<4x15xi32>, tensor<4x15xi32>) outs(%0 : tensor<4x15xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %11 = arith.addi %in, %in_3 : i32
      linalg.yield %11 : i32
    } -> tensor<4x15xi32>
    %cst_1 = arith.constant dense<0> : tensor<2x11xi32>
    %2 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg0, %arg1 : tensor<2x15xi32>, tensor<15xi32>) outs(%cst_1 : tensor<2x11xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %11 = linalg.index 0 : index
      %12 = arith.index_cast %11 : index to i32
      %13 = arith.cmpi eq, %12, %in_3 : i32
      %c0_i32_4 = arith.constant 0 : i32
      %14 = arith.select %13, %in, %c0_i32_4 : i32
      %15 = arith.addi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<2x11xi32>
    %c0_i32_2 = arith.constant 0 : i32
    %3 = tensor.empty() : tensor<i32>
    %4 = linalg.fill ins(%c0_i32_2 : i32) outs(%3 : tensor<i32>) -> tensor<i32>
    %reduced = linalg.reduce ins(%arg1 : tensor<15xi32>) outs(%4 : tensor<i32>) dimensions = [0] 
      (%in: i32, %init: i32) {
        %11 = arith.addi %in, %init : i32
        linalg.yield %11 : i32
      }
    %5 = dist.shard_tensor %arg2, #dist.sharding<@m, dims = [[], [], ["a0":(1)3]]> : tensor<1x2x17xi32>
    %6 = tensor.empty() : tensor<4x15xi32>
    %7 = tensor.empty() : tensor<15x4xi32>
    %8:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map4], iterator_types = ["parallel", "parallel"]} ins(%1, %1 : tensor<4x15xi32>, tensor<4x15xi32>) outs(%6, %7 : tensor<4x15xi32>, tensor<15x4xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32, %out_4: i32):
      %11 = arith.addi %in, %in_3 : i32
      %12 = arith.maxsi %in, %in_3 : i32
      linalg.yield %11, %12 : i32, i32
    } -> (tensor<4x15xi32>, tensor<15x4xi32>)
    %9 = tensor.empty() : tensor<7x4xi32>
    %10 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<7xi32>) outs(%9 : tensor<7x4xi32>) {
    ^bb0(%in: i32, %out: i32):
      %11 = arith.index_cast %in : i32 to index
      %12 = linalg.index 1 : index
      %extracted = tensor.extract %8#1[%11, %12] : tensor<15x4xi32>
      linalg.yield %extracted : i32
    } -> tensor<7x4xi32>
    return %10, %8#0, %1 : tensor<7x4xi32>, tensor<4x15xi32>, tensor<4x15xi32>
  }
}

