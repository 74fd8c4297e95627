#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1, d0)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0) -> (d0)>
#map8 = affine_map<(d0) -> ()>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
#map12 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
module {
  dist.process_mesh @m(shape = [6, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<10x7xf64> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg1: tensor<10x7xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"]]>}, %arg2: tensor<3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0":(1)3, "a1", "a0":(3)2]], priority = 2>}, %arg3: tensor<3x6xf32>, %arg4: tensor<f32> {dist.sharding = #dist.sharding<@m, dims = [], open = ["a0":(3)2, "a0":(1)3, "a1"]>}, %arg5: tensor<11xi32> {dist.range = [1, 4]}, %arg6: tensor<3x8x10xf64>, %arg7: tensor<3x13x10xf64>, %arg8: tensor<3x13x3xf64>, %arg9: tensor<2xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0":(2)3, "a1"]], partial = [sum("a0":(1)2)]>}) -> (tensor<f32>, tensor<11xi32>, tensor<10x9x8xi32> {dist.sharding = #dist.sharding<@m, [?, shard(1)]>}, tensor<1x3x1x6x1xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0":(2)3], [], ["a1"], ["a0":(1)2]]>}) {
    %cst = arith.constant dense<"0x000000000000D0BF000000000000D03F0000000000000000000000000000D83F000000000000E8BF000000000000F0BF000000000000E43F000000000000E43F000000000000C03F000000000000E0BF000000000000D8BF000000000000E8BF000000000000C03F000000000000E83F000000000000E03F000000000000D83F000000000000D83F000000000000C03F000000000000E4BF000000000000F03F0000000000000000000000000000F03F000000000000D03F000000000000E4BF000000000000E03F000000000000E4BF000000000000E4BF000000000000E4BF000000000000F03F000000000000E43F000000000000E83F000000000000E03F000000000000E4BF000000000000D0BF000000000000D8BF000000000000E83F000000000000C0BF000000000000E8BF000000000000EC3F000000000000ECBF000000000000E83F000000000000C0BF000000000000C03F000000000000E43F000000000000E8BF000000000000D83F000000000000E0BF000000000000D03F000000000000E43F000000000000E8BF000000000000E8BF000000000000E03F000000000000C03F000000000000E8BF000000000000ECBF000000000000D03F000000000000D0BF000000000000E8BF000000000000C03F000000000000E83F000000000000C03F000000000000EC3F000000000000E8BF000000000000E43F000000000000E03F000000000000EC3F000000000000D8BF000000000000ECBF000000000000C03F000000000000E43F000000000000E03F000000000000E03F000000000000D03F000000000000D8BF000000000000E4BF000000000000D03F000000000000F0BF000000000000D03F000000000000C0BF000000000000D8BF000000000000F03F000000000000ECBF000000000000D0BF000000000000C03F000000000000F03F000000000000F0BF000000000000D0BF000000000000D83F000000000000E4BF000000000000F03F000000000000D8BF000000000000D8BF000000000000EC3F000000000000EC3F000000000000C0BF000000000000D83F000000000000D03F000000000000E8BF000000000000E83F000000000000E8BF000000000000F0BF000000000000ECBF000000000000E43F000000000000D83F000000000000D0BF"> : tensor<15x7xf64>
    %cst_0 = arith.constant 0.000000e+00 : f64
    %splat = tensor.splat %cst_0 : tensor<10x15xf64>
    %0 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %cst : tensor<10x7xf64>, tensor<15x7xf64>) outs(%splat : tensor<10x15xf64>) -> tensor<10x15xf64>
    %1 = arith.minimumf %arg0, %arg1 : tensor<10x7xf64>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<6x3xf32>
    %2 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%arg2, %arg3 : tensor<3xf32>, tensor<3x6xf32>) outs(%cst_1 : tensor<6x3xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %7 = arith.mulf %in, %in_2 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<6x3xf32>
    %3 = arith.addf %0, %0 : tensor<10x15xf64>
    %expanded = tensor.expand_shape %arg3 [[0, 1, 2], [3, 4]] output_shape [1, 3, 1, 6, 1] : tensor<3x6xf32> into tensor<1x3x1x6x1xf32>
    %4 = tensor.empty() : tensor<10x9x8xi32>
    %5 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel", "parallel", "parallel"]} outs(%4 : tensor<10x9x8xi32>) {
    ^bb0(%out: i32):
      %c1 = arith.constant 1 : index
      %7 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %8 = arith.muli %c1, %c2 : index
      %9 = arith.addi %8, %7 : index
      %10 = linalg.index 1 : index
      %c2_2 = arith.constant 2 : index
      %11 = arith.muli %9, %c2_2 : index
      %12 = arith.addi %11, %10 : index
      %13 = linalg.index 2 : index
      %c2_3 = arith.constant 2 : index
      %14 = arith.muli %12, %c2_3 : index
      %15 = arith.addi %14, %13 : index
      %16 = arith.index_cast %15 : index to i32
      linalg.yield %16 : i32
    } -> tensor<10x9x8xi32>
    %c99_i32 = arith.constant 99 : i32
    %6:2 = scf.while (%arg10 = %arg5, %arg11 = %arg4) : (tensor<11xi32>, tensor<f32>) -> (tensor<11xi32>, tensor<f32>) {
      %c0_i32 = arith.constant 0 : i32
      %splat_2 = tensor.splat %c0_i32 : tensor<i32>
      %7 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["reduction"]} ins(%arg10 : tensor<11xi32>) outs(%splat_2 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %9 = arith.addi %out, %in : i32
        linalg.yield %9 : i32
      } -> tensor<i32>
      %extracted = tensor.extract %7[] : tensor<i32>
      %8 = arith.cmpi slt, %extracted, %c99_i32 : i32
      scf.condition(%8) %arg10, %arg11 : tensor<11xi32>, tensor<f32>
    } do {
    ^bb0(%arg10: tensor<11xi32>, %arg11: tensor<f32>):
      %output = ext.attention indexing_maps = [#map9, #map10, #map11, #map12] ins(%arg6, %arg7, %arg8 : tensor<3x8x10xf64>, tensor<3x13x10xf64>, tensor<3x13x3xf64>) {
      ^bb0(%arg12: f64, %arg13: index, %arg14: index, %arg15: index, %arg16: index, %arg17: index):
        ext.yield %arg12 : f64
      } -> tensor<3x8x3xf64>
      %extracted_slice = tensor.extract_slice %3[0, 12] [10, 3] [1, 1] : tensor<10x15xf64> to tensor<10x3xf64>
      %7 = dist.reshard %extracted_slice to #dist.sharding<@m, dims = [[], ["a0":(1)2]], open = ["a0":(2)3]> : tensor<10x3xf64>
      %8 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["reduction"]} ins(%arg9 : tensor<2xf32>) outs(%arg11 : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        %11 = arith.addf %out, %in : f32
        linalg.yield %11 : f32
      } -> tensor<f32>
      %cst_2 = arith.constant dense<5.000000e-01> : tensor<f32>
      %9 = arith.mulf %8, %cst_2 : tensor<f32>
      %10 = arith.addi %arg10, %arg10 : tensor<11xi32>
      scf.yield %10, %9 : tensor<11xi32>, tensor<f32>
    }
    return %6#1, %6#0, %5, %expanded : tensor<f32>, tensor<11xi32>, tensor<10x9x8xi32>, tensor<1x3x1x6x1xf32>
  }
}

