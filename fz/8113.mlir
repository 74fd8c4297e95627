#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1) -> (d1, d0)>
#map6 = affine_map<(d0) -> (d0)>
module {
  dist.process_mesh @m(shape = [4, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<11x10x15xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1"], [], []]>}, %arg1: tensor<4x2xf32>, %arg2: tensor<4x17xf32>, %arg3: tensor<12x7xf64>, %arg4: tensor<f64> {dist.sharding = #dist.sharding<@m, dims = [], partial = [sum("a0":(1)2), sum("a1"), sum("a0":(2)2)]>}, %arg5: tensor<1x7xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"]]>}, %arg6: tensor<16xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1", "a0":(1)2, "a0":(2)2]]>}) -> (tensor<16xi64>, tensor<7x1xf64>, tensor<3x7x5xf64>) {
    %cst = arith.constant 3.000000e+00 : f64
    %padded = tensor.pad %arg0 low[0, 0, 0] high[1, 0, 0] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index):
      tensor.yield %cst : f64
    } : tensor<11x10x15xf64> to tensor<12x10x15xf64>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x17xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x17xf32>) -> tensor<2x17xf32>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg1, %arg2 : tensor<4x2xf32>, tensor<4x17xf32>) outs(%1 : tensor<2x17xf32>) -> tensor<2x17xf32>
    %3 = dist.shard_tensor %arg2, #dist.sharding<@m, [?, shard(1)]> : tensor<4x17xf32>
    %4 = tensor.empty() : tensor<12x7xf64>
    %5 = tensor.empty() : tensor<12x7xf64>
    %6:2 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg3, %arg3 : tensor<12x7xf64>, tensor<12x7xf64>) outs(%4, %5 : tensor<12x7xf64>, tensor<12x7xf64>) {
    ^bb0(%in: f64, %in_3: f64, %out: f64, %out_4: f64):
      %19 = arith.addf %in, %in_3 : f64
      %20 = arith.maximumf %in, %in_3 : f64
      linalg.yield %19, %20 : f64, f64
    } -> (tensor<12x7xf64>, tensor<12x7xf64>)
    %7 = dist.shard_tensor %6#0, #dist.sharding<@m, dims = [[], ["a0":(2)2]], open = ["a0":(1)2]> : tensor<12x7xf64>
    %8 = tensor.empty() : tensor<12x7xf64>
    %transposed = linalg.transpose ins(%6#1 : tensor<12x7xf64>) outs(%8 : tensor<12x7xf64>) permutation = [0, 1] 
    %reduced = linalg.reduce ins(%transposed : tensor<12x7xf64>) outs(%arg4 : tensor<f64>) dimensions = [0, 1] 
      (%in: f64, %init: f64) {
        %19 = arith.maximumf %in, %init : f64
        linalg.yield %19 : f64
      }
    %cst_1 = arith.constant dense<"0x000000000000C0BF000000000000D8BF000000000000E83F000000000000F03F000000000000E4BF000000000000ECBF000000000000E43F0000000000000000000000000000F0BF000000000000EC3F000000000000E0BF000000000000D8BF000000000000C0BF000000000000F0BF000000000000D0BF000000000000D03F000000000000E43F000000000000E8BF000000000000E0BF000000000000D8BF000000000000C0BF000000000000D0BF000000000000E43F000000000000E83F000000000000E0BF000000000000E8BF000000000000EC3F000000000000D83F000000000000ECBF000000000000E83F000000000000E4BF000000000000E83F000000000000E83F000000000000E83F000000000000E8BF000000000000E03F000000000000D0BF000000000000C03F000000000000ECBF000000000000D0BF000000000000ECBF000000000000ECBF000000000000D0BF000000000000E43F000000000000E43F000000000000F03F000000000000E0BF000000000000C0BF000000000000F03F000000000000EC3F000000000000EC3F000000000000F0BF000000000000E43F000000000000F03F0000000000000000000000000000E83F000000000000C03F000000000000D8BF000000000000D83F000000000000E83F000000000000F03F000000000000F0BF000000000000C0BF000000000000EC3F000000000000EC3F000000000000D83F000000000000D83F000000000000F03F000000000000C03F000000000000E4BF000000000000E8BF000000000000C0BF000000000000D0BF000000000000E83F00000000000000000000000000000000000000000000D83F000000000000C0BF000000000000D0BF000000000000C03F000000000000C0BF000000000000E0BF000000000000D8BF000000000000F03F000000000000D03F0000000000000000000000000000E8BF000000000000E03F000000000000D0BF000000000000E0BF000000000000D0BF000000000000D8BF000000000000D03F000000000000E83F000000000000E8BF000000000000E4BF000000000000E83F000000000000C0BF000000000000EC3F000000000000E4BF000000000000D83F0000000000000000000000000000F03F000000000000E43F000000000000F0BF"> : tensor<3x7x5xf64>
    %9 = tensor.empty() : tensor<3x7x5xf64>
    %10 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<3x7x5xf64>) outs(%9 : tensor<3x7x5xf64>) {
    ^bb0(%in: f64, %out: f64):
      %19 = linalg.index 1 : index
      %20 = linalg.index 2 : index
      %c-2 = arith.constant -2 : index
      %21 = arith.addi %20, %c-2 : index
      %22 = arith.cmpi sge, %19, %21 : index
      %cst_3 = arith.constant 5.000000e+00 : f64
      %23 = arith.select %22, %in, %cst_3 : f64
      linalg.yield %23 : f64
    } -> tensor<3x7x5xf64>
    %11 = ext.sort dim = 0 keys = 1 limit = 1 ins(%7 : tensor<12x7xf64>)
    %cst_2 = arith.constant 0.000000e+00 : f64
    %12 = tensor.empty() : tensor<7x1xf64>
    %13 = linalg.fill ins(%cst_2 : f64) outs(%12 : tensor<7x1xf64>) -> tensor<7x1xf64>
    %14 = linalg.generic {indexing_maps = [#map3, #map3, #map5], iterator_types = ["parallel", "parallel"]} ins(%11, %arg5 : tensor<1x7xf64>, tensor<1x7xf64>) outs(%13 : tensor<7x1xf64>) {
    ^bb0(%in: f64, %in_3: f64, %out: f64):
      %19 = arith.mulf %in, %in_3 : f64
      %20 = arith.addf %out, %19 : f64
      linalg.yield %20 : f64
    } -> tensor<7x1xf64>
    %15 = tensor.empty() : tensor<16xi64>
    %16 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel"]} outs(%15 : tensor<16xi64>) {
    ^bb0(%out: i64):
      %c1 = arith.constant 1 : index
      %19 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %20 = arith.muli %c1, %c2 : index
      %21 = arith.addi %20, %19 : index
      %22 = arith.index_cast %21 : index to i64
      linalg.yield %22 : i64
    } -> tensor<16xi64>
    %17 = arith.cmpi sgt, %16, %arg6 : tensor<16xi64>
    %18 = arith.select %17, %16, %arg6 : tensor<16xi1>, tensor<16xi64>
    return %18, %14, %10 : tensor<16xi64>, tensor<7x1xf64>, tensor<3x7x5xf64>
  }
}

