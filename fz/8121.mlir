#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> ()>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
module {
  dist.process_mesh @m(shape = [2], dim_names = ["a0"])
  func.func @main(%arg0: tensor<11x4x3xf64>, %arg1: tensor<11x12x3xf64> {dist.sharding = #dist.sharding<@m, [?]>}, %arg2: tensor<11x12x2xf64> {dist.sharding = #dist.sharding<@m, [?]>}, %arg3: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0"]>}, %arg4: tensor<7x10xi64> {dist.range = [-4, 5]}, %arg5: tensor<10x4xi64> {dist.range = [-4, 5]}, %arg6: tensor<10x17xi64> {dist.range = [-4, 5]}, %arg7: tensor<15xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<15x17xi64> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<15x4xi64>) {
    %output = ext.attention indexing_maps = [#map, #map1, #map2, #map3, #map4] ins(%arg0, %arg1, %arg2, %arg3 : tensor<11x4x3xf64>, tensor<11x12x3xf64>, tensor<11x12x2xf64>, tensor<i32>) {
    ^bb0(%arg8: f64, %arg9: i32, %arg10: index, %arg11: index, %arg12: index, %arg13: index, %arg14: index):
      %10 = arith.cmpi sge, %arg11, %arg12 : index
      %cst_3 = arith.constant 0xFFF0000000000000 : f64
      %11 = arith.select %10, %arg8, %cst_3 : f64
      ext.yield %11 : f64
    } weights {
    ^bb0(%arg8: f64, %arg9: i32, %arg10: index, %arg11: index, %arg12: index, %arg13: index, %arg14: index):
      %10 = arith.index_cast %arg10 : index to i32
      %c-1640531535_i32 = arith.constant -1640531535 : i32
      %11 = arith.muli %arg9, %c-1640531535_i32 : i32
      %c15_i32 = arith.constant 15 : i32
      %12 = arith.shrui %11, %c15_i32 : i32
      %13 = arith.xori %11, %12 : i32
      %14 = arith.addi %13, %10 : i32
      %15 = arith.index_cast %arg11 : index to i32
      %c-1640531535_i32_3 = arith.constant -1640531535 : i32
      %16 = arith.muli %14, %c-1640531535_i32_3 : i32
      %c15_i32_4 = arith.constant 15 : i32
      %17 = arith.shrui %16, %c15_i32_4 : i32
      %18 = arith.xori %16, %17 : i32
      %19 = arith.addi %18, %15 : i32
      %20 = arith.index_cast %arg12 : index to i32
      %c-1640531535_i32_5 = arith.constant -1640531535 : i32
      %21 = arith.muli %19, %c-1640531535_i32_5 : i32
      %c15_i32_6 = arith.constant 15 : i32
      %22 = arith.shrui %21, %c15_i32_6 : i32
      %23 = arith.xori %21, %22 : i32
      %24 = arith.addi %23, %20 : i32
      %c-2048144777_i32 = arith.constant -2048144777 : i32
      %25 = arith.muli %24, %c-2048144777_i32 : i32
      %c30_i32 = arith.constant 30 : i32
      %26 = arith.shrui %25, %c30_i32 : i32
      %c0_i32 = arith.constant 0 : i32
      %27 = arith.cmpi ne, %26, %c0_i32 : i32
      %cst_7 = arith.constant 7.500000e-01 : f64
      %28 = arith.divf %arg8, %cst_7 : f64
      %cst_8 = arith.constant 0.000000e+00 : f64
      %29 = arith.select %27, %28, %cst_8 : f64
      ext.yield %29 : f64
    } -> tensor<11x4x2xf64>
    %cst = arith.constant dense<"0x0300000000000000FFFFFFFFFFFFFFFF0200000000000000FEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000000000000200000000000000FDFFFFFFFFFFFFFF03000000000000000200000000000000FDFFFFFFFFFFFFFFFDFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF0000000000000000FDFFFFFFFFFFFFFF000000000000000001000000000000000200000000000000010000000000000002000000000000000200000000000000FDFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF020000000000000001000000000000000200000000000000FDFFFFFFFFFFFFFF0200000000000000FEFFFFFFFFFFFFFF01000000000000000000000000000000FDFFFFFFFFFFFFFF0200000000000000FEFFFFFFFFFFFFFF0000000000000000FEFFFFFFFFFFFFFFFDFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFDFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF03000000000000000000000000000000FFFFFFFFFFFFFFFF0000000000000000FDFFFFFFFFFFFFFF010000000000000002000000000000000000000000000000FDFFFFFFFFFFFFFF01000000000000000300000000000000FDFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF00000000000000000300000000000000FFFFFFFFFFFFFFFF0100000000000000FDFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF0000000000000000FDFFFFFFFFFFFFFF0200000000000000FDFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF03000000000000000200000000000000FDFFFFFFFFFFFFFF0100000000000000FDFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFEFFFFFFFFFFFFFF01000000000000000300000000000000030000000000000002000000000000000300000000000000FDFFFFFFFFFFFFFF02000000000000000300000000000000FDFFFFFFFFFFFFFFFEFFFFFFFFFFFFFF00000000000000000000000000000000020000000000000000000000000000000000000000000000FDFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFDFFFFFFFFFFFFFF0100000000000000000000000000000000000000000000000200000000000000FDFFFFFFFFFFFFFF02000000000000000200000000000000FFFFFFFFFFFFFFFF000000000000000000000000000000000200000000000000FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"> : tensor<15x7xi64>
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<15x10xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<15x10xi64>) -> tensor<15x10xi64>
    %2 = linalg.matmul ins(%cst, %arg4 : tensor<15x7xi64>, tensor<7x10xi64>) outs(%1 : tensor<15x10xi64>) -> tensor<15x10xi64>
    %3 = dist.shard_tensor %arg4, #dist.sharding<@m, dims = [[], []], open = ["a0"]> : tensor<7x10xi64>
    %c0_i64_0 = arith.constant 0 : i64
    %splat = tensor.splat %c0_i64_0 : tensor<15x4xi64>
    %4 = linalg.matmul ins(%2, %arg5 : tensor<15x10xi64>, tensor<10x4xi64>) outs(%splat : tensor<15x4xi64>) -> tensor<15x4xi64>
    %c0_i64_1 = arith.constant 0 : i64
    %5 = tensor.empty() : tensor<15x17xi64>
    %6 = linalg.fill ins(%c0_i64_1 : i64) outs(%5 : tensor<15x17xi64>) -> tensor<15x17xi64>
    %7 = linalg.matmul ins(%2, %arg6 : tensor<15x10xi64>, tensor<10x17xi64>) outs(%6 : tensor<15x17xi64>) -> tensor<15x17xi64>
    %cst_2 = arith.constant dense<[2, 0, 2, 3, 0, 2, 1, 2, 2, 3]> : tensor<10xi32>
    %c9 = arith.constant 9 : index
    %extracted = tensor.extract %cst_2[%c9] : tensor<10xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %c0 = arith.constant 0 : index
    %9:3 = scf.while (%arg8 = %c0, %arg9 = %4, %arg10 = %7) : (index, tensor<15x4xi64>, tensor<15x17xi64>) -> (index, tensor<15x4xi64>, tensor<15x17xi64>) {
      %10 = arith.cmpi slt, %arg8, %8 : index
      scf.condition(%10) %arg8, %arg9, %arg10 : index, tensor<15x4xi64>, tensor<15x17xi64>
    } do {
    ^bb0(%arg8: index, %arg9: tensor<15x4xi64>, %arg10: tensor<15x17xi64>):
      %10 = arith.addi %3, %3 : tensor<7x10xi64>
      %extracted_slice = tensor.extract_slice %3[2, 0] [5, 10] [1, 1] : tensor<7x10xi64> to tensor<5x10xi64>
      %extracted_slice_3 = tensor.extract_slice %3[0, 0] [2, 10] [1, 1] : tensor<7x10xi64> to tensor<2x10xi64>
      %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_3 : (tensor<5x10xi64>, tensor<2x10xi64>) -> tensor<7x10xi64>
      %11 = dist.shard_tensor %arg7, #dist.sharding<@m, [shard(0)], priority = 2> : tensor<15xi32>
      %c1 = arith.constant 1 : index
      %12 = arith.addi %arg8, %c1 : index
      scf.yield %12, %arg9, %arg10 : index, tensor<15x4xi64>, tensor<15x17xi64>
    }
    return %9#2, %9#1 : tensor<15x17xi64>, tensor<15x4xi64>
  }
}

