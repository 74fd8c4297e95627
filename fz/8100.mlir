#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1) -> ()>
module {
  dist.process_mesh @m(shape = [2, 6], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<17x16x7xi64> {dist.range = [-4, 5]}, %arg1: tensor<12xi32> {dist.range = [1, 4]}, %arg2: tensor<12xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate]>}, %arg3: tensor<17x16x7x4xi64> {dist.range = [-4, 5]}, %arg4: tensor<1x11xf32>, %arg5: tensor<5xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg6: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate]>}, %arg7: tensor<4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1"]]>}) -> (tensor<12xi32>, tensor<4x12xi32>) {
    %c36_i32 = arith.constant 36 : i32
    %0:2 = scf.while (%arg8 = %arg1, %arg9 = %arg0) : (tensor<12xi32>, tensor<17x16x7xi64>) -> (tensor<12xi32>, tensor<17x16x7xi64>) {
      %cst_6 = arith.constant dense<0> : tensor<i32>
      %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%arg8 : tensor<12xi32>) outs(%cst_6 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %15 = arith.addi %out, %in : i32
        linalg.yield %15 : i32
      } -> tensor<i32>
      %extracted = tensor.extract %13[] : tensor<i32>
      %14 = arith.cmpi slt, %extracted, %c36_i32 : i32
      scf.condition(%14) %arg8, %arg9 : tensor<12xi32>, tensor<17x16x7xi64>
    } do {
    ^bb0(%arg8: tensor<12xi32>, %arg9: tensor<17x16x7xi64>):
      %c0_i32_6 = arith.constant 0 : i32
      %splat = tensor.splat %c0_i32_6 : tensor<i32>
      %13 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%arg1, %arg2 : tensor<12xi32>, tensor<12xi32>) outs(%splat : tensor<i32>) {
      ^bb0(%in: i32, %in_7: i32, %out: i32):
        %16 = arith.subi %in, %in_7 : i32
        %17 = arith.addi %out, %16 : i32
        linalg.yield %17 : i32
      } -> tensor<i32>
      %14 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg3 : tensor<17x16x7x4xi64>) outs(%arg9 : tensor<17x16x7xi64>) {
      ^bb0(%in: i64, %out: i64):
        %16 = arith.addi %out, %in : i64
        linalg.yield %16 : i64
      } -> tensor<17x16x7xi64>
      %15 = arith.addi %arg8, %arg8 : tensor<12xi32>
      scf.yield %15, %14 : tensor<12xi32>, tensor<17x16x7xi64>
    }
    %cst = arith.constant dense<-1.000000e+30> : tensor<1xf32>
    %c0_i32 = arith.constant 0 : i32
    %1 = tensor.empty() : tensor<1xi32>
    %2 = linalg.fill ins(%c0_i32 : i32) outs(%1 : tensor<1xi32>) -> tensor<1xi32>
    %3:2 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "reduction"]} ins(%arg4 : tensor<1x11xf32>) outs(%cst, %2 : tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%in: f32, %out: f32, %out_6: i32):
      %13 = linalg.index 1 : index
      %14 = arith.index_cast %13 : index to i32
      %15 = arith.cmpf ogt, %in, %out : f32
      %16 = arith.select %15, %in, %out : f32
      %17 = arith.select %15, %14, %out_6 : i32
      linalg.yield %16, %17 : f32, i32
    } -> (tensor<1xf32>, tensor<1xi32>)
    %cst_0 = arith.constant -1.000000e+30 : f32
    %4 = tensor.empty() : tensor<1xf32>
    %5 = linalg.fill ins(%cst_0 : f32) outs(%4 : tensor<1xf32>) -> tensor<1xf32>
    %c0_i32_1 = arith.constant 0 : i32
    %6 = tensor.empty() : tensor<1xi32>
    %7 = linalg.fill ins(%c0_i32_1 : i32) outs(%6 : tensor<1xi32>) -> tensor<1xi32>
    %8:2 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "reduction"]} ins(%arg4 : tensor<1x11xf32>) outs(%5, %7 : tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%in: f32, %out: f32, %out_6: i32):
      %13 = linalg.index 1 : index
      %14 = arith.index_cast %13 : index to i32
      %15 = arith.cmpf ogt, %in, %out : f32
      %16 = arith.select %15, %in, %out : f32
      %17 = arith.select %15, %14, %out_6 : i32
      linalg.yield %16, %17 : f32, i32
    } -> (tensor<1xf32>, tensor<1xi32>)
    %9 = arith.extf %3#0 : tensor<1xf32> to tensor<1xf64>
    %cst_2 = arith.constant dense<[[1, 2, 2, 1, 3, 3, 3, 3, 1, 3, 1, 2, 3, 3], [3, 3, 1, 3, 1, 3, 1, 1, 1, 3, 2, 3, 3, 2], [1, 3, 2, 2, 2, 3, 3, 1, 1, 1, 1, 3, 1, 1], [2, 3, 1, 1, 1, 2, 3, 1, 3, 2, 2, 2, 1, 2]]> : tensor<4x14xi32>
    %c336_i32 = arith.constant 336 : i32
    %10:2 = scf.while (%arg8 = %cst_2, %arg9 = %0#0) : (tensor<4x14xi32>, tensor<12xi32>) -> (tensor<4x14xi32>, tensor<12xi32>) {
      %cst_6 = arith.constant dense<0> : tensor<i32>
      %13 = linalg.generic {indexing_maps = [#map4, #map6], iterator_types = ["reduction", "reduction"]} ins(%arg8 : tensor<4x14xi32>) outs(%cst_6 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %15 = arith.addi %out, %in : i32
        linalg.yield %15 : i32
      } -> tensor<i32>
      %extracted = tensor.extract %13[] : tensor<i32>
      %14 = arith.cmpi slt, %extracted, %c336_i32 : i32
      scf.condition(%14) %arg8, %arg9 : tensor<4x14xi32>, tensor<12xi32>
    } do {
    ^bb0(%arg8: tensor<4x14xi32>, %arg9: tensor<12xi32>):
      %cst_6 = arith.constant dense<0> : tensor<1x1xindex>
      %cst_7 = arith.constant dense<2> : tensor<1x1xi32>
      %scatter = tensor.scatter %cst_7 into %8#1[%cst_6] scatter_dims([0]) unique : (tensor<1x1xi32>, tensor<1xi32>, tensor<1x1xindex>) -> tensor<1xi32>
      %13 = tensor.empty() : tensor<5xi32>
      %14 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel"]} ins(%arg5, %arg6 : tensor<5xi32>, tensor<i32>) outs(%13 : tensor<5xi32>) {
      ^bb0(%in: i32, %in_8: i32, %out: i32):
        %17 = arith.subi %in, %in_8 : i32
        linalg.yield %17 : i32
      } -> tensor<5xi32>
      %15 = dist.shard_tensor %scatter, #dist.sharding<@m, dims = [["a1"]], open = ["a0"]> : tensor<1xi32>
      %16 = arith.addi %arg8, %arg8 : tensor<4x14xi32>
      scf.yield %16, %arg9 : tensor<4x14xi32>, tensor<12xi32>
    }
    %extracted_slice = tensor.extract_slice %arg7[1] [3] [1] : tensor<4xi32> to tensor<3xi32>
    %extracted_slice_3 = tensor.extract_slice %arg7[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
    %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_3 : (tensor<3xi32>, tensor<2xi32>) -> tensor<5xi32>
    %cst_4 = arith.constant dense<"0xFDFFFFFF030000000300000003000000FDFFFFFFFFFFFFFF00000000FEFFFFFFFEFFFFFF01000000FDFFFFFF01000000FDFFFFFF0300000002000000FEFFFFFF03000000FFFFFFFF0100000000000000FDFFFFFF000000000100000002000000010000000200000002000000030000000000000001000000FDFFFFFF03000000FFFFFFFFFEFFFFFFFEFFFFFFFFFFFFFFFEFFFFFFFEFFFFFF02000000FEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000020000000300000003000000FEFFFFFFFDFFFFFF00000000FEFFFFFF01000000FDFFFFFFFFFFFFFFFDFFFFFF02000000FDFFFFFFFFFFFFFFFFFFFFFFFDFFFFFF02000000FFFFFFFF01000000FEFFFFFFFEFFFFFFFFFFFFFF020000000000000001000000FDFFFFFF000000000100000000000000FEFFFFFF00000000FFFFFFFF0100000000000000FEFFFFFF0000000001000000FEFFFFFFFEFFFFFFFFFFFFFF010000000100000000000000FEFFFFFF0300000001000000FEFFFFFF0200000003000000030000000200000002000000000000000000000000000000FFFFFFFF03000000FDFFFFFFFDFFFFFFFFFFFFFF00000000FEFFFFFFFFFFFFFF0000000001000000FEFFFFFF0300000001000000FFFFFFFFFDFFFFFFFDFFFFFFFDFFFFFF0000000002000000010000000100000000000000FFFFFFFFFEFFFFFFFEFFFFFF01000000FFFFFFFF0200000002000000FEFFFFFFFFFFFFFFFFFFFFFF0100000002000000FEFFFFFF02000000000000000300000002000000FEFFFFFFFDFFFFFFFFFFFFFFFEFFFFFF000000000100000001000000FEFFFFFF01000000FDFFFFFF02000000FDFFFFFF02000000FDFFFFFF03000000FDFFFFFFFEFFFFFFFFFFFFFFFFFFFFFF0200000001000000FEFFFFFF03000000FFFFFFFFFDFFFFFF000000000200000003000000FDFFFFFFFFFFFFFF"> : tensor<14x12xi32>
    %cst_5 = arith.constant dense<[[0, -1, 0, 2, 2, -2, -3, -2, 2, -2, 1, -3], [-3, -2, 2, 2, 1, -1, 1, -1, 3, 2, 2, -3], [-3, -2, -3, 1, 2, -1, 1, -3, 2, 1, 3, 0], [2, 0, 0, 2, -1, -2, 0, 0, 0, 3, 1, 3]]> : tensor<4x12xi32>
    %11 = linalg.matmul ins(%10#0, %cst_4 : tensor<4x14xi32>, tensor<14x12xi32>) outs(%cst_5 : tensor<4x12xi32>) -> tensor<4x12xi32>
    %12 = dist.reshard %10#1 to #dist.sharding<@m, [replicate, replicate]> : tensor<12xi32>
    return %12, %11 : tensor<12xi32>, tensor<4x12xi32>
  }
}

