#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  dist.process_mesh @m(shape = [1, 6, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<13x1x11xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, shard(0), shard(0)]>}, %arg1: tensor<7x16x10xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, shard(0), ?]>}, %arg2: tensor<9xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, [replicate, replicate, shard(0)]>}, %arg3: tensor<7x12xi32> {dist.range = [1, 4], dist.sharding = #dist.sharding<@m, dims = [[], ["a1"]], open = ["a2", "a0"]>}, %arg4: tensor<4x5x11xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1":(1)3], [], []], partial = [sum("a2"), sum("a0")]>}) -> (tensor<13x1x11xi32> {dist.sharding = #dist.sharding<@m, [replicate, ?, shard(2)]>}, tensor<16x10x7xi32>, tensor<13x1x7xi32>, tensor<7x12xi32>) {
    %cst = arith.constant dense<0> : tensor<i64>
    %extracted = tensor.extract %cst[] : tensor<i64>
    %0 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %arg0[0, 0, %0] [13, 1, 7] [1, 1, 1] : tensor<13x1x11xi32> to tensor<13x1x7xi32>
    %1 = tensor.empty() : tensor<16x10x7xi32>
    %transposed = linalg.transpose ins(%arg1 : tensor<7x16x10xi32>) outs(%1 : tensor<16x10x7xi32>) permutation = [1, 2, 0] 
    %c3 = arith.constant 3 : index
    %extracted_0 = tensor.extract %arg2[%c3] : tensor<9xi32>
    %2 = arith.index_cast %extracted_0 : i32 to index
    %c0 = arith.constant 0 : index
    %3:3 = scf.while (%arg5 = %c0, %arg6 = %transposed, %arg7 = %extracted_slice) : (index, tensor<16x10x7xi32>, tensor<13x1x7xi32>) -> (index, tensor<16x10x7xi32>, tensor<13x1x7xi32>) {
      %9 = arith.cmpi slt, %arg5, %2 : index
      scf.condition(%9) %arg5, %arg6, %arg7 : index, tensor<16x10x7xi32>, tensor<13x1x7xi32>
    } do {
    ^bb0(%arg5: index, %arg6: tensor<16x10x7xi32>, %arg7: tensor<13x1x7xi32>):
      %cst_2 = arith.constant dense<[[12], [11], [12], [7], [1], [10], [3]]> : tensor<7x1xindex>
      %gather = tensor.gather %extracted_slice[%cst_2] gather_dims([0]) : (tensor<13x1x7xi32>, tensor<7x1xindex>) -> tensor<7x1x1x7xi32>
      %c1 = arith.constant 1 : index
      %9 = arith.addi %arg5, %c1 : index
      scf.yield %9, %arg6, %arg7 : index, tensor<16x10x7xi32>, tensor<13x1x7xi32>
    }
    %4 = arith.cmpi sgt, %transposed, %transposed : tensor<16x10x7xi32>
    %5 = arith.select %4, %transposed, %3#1 : tensor<16x10x7xi1>, tensor<16x10x7xi32>
    %6 = tensor.empty() : tensor<7x10x16xi32>
    %transposed_1 = linalg.transpose ins(%3#1 : tensor<16x10x7xi32>) outs(%6 : tensor<7x10x16xi32>) permutation = [2, 1, 0] 
    %c252_i32 = arith.constant 252 : i32
    %7:3 = scf.while (%arg5 = %arg3, %arg6 = %extracted_slice, %arg7 = %5) : (tensor<7x12xi32>, tensor<13x1x7xi32>, tensor<16x10x7xi32>) -> (tensor<7x12xi32>, tensor<13x1x7xi32>, tensor<16x10x7xi32>) {
      %c0_i32 = arith.constant 0 : i32
      %splat = tensor.splat %c0_i32 : tensor<i32>
      %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg5 : tensor<7x12xi32>) outs(%splat : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %11 = arith.addi %out, %in : i32
        linalg.yield %11 : i32
      } -> tensor<i32>
      %extracted_2 = tensor.extract %9[] : tensor<i32>
      %10 = arith.cmpi slt, %extracted_2, %c252_i32 : i32
      scf.condition(%10) %arg5, %arg6, %arg7 : tensor<7x12xi32>, tensor<13x1x7xi32>, tensor<16x10x7xi32>
    } do {
    ^bb0(%arg5: tensor<7x12xi32>, %arg6: tensor<13x1x7xi32>, %arg7: tensor<16x10x7xi32>):
      %9 = arith.maxsi %transposed_1, %transposed_1 : tensor<7x10x16xi32>
      %expanded = tensor.expand_shape %arg3 [[0, 1, 2], [3]] output_shape [7, 1, 1, 12] : tensor<7x12xi32> into tensor<7x1x1x12xi32>
      %10 = dist.shard_tensor %arg4, #dist.sharding<@m, [shard(2), shard(2), replicate]> : tensor<4x5x11xf64>
      %11 = arith.addi %arg5, %arg5 : tensor<7x12xi32>
      scf.yield %11, %arg6, %arg7 : tensor<7x12xi32>, tensor<13x1x7xi32>, tensor<16x10x7xi32>
    }
    %8 = arith.muli %arg0, %arg0 : tensor<13x1x11xi32>
    return %8, %7#2, %7#1, %7#0 : tensor<13x1x11xi32>, tensor<16x10x7xi32>, tensor<13x1x7xi32>, tensor<7x12xi32>
  }
}

