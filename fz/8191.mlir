#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2 * 2)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [3, 4], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<8x17x3x4xi32> {dist.range = [-4, 5]}, %arg1: tensor<8x8x3xf64> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg2: tensor<8x8x2xf64>, %arg3: tensor<14xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, ?]>}, %arg4: tensor<20xi32> {dist.range = [-2, 16], dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg5: tensor<1x13x1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg6: tensor<i64> {dist.range = [-2, 10]}, %arg7: tensor<i64> {dist.range = [-2, 10]}, %arg8: tensor<2x5x2xf64>, %arg9: tensor<8x3xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg10: tensor<1x14x1xi32> {dist.range = [-4, 5]}) -> (tensor<1x14x1xi32>, tensor<8x1x3xi64> {dist.sharding = #dist.sharding<@m, [shard(2, order = 0), shard(2, order = 1)]>}, tensor<8x8x2xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], ["a1"]], priority = 1>}) {
    %cst = arith.constant dense<"0xFFFFFFFF0300000003000000FEFFFFFFFFFFFFFF00000000FFFFFFFFFDFFFFFF00000000FFFFFFFF000000000100000003000000020000000000000002000000030000000200000000000000FDFFFFFFFDFFFFFFFEFFFFFFFEFFFFFFFFFFFFFFFDFFFFFFFEFFFFFF0000000001000000020000000200000002000000010000000000000001000000FEFFFFFFFFFFFFFF02000000020000000100000003000000FEFFFFFF03000000FDFFFFFFFEFFFFFFFDFFFFFFFFFFFFFFFFFFFFFFFDFFFFFF000000000200000003000000FDFFFFFF01000000FEFFFFFFFDFFFFFF010000000200000003000000FDFFFFFFFFFFFFFFFDFFFFFFFDFFFFFFFEFFFFFFFEFFFFFF010000000100000003000000FEFFFFFF0300000002000000FEFFFFFF01000000FEFFFFFFFEFFFFFF0300000000000000010000000100000000000000FEFFFFFF010000000200000001000000FDFFFFFF00000000020000000100000002000000010000000000000003000000FDFFFFFF02000000000000000100000002000000FDFFFFFF0200000001000000FFFFFFFFFDFFFFFF03000000FFFFFFFFFFFFFFFF0300000000000000FFFFFFFF01000000FEFFFFFFFDFFFFFFFDFFFFFFFFFFFFFF03000000FEFFFFFFFEFFFFFFFDFFFFFFFEFFFFFF0000000002000000FDFFFFFFFFFFFFFFFDFFFFFF0300000003000000FFFFFFFF02000000FDFFFFFFFFFFFFFF0100000003000000FFFFFFFF03000000FEFFFFFFFEFFFFFF020000000200000000000000FFFFFFFF0100000003000000FEFFFFFF01000000FEFFFFFFFEFFFFFF03000000FFFFFFFFFFFFFFFFFEFFFFFFFDFFFFFF0100000002000000FDFFFFFF03000000FFFFFFFFFEFFFFFF010000000200000002000000FDFFFFFFFFFFFFFFFFFFFFFF02000000020000000100000002000000FEFFFFFFFFFFFFFFFFFFFFFF"> : tensor<7x6x1x4xi32>
    %inserted_slice = tensor.insert_slice %cst into %arg0[0, 5, 2, 0] [7, 6, 1, 4] [1, 2, 1, 1] : tensor<7x6x1x4xi32> into tensor<8x17x3x4xi32>
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<8x8x2xf64>) outs(%arg1 : tensor<8x8x3xf64>) {
    ^bb0(%in: f64, %out: f64):
      linalg.yield %in : f64
    } -> tensor<8x8x3xf64>
    %cst_0 = arith.constant dense<[0, -1, -2, 3, 3, 3, -3, 0, 1, 2, -1, 0, 0, 1]> : tensor<14xi32>
    %1 = arith.maxsi %cst_0, %arg3 : tensor<14xi32>
    %2 = tensor.empty() : tensor<14xi32>
    %3 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%2 : tensor<14xi32>) {
    ^bb0(%out: i32):
      %12 = linalg.index 0 : index
      %c13 = arith.constant 13 : index
      %13 = arith.subi %c13, %12 : index
      %extracted_5 = tensor.extract %arg3[%13] : tensor<14xi32>
      linalg.yield %extracted_5 : i32
    } -> tensor<14xi32>
    %expanded = tensor.expand_shape %3 [[0, 1, 2]] output_shape [1, 14, 1] : tensor<14xi32> into tensor<1x14x1xi32>
    %c1_i32 = arith.constant 1 : i32
    %4 = tensor.empty() : tensor<20xi32>
    %5 = linalg.fill ins(%c1_i32 : i32) outs(%4 : tensor<20xi32>) -> tensor<20xi32>
    %6 = linalg.generic {indexing_maps = [#map3, #map4, #map4], iterator_types = ["reduction", "parallel"]} ins(%arg3, %arg4 : tensor<14xi32>, tensor<20xi32>) outs(%5 : tensor<20xi32>) {
    ^bb0(%in: i32, %in_5: i32, %out: i32):
      %12 = linalg.index 0 : index
      %13 = arith.index_cast %12 : index to i32
      %14 = arith.cmpi eq, %in_5, %13 : i32
      %c1_i32_6 = arith.constant 1 : i32
      %15 = arith.select %14, %in, %c1_i32_6 : i32
      %16 = arith.muli %out, %15 : i32
      linalg.yield %16 : i32
    } -> tensor<20xi32>
    %inserted_slice_1 = tensor.insert_slice %arg5 into %expanded[0, 0, 0] [1, 13, 1] [1, 1, 1] : tensor<1x13x1xi32> into tensor<1x14x1xi32>
    %7 = dist.shard_tensor %expanded, #dist.sharding<@m, [shard(2), ?]> : tensor<1x14x1xi32>
    %extracted = tensor.extract %arg6[] : tensor<i64>
    %8 = arith.index_cast %extracted : i64 to index
    %extracted_2 = tensor.extract %arg7[] : tensor<i64>
    %9 = arith.index_cast %extracted_2 : i64 to index
    %inserted_slice_3 = tensor.insert_slice %arg8 into %arg2[%8, %9, 0] [2, 5, 2] [1, 1, 1] : tensor<2x5x2xf64> into tensor<8x8x2xf64>
    %expanded_4 = tensor.expand_shape %arg9 [[0], [1, 2]] output_shape [8, 1, 3] : tensor<8x3xi64> into tensor<8x1x3xi64>
    %10 = tensor.empty() : tensor<1x14x1xi32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %arg10 : tensor<1x14x1xi32>, tensor<1x14x1xi32>) outs(%10 : tensor<1x14x1xi32>) {
    ^bb0(%in: i32, %in_5: i32, %out: i32):
      %12 = arith.minsi %in, %in_5 : i32
      linalg.yield %12 : i32
    } -> tensor<1x14x1xi32>
    return %11, %expanded_4, %inserted_slice_3 : tensor<1x14x1xi32>, tensor<8x1x3xi64>, tensor<8x8x2xf64>
  }
}

