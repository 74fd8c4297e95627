#map = affine_map<(d0, d1, d2) -> (d1, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1) -> ()>
#map7 = affine_map<(d0, d1, d2) -> (d0, d2)>
module {
  dist.process_mesh @m(shape = [2, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<7x3xf64>, %arg1: tensor<3x8xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a1", "a0"]]>}, %arg2: tensor<13xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"]]>}, %arg3: tensor<2xi64> {dist.range = [0, 3], dist.sharding = #dist.sharding<@m, dims = [["a1"]], open = ["a0"]>}, %arg4: tensor<7x2xf64> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}, %arg5: tensor<7x3x16xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"], ["a1"]]>}, %arg6: tensor<4x2xi32> {dist.range = [1, 4]}, %arg7: tensor<2xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate], priority = 0>}, %arg8: tensor<17x5xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}, %arg9: tensor<7x5xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], []], open = ["a1"]>}, %arg10: tensor<5x10xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1, order = 0), shard(1, order = 1)]>}, %arg11: tensor<5x1x10xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), ?]>}, %arg12: tensor<2x2x2x2xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1"], [], [], []]>}) -> (tensor<8x1x6x2xi32>, tensor<2xi64>, tensor<5x10xi64> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) {
    %cst = arith.constant 0.000000e+00 : f64
    %0 = tensor.empty() : tensor<7x8xf64>
    %1 = linalg.fill ins(%cst : f64) outs(%0 : tensor<7x8xf64>) -> tensor<7x8xf64>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<7x3xf64>, tensor<3x8xf64>) outs(%1 : tensor<7x8xf64>) -> tensor<7x8xf64>
    %c7 = arith.constant 7 : index
    %extracted = tensor.extract %arg2[%c7] : tensor<13xi32>
    %3 = arith.index_cast %extracted : i32 to index
    %c0 = arith.constant 0 : index
    %4:2 = scf.while (%arg13 = %c0, %arg14 = %arg0) : (index, tensor<7x3xf64>) -> (index, tensor<7x3xf64>) {
      %18 = arith.cmpi slt, %arg13, %3 : index
      scf.condition(%18) %arg13, %arg14 : index, tensor<7x3xf64>
    } do {
    ^bb0(%arg13: index, %arg14: tensor<7x3xf64>):
      %18 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["reduction", "parallel", "parallel"]} ins(%arg0, %arg3 : tensor<7x3xf64>, tensor<2xi64>) outs(%arg4 : tensor<7x2xf64>) {
      ^bb0(%in: f64, %in_9: i64, %out: f64):
        %25 = linalg.index 0 : index
        %26 = arith.index_cast %25 : index to i64
        %27 = arith.cmpi eq, %in_9, %26 : i64
        %cst_10 = arith.constant 0xFFF0000000000000 : f64
        %28 = arith.select %27, %in, %cst_10 : f64
        %29 = arith.maximumf %out, %28 : f64
        linalg.yield %29 : f64
      } -> tensor<7x2xf64>
      %19 = dist.shard_tensor %arg0, #dist.sharding<@m, [shard(0), replicate]> : tensor<7x3xf64>
      %c1_i64 = arith.constant 1 : i64
      %20 = tensor.empty() : tensor<i64>
      %21 = linalg.fill ins(%c1_i64 : i64) outs(%20 : tensor<i64>) -> tensor<i64>
      %reduced_7 = linalg.reduce ins(%arg3 : tensor<2xi64>) outs(%21 : tensor<i64>) dimensions = [0] 
        (%in: i64, %init: i64) {
          %25 = arith.muli %in, %init : i64
          linalg.yield %25 : i64
        }
      %22 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg5 : tensor<7x3x16xf64>) outs(%19 : tensor<7x3xf64>) {
      ^bb0(%in: f64, %out: f64):
        %25 = arith.addf %out, %in : f64
        linalg.yield %25 : f64
      } -> tensor<7x3xf64>
      %cst_8 = arith.constant dense<1.250000e-01> : tensor<7x3xf64>
      %23 = arith.mulf %22, %cst_8 : tensor<7x3xf64>
      %c1 = arith.constant 1 : index
      %24 = arith.addi %arg13, %c1 : index
      scf.yield %24, %23 : index, tensor<7x3xf64>
    }
    %c72_i32 = arith.constant 72 : i32
    %5:2 = scf.while (%arg13 = %arg6, %arg14 = %4#1) : (tensor<4x2xi32>, tensor<7x3xf64>) -> (tensor<4x2xi32>, tensor<7x3xf64>) {
      %cst_7 = arith.constant dense<0> : tensor<i32>
      %18 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["reduction", "reduction"]} ins(%arg13 : tensor<4x2xi32>) outs(%cst_7 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %20 = arith.addi %out, %in : i32
        linalg.yield %20 : i32
      } -> tensor<i32>
      %extracted_8 = tensor.extract %18[] : tensor<i32>
      %19 = arith.cmpi slt, %extracted_8, %c72_i32 : i32
      scf.condition(%19) %arg13, %arg14 : tensor<4x2xi32>, tensor<7x3xf64>
    } do {
    ^bb0(%arg13: tensor<4x2xi32>, %arg14: tensor<7x3xf64>):
      %18 = arith.subi %arg6, %arg6 : tensor<4x2xi32>
      %19 = arith.addi %arg13, %arg13 : tensor<4x2xi32>
      scf.yield %19, %arg14 : tensor<4x2xi32>, tensor<7x3xf64>
    }
    %6 = tensor.empty() : tensor<2xi64>
    %7 = linalg.add ins(%arg3, %arg7 : tensor<2xi64>, tensor<2xi64>) outs(%6 : tensor<2xi64>) -> tensor<2xi64>
    %c0_i32 = arith.constant 0 : i32
    %8 = tensor.empty() : tensor<17x7xi32>
    %9 = linalg.fill ins(%c0_i32 : i32) outs(%8 : tensor<17x7xi32>) -> tensor<17x7xi32>
    %10 = linalg.matmul indexing_maps = [#map7, #map2, #map4] ins(%arg8, %arg9 : tensor<17x5xi32>, tensor<7x5xi32>) outs(%9 : tensor<17x7xi32>) -> tensor<17x7xi32>
    %c2147483647_i32 = arith.constant 2147483647 : i32
    %11 = tensor.empty() : tensor<17xi32>
    %12 = linalg.fill ins(%c2147483647_i32 : i32) outs(%11 : tensor<17xi32>) -> tensor<17xi32>
    %reduced = linalg.reduce ins(%10 : tensor<17x7xi32>) outs(%12 : tensor<17xi32>) dimensions = [1] 
      (%in: i32, %init: i32) {
        %18 = arith.minsi %in, %init : i32
        linalg.yield %18 : i32
      }
    %13 = arith.cmpi sgt, %arg6, %5#0 : tensor<4x2xi32>
    %14 = arith.select %13, %arg6, %arg6 : tensor<4x2xi1>, tensor<4x2xi32>
    %cst_0 = arith.constant dense<[[-2, -1, -3, 1, 0, 1, 2], [3, 3, 3, -3, 3, 2, -1]]> : tensor<2x7xi32>
    %extracted_slice = tensor.extract_slice %cst_0[1, 0] [1, 7] [1, 1] : tensor<2x7xi32> to tensor<1x7xi32>
    %extracted_slice_1 = tensor.extract_slice %10[12, 0] [5, 7] [1, 1] : tensor<17x7xi32> to tensor<5x7xi32>
    %extracted_slice_2 = tensor.extract_slice %10[3, 0] [6, 7] [1, 1] : tensor<17x7xi32> to tensor<6x7xi32>
    %cst_3 = arith.constant dense<0> : tensor<1x7xi32>
    %concat = tensor.concat dim(0) %cst_3, %extracted_slice, %extracted_slice_1, %extracted_slice_2 : (tensor<1x7xi32>, tensor<1x7xi32>, tensor<5x7xi32>, tensor<6x7xi32>) -> tensor<13x7xi32>
    %cst_4 = arith.constant dense<[[2], [1], [0], [3], [4]]> : tensor<5x1xindex>
    %scatter = tensor.scatter %arg11 into %arg10[%cst_4] scatter_dims([0]) unique : (tensor<5x1x10xi64>, tensor<5x10xi64>, tensor<5x1xindex>) -> tensor<5x10xi64>
    %15 = dist.shard_tensor %7, #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]> : tensor<2xi64>
    %cst_5 = arith.constant dense<"0xFFFFFFFF0200000001000000020000000300000001000000FDFFFFFFFEFFFFFF01000000FEFFFFFF020000000300000001000000FEFFFFFFFEFFFFFF010000000300000000000000030000000000000000000000FFFFFFFFFEFFFFFFFEFFFFFFFEFFFFFF0000000001000000FDFFFFFF0300000003000000000000000100000003000000020000000300000003000000FDFFFFFF0100000000000000FDFFFFFF03000000FFFFFFFF01000000FFFFFFFF00000000FDFFFFFF01000000FDFFFFFF0300000000000000FDFFFFFFFFFFFFFFFFFFFFFF0100000003000000FFFFFFFF0100000003000000FFFFFFFF01000000FFFFFFFF0000000000000000FDFFFFFF02000000FDFFFFFF030000000000000001000000FEFFFFFF03000000FDFFFFFFFFFFFFFF0000000002000000FDFFFFFFFFFFFFFFFFFFFFFF03000000FEFFFFFFFFFFFFFFFDFFFFFFFEFFFFFFFEFFFFFF0300000001000000FDFFFFFF03000000FFFFFFFF01000000FDFFFFFF00000000FFFFFFFF03000000FDFFFFFF000000000300000001000000FEFFFFFFFDFFFFFFFEFFFFFFFDFFFFFFFDFFFFFF0000000003000000FEFFFFFF0200000003000000FDFFFFFF03000000FDFFFFFF0300000000000000FEFFFFFFFEFFFFFF00000000FDFFFFFF0300000003000000FDFFFFFF03000000FFFFFFFFFEFFFFFFFFFFFFFFFEFFFFFF0300000001000000FFFFFFFF02000000030000000300000002000000FEFFFFFFFFFFFFFF0000000003000000FFFFFFFF0200000002000000FEFFFFFFFDFFFFFF01000000000000000000000001000000FDFFFFFFFFFFFFFF00000000FDFFFFFF020000000100000003000000FEFFFFFFFFFFFFFF0200000002000000FDFFFFFF0000000001000000FFFFFFFF02000000FDFFFFFF03000000FDFFFFFFFFFFFFFF01000000FEFFFFFFFEFFFFFFFEFFFFFFFDFFFFFF01000000010000000000000003000000FEFFFFFFFFFFFFFFFFFFFFFFFDFFFFFFFDFFFFFFFFFFFFFFFDFFFFFF010000000000000003000000FDFFFFFF01000000FFFFFFFF0100000003000000FEFFFFFFFEFFFFFF0300000003000000FDFFFFFF03000000FDFFFFFFFDFFFFFF0200000003000000FFFFFFFF02000000FEFFFFFF00000000FDFFFFFFFFFFFFFF0000000003000000FFFFFFFF030000000000000000000000010000000300000003000000FDFFFFFF0200000002000000FDFFFFFF02000000FFFFFFFFFDFFFFFFFFFFFFFF030000000200000001000000000000000000000001000000FDFFFFFF03000000000000000000000002000000030000000000000001000000010000000000000002000000FFFFFFFFFDFFFFFF010000000300000002000000FDFFFFFF01000000FFFFFFFF02000000010000000000000001000000020000000100000001000000000000000300000003000000FDFFFFFFFFFFFFFFFDFFFFFF00000000FEFFFFFFFFFFFFFF01000000FEFFFFFFFEFFFFFFFFFFFFFF00000000FDFFFFFF01000000FEFFFFFF000000000300000003000000FFFFFFFF01000000FDFFFFFF03000000020000000100000003000000FDFFFFFFFDFFFFFFFFFFFFFF03000000000000000200000003000000FDFFFFFF00000000FFFFFFFFFDFFFFFFFFFFFFFF030000000200000000000000030000000300000000000000FEFFFFFFFFFFFFFF010000000200000000000000FDFFFFFF0200000003000000FEFFFFFFFFFFFFFF020000000200000003000000FDFFFFFF0200000000000000030000000100000003000000FFFFFFFFFDFFFFFF0100000002000000FDFFFFFF0200000001000000FFFFFFFFFFFFFFFF03000000FEFFFFFFFEFFFFFF03000000FEFFFFFF0200000001000000FFFFFFFFFEFFFFFFFDFFFFFFFEFFFFFFFDFFFFFFFFFFFFFF0100000000000000FEFFFFFFFEFFFFFFFDFFFFFF02000000FFFFFFFFFEFFFFFFFDFFFFFFFFFFFFFF0300000001000000030000000200000000000000FDFFFFFF03000000000000000100000001000000FEFFFFFF010000000300000002000000FDFFFFFFFFFFFFFF0300000002000000FEFFFFFF020000000300000000000000FFFFFFFFFFFFFFFFFDFFFFFF01000000FEFFFFFF0100000000000000FFFFFFFFFFFFFFFFFEFFFFFF0200000000000000FDFFFFFFFFFFFFFF0100000001000000FDFFFFFFFDFFFFFF02000000FFFFFFFFFEFFFFFFFFFFFFFFFFFFFFFF00000000FDFFFFFF0300000002000000FDFFFFFF0300000001000000FFFFFFFF030000000300000002000000FEFFFFFF0000000000000000FEFFFFFFFEFFFFFF000000000300000002000000030000000100000000000000FEFFFFFF0300000000000000000000000100000000000000FFFFFFFF03000000FDFFFFFFFDFFFFFF00000000FDFFFFFFFEFFFFFF00000000FDFFFFFF0100000000000000FEFFFFFF01000000FFFFFFFF03000000FEFFFFFF030000000300000002000000FDFFFFFF03000000FFFFFFFF0000000000000000FEFFFFFF"> : tensor<8x2x14x2xi32>
    %cst_6 = arith.constant dense<0> : tensor<8x1x6x2xi32>
    %16 = linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[1, 2]> : tensor<2xi64>} ins(%cst_5, %arg12 : tensor<8x2x14x2xi32>, tensor<2x2x2x2xi32>) outs(%cst_6 : tensor<8x1x6x2xi32>) -> tensor<8x1x6x2xi32>
    %17 = dist.shard_tensor %16, #dist.sharding<@m, dims = [[], ["a0"], [], []], open = ["a1"]> : tensor<8x1x6x2xi32>
    return %17, %15, %scatter : tensor<8x1x6x2xi32>, tensor<2xi64>, tensor<5x10xi64>
  }
}

