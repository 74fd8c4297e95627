#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
#map2 = affine_map<(d0, d1, d2) -> ()>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
#map5 = affine_map<(d0) -> (d0)>
#map6 = affine_map<(d0) -> ()>
#map7 = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<12x8x12x1xf64>, %arg1: tensor<1x1x12x1xf64> {dist.sharding = #dist.sharding<@m, [shard(1)], priority = 0>}, %arg2: tensor<15x7x9xi32> {dist.range = [-4, 5]}, %arg3: tensor<7x9x15xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg4: tensor<9xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)], priority = 0>}, %arg5: tensor<9xi64> {dist.range = [-1, 18], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg6: tensor<17xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg7: tensor<4x16xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg8: tensor<4x1x16xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg9: tensor<4xf64>, %arg10: tensor<10xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg11: tensor<14xi32> {dist.range = [-4, 5]}, %arg12: tensor<23x3xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], []], open = ["a0"]>}, %arg13: tensor<8xi64> {dist.range = [-2, 25], dist.sharding = #dist.sharding<@m, [partial(min)], priority = 2>}) -> (tensor<4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)], priority = 2>}, tensor<8x3xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, tensor<i32>) {
    %inserted_slice = tensor.insert_slice %arg1 into %arg0[11, 3, 0, 0] [1, 1, 12, 1] [1, 1, 1, 1] : tensor<1x1x12x1xf64> into tensor<12x8x12x1xf64>
    %0 = dist.shard_tensor %arg0, #dist.sharding<@m, dims = [[], [], [], []], open = ["a0"]> : tensor<12x8x12x1xf64>
    %c0_i32 = arith.constant 0 : i32
    %1 = tensor.empty() : tensor<i32>
    %2 = linalg.fill ins(%c0_i32 : i32) outs(%1 : tensor<i32>) -> tensor<i32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%arg2, %arg3 : tensor<15x7x9xi32>, tensor<7x9x15xi32>) outs(%2 : tensor<i32>) {
    ^bb0(%in: i32, %in_2: i32, %out: i32):
      %14 = arith.muli %in, %in_2 : i32
      %15 = arith.addi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<i32>
    %4 = linalg.generic {indexing_maps = [#map3, #map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%arg4, %arg5 : tensor<9xf32>, tensor<9xi64>) outs(%arg6 : tensor<17xf32>) {
    ^bb0(%in: f32, %in_2: i64, %out: f32):
      %14 = linalg.index 0 : index
      %15 = arith.index_cast %14 : index to i64
      %16 = arith.cmpi eq, %15, %in_2 : i64
      %cst_3 = arith.constant 0x7F800000 : f32
      %17 = arith.select %16, %in, %cst_3 : f32
      %18 = arith.minimumf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<17xf32>
    %5 = arith.subf %arg6, %4 : tensor<17xf32>
    %cst = arith.constant dense<[[0], [1], [3], [2]]> : tensor<4x1xindex>
    %scatter = tensor.scatter %arg8 into %arg7[%cst] scatter_dims([0]) unique : (tensor<4x1x16xi32>, tensor<4x16xi32>, tensor<4x1xindex>) -> tensor<4x16xi32>
    %c2 = arith.constant 2 : index
    %extracted = tensor.extract %arg10[%c2] : tensor<10xi32>
    %6 = arith.index_cast %extracted : i32 to index
    %c1 = arith.constant 1 : index
    %7 = arith.cmpi sgt, %6, %c1 : index
    %8:2 = scf.if %7 -> (tensor<4xf64>, tensor<i32>) {
      %14 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["reduction"]} ins(%arg11 : tensor<14xi32>) outs(%3 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %15 = arith.addi %out, %in : i32
        linalg.yield %15 : i32
      } -> tensor<i32>
      scf.yield %arg9, %14 : tensor<4xf64>, tensor<i32>
    } else {
      %c0_i32_2 = arith.constant 0 : i32
      %padded = tensor.pad %scatter low[0, 0] high[0, 3] {
      ^bb0(%arg14: index, %arg15: index):
        tensor.yield %c0_i32_2 : i32
      } : tensor<4x16xi32> to tensor<4x19xi32>
      scf.yield %arg9, %3 : tensor<4xf64>, tensor<i32>
    }
    %9 = tensor.empty() : tensor<8x23xi32>
    %10 = linalg.generic {indexing_maps = [#map4, #map7], iterator_types = ["parallel", "parallel"]} ins(%arg13 : tensor<8xi64>) outs(%9 : tensor<8x23xi32>) {
    ^bb0(%in: i64, %out: i32):
      %14 = linalg.index 1 : index
      %15 = arith.index_cast %14 : index to i64
      %16 = arith.cmpi eq, %in, %15 : i64
      %17 = arith.extui %16 : i1 to i32
      linalg.yield %17 : i32
    } -> tensor<8x23xi32>
    %c0_i32_0 = arith.constant 0 : i32
    %11 = tensor.empty() : tensor<8x3xi32>
    %12 = linalg.fill ins(%c0_i32_0 : i32) outs(%11 : tensor<8x3xi32>) -> tensor<8x3xi32>
    %13 = linalg.matmul ins(%10, %arg12 : tensor<8x23xi32>, tensor<23x3xi32>) outs(%12 : tensor<8x3xi32>) -> tensor<8x3xi32>
    %extracted_slice = tensor.extract_slice %8#0[2] [2] [1] : tensor<4xf64> to tensor<2xf64>
    %extracted_slice_1 = tensor.extract_slice %8#0[0] [2] [1] : tensor<4xf64> to tensor<2xf64>
    %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_1 : (tensor<2xf64>, tensor<2xf64>) -> tensor<4xf64>
    return %concat, %13, %8#1 : tensor<4xf64>, tensor<8x3xi32>, tensor<i32>
  }
}

