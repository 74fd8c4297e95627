#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0 + d1)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [5, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<2x13x3xi32> {dist.range = [-4, 5]}, %arg1: tensor<3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"]], open = ["a2", "a0"]>}, %arg2: tensor<2x13x3xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], [], ["a2"]], open = ["a0", "a1"]>}, %arg3: tensor<10x6xf64> {dist.sharding = #dist.sharding<@m, [replicate, shard(1), shard(0)]>}, %arg4: tensor<15xf64> {dist.sharding = #dist.sharding<@m, [replicate, shard(0), replicate], priority = 0>}, %arg5: tensor<16xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"]]>}, %arg6: tensor<3x1xf32>) -> (tensor<3xf32>, tensor<2x13x3xi32>, tensor<2x13x2xi32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a1"], ["a2", "a0"]]>}) {
    %c0_i32 = arith.constant 0 : i32
    %padded = tensor.pad %arg0 low[2, 0, 0] high[1, 0, 3] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index):
      tensor.yield %c0_i32 : i32
    } : tensor<2x13x3xi32> to tensor<5x13x6xi32>
    %0 = tensor.empty() : tensor<2x3x3xf32>
    %broadcasted = linalg.broadcast ins(%arg1 : tensor<3xf32>) outs(%0 : tensor<2x3x3xf32>) dimensions = [0, 2] 
    %1 = arith.subi %arg0, %arg2 : tensor<2x13x3xi32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg3 : tensor<10x6xf64>) outs(%arg4 : tensor<15xf64>) {
    ^bb0(%in: f64, %out: f64):
      %14 = arith.addf %out, %in : f64
      linalg.yield %14 : f64
    } -> tensor<15xf64>
    %cst = arith.constant 0.000000e+00 : f32
    %3 = tensor.empty() : tensor<f32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<f32>) -> tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["reduction"]} ins(%arg5, %arg5 : tensor<16xf32>, tensor<16xf32>) outs(%4 : tensor<f32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %14 = arith.subf %in, %in_7 : f32
      %15 = arith.addf %14, %out : f32
      linalg.yield %15 : f32
    } -> tensor<f32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %splat = tensor.splat %cst_0 : tensor<f32>
    %6 = arith.mulf %5, %splat : tensor<f32>
    %collapsed = tensor.collapse_shape %1 [[0], [1], [2]] : tensor<2x13x3xi32> into tensor<2x13x3xi32>
    %cst_1 = arith.constant dense<[[6.250000e-01, -2.500000e-01, -6.250000e-01], [-6.250000e-01, -6.250000e-01, 5.000000e-01], [-6.250000e-01, -7.500000e-01, -7.500000e-01], [0.000000e+00, 2.500000e-01, 5.000000e-01], [-1.000000e+00, 7.500000e-01, -3.750000e-01], [5.000000e-01, 1.000000e+00, -1.000000e+00]]> : tensor<6x3xf64>
    %cst_2 = arith.constant 0.000000e+00 : f64
    %7 = tensor.empty() : tensor<10x3xf64>
    %8 = linalg.fill ins(%cst_2 : f64) outs(%7 : tensor<10x3xf64>) -> tensor<10x3xf64>
    %9 = linalg.matmul ins(%arg3, %cst_1 : tensor<10x6xf64>, tensor<6x3xf64>) outs(%8 : tensor<10x3xf64>) -> tensor<10x3xf64>
    %cst_3 = arith.constant dense<[[[-3, -1], [3, -1], [2, 2]], [[3, -1], [3, -3], [3, 0]]]> : tensor<2x3x2xi32>
    %c0_i32_4 = arith.constant 0 : i32
    %10 = tensor.empty() : tensor<2x13x2xi32>
    %11 = linalg.fill ins(%c0_i32_4 : i32) outs(%10 : tensor<2x13x2xi32>) -> tensor<2x13x2xi32>
    %12 = linalg.batch_matmul ins(%collapsed, %cst_3 : tensor<2x13x3xi32>, tensor<2x3x2xi32>) outs(%11 : tensor<2x13x2xi32>) -> tensor<2x13x2xi32>
    %c3_i32 = arith.constant 3 : i32
    %splat_5 = tensor.splat %c3_i32 : tensor<2x13x3xi32>
    %13 = arith.floordivsi %collapsed, %splat_5 : tensor<2x13x3xi32>
    %cst_6 = arith.constant dense<[[2], [1], [0]]> : tensor<3x1xindex>
    %scatter = tensor.scatter %arg6 into %arg1[%cst_6] scatter_dims([0]) unique : (tensor<3x1xf32>, tensor<3xf32>, tensor<3x1xindex>) -> tensor<3xf32>
    return %scatter, %13, %12 : tensor<3xf32>, tensor<2x13x3xi32>, tensor<2x13x2xi32>
  }
}

