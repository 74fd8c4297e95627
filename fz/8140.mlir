#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> ()>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
module {
  dist.process_mesh @m(shape = [3, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<3x2x7x10xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [partial(prod), partial(prod), shard(2)]>}, %arg1: tensor<1x3x10x1xi32> {dist.range = [-4, 5]}, %arg2: tensor<13xf32>, %arg3: tensor<1x1xi32> {dist.range = [-4, 5]}, %arg4: tensor<7x17x9xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg5: tensor<7x7x9xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?, replicate]>}, %arg6: tensor<7x7x4xf32>, %arg7: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate, ?], priority = 2>}, %arg8: tensor<7x9x5xf32>, %arg9: tensor<7x7x5xf32>, %arg10: tensor<2x2x1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate, shard(0)]>}, %arg11: tensor<3x2x2x1xi32> {dist.range = [-4, 5]}) -> (tensor<7x7x5xf32> {dist.feeds = 9 : i64}, tensor<3x2x2x1xi32> {dist.feeds = 11 : i64}, tensor<4x13xf32>) {
    %cst = arith.constant dense<[[[[0], [0], [-3]]], [[[-2], [3], [1]]], [[[2], [-3], [1]]]]> : tensor<3x1x3x1xi32>
    %0 = linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%arg0, %arg1 : tensor<3x2x7x10xi32>, tensor<1x3x10x1xi32>) outs(%cst : tensor<3x1x3x1xi32>) -> tensor<3x1x3x1xi32>
    %1 = arith.minsi %0, %0 : tensor<3x1x3x1xi32>
    %2 = tensor.empty() : tensor<4x13xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<13xf32>) outs(%2 : tensor<4x13xf32>) dimensions = [0] 
    %reduced = linalg.reduce ins(%0 : tensor<3x1x3x1xi32>) outs(%arg3 : tensor<1x1xi32>) dimensions = [0, 2] 
      (%in: i32, %init: i32) {
        %9 = arith.minsi %in, %init : i32
        linalg.yield %9 : i32
      }
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c2_0 = arith.constant 2 : index
    %3:2 = scf.for %arg12 = %c2 to %c8 step %c2_0 iter_args(%arg13 = %arg2, %arg14 = %broadcasted) -> (tensor<13xf32>, tensor<4x13xf32>) {
      %expanded = tensor.expand_shape %arg3 [[0, 1, 2], [3, 4]] output_shape [1, 1, 1, 1, 1] : tensor<1x1xi32> into tensor<1x1x1x1x1xi32>
      %cst_2 = arith.constant 3.000000e+00 : f32
      %padded_3 = tensor.pad %arg13 low[2] high[2] {
      ^bb0(%arg15: index):
        tensor.yield %cst_2 : f32
      } : tensor<13xf32> to tensor<17xf32>
      %9 = tensor.empty() : tensor<13xf32>
      %10 = linalg.softmax dimension(0) ins(%arg13 : tensor<13xf32>) outs(%9 : tensor<13xf32>) -> tensor<13xf32>
      %11 = arith.addf %arg13, %10 : tensor<13xf32>
      %cst_4 = arith.constant dense<5.000000e-01> : tensor<13xf32>
      %12 = arith.mulf %11, %cst_4 : tensor<13xf32>
      scf.yield %12, %arg14 : tensor<13xf32>, tensor<4x13xf32>
    }
    %output = ext.attention indexing_maps = [#map, #map1, #map2, #map3, #map4] ins(%arg4, %arg5, %arg6, %arg7 : tensor<7x17x9xf32>, tensor<7x7x9xf32>, tensor<7x7x4xf32>, tensor<i32>) {
    ^bb0(%arg12: f32, %arg13: i32, %arg14: index, %arg15: index, %arg16: index, %arg17: index, %arg18: index):
      %9 = arith.cmpi sge, %arg15, %arg16 : index
      %cst_2 = arith.constant 0xFF800000 : f32
      %10 = arith.select %9, %arg12, %cst_2 : f32
      ext.yield %10 : f32
    } weights {
    ^bb0(%arg12: f32, %arg13: i32, %arg14: index, %arg15: index, %arg16: index, %arg17: index, %arg18: index):
      %9 = arith.index_cast %arg14 : index to i32
      %c-1640531535_i32 = arith.constant -1640531535 : i32
      %10 = arith.muli %arg13, %c-1640531535_i32 : i32
      %c15_i32 = arith.constant 15 : i32
      %11 = arith.shrui %10, %c15_i32 : i32
      %12 = arith.xori %10, %11 : i32
      %13 = arith.addi %12, %9 : i32
      %14 = arith.index_cast %arg15 : index to i32
      %c-1640531535_i32_2 = arith.constant -1640531535 : i32
      %15 = arith.muli %13, %c-1640531535_i32_2 : i32
      %c15_i32_3 = arith.constant 15 : i32
      %16 = arith.shrui %15, %c15_i32_3 : i32
      %17 = arith.xori %15, %16 : i32
      %18 = arith.addi %17, %14 : i32
      %19 = arith.index_cast %arg16 : index to i32
      %c-1640531535_i32_4 = arith.constant -1640531535 : i32
      %20 = arith.muli %18, %c-1640531535_i32_4 : i32
      %c15_i32_5 = arith.constant 15 : i32
      %21 = arith.shrui %20, %c15_i32_5 : i32
      %22 = arith.xori %20, %21 : i32
      %23 = arith.addi %22, %19 : i32
      %c-2048144777_i32 = arith.constant -2048144777 : i32
      %24 = arith.muli %23, %c-2048144777_i32 : i32
      %c30_i32 = arith.constant 30 : i32
      %25 = arith.shrui %24, %c30_i32 : i32
      %c0_i32_6 = arith.constant 0 : i32
      %26 = arith.cmpi ne, %25, %c0_i32_6 : i32
      %cst_7 = arith.constant 7.500000e-01 : f32
      %27 = arith.divf %arg12, %cst_7 : f32
      %cst_8 = arith.constant 0.000000e+00 : f32
      %28 = arith.select %26, %27, %cst_8 : f32
      ext.yield %28 : f32
    } -> tensor<7x17x4xf32>
    %4 = dist.shard_tensor %3#1, #dist.sharding<@m, [replicate, shard(0), replicate]> : tensor<4x13xf32>
    %5 = linalg.batch_matmul ins(%arg5, %arg8 : tensor<7x7x9xf32>, tensor<7x9x5xf32>) outs(%arg9 : tensor<7x7x5xf32>) -> tensor<7x7x5xf32>
    %c0_i32 = arith.constant 0 : i32
    %padded = tensor.pad %1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg12: index, %arg13: index, %arg14: index, %arg15: index):
      tensor.yield %c0_i32 : i32
    } : tensor<3x1x3x1xi32> to tensor<3x3x5x1xi32>
    %6 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[1, 2]> : tensor<2xi64>} ins(%padded, %arg10 : tensor<3x3x5x1xi32>, tensor<2x2x1xi32>) outs(%arg11 : tensor<3x2x2x1xi32>) -> tensor<3x2x2x1xi32>
    %7 = dist.shard_tensor %5, #dist.sharding<@m, [shard(0), replicate], priority = 0> : tensor<7x7x5xf32>
    %cst_1 = arith.constant dense<6.250000e-02> : tensor<7x7x5xf32>
    %8 = arith.mulf %7, %cst_1 : tensor<7x7x5xf32>
    return %8, %6, %4 : tensor<7x7x5xf32>, tensor<3x2x2x1xi32>, tensor<4x13xf32>
  }
}

