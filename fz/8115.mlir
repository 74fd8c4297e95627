#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [1, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<17x13xi32> {dist.range = [-4, 5]}, %arg1: tensor<f32> {dist.sharding = #dist.sharding<@m, [replicate, ?], priority = 0>}, %arg2: tensor<10x11xi32> {dist.range = [-4, 5]}, %arg3: tensor<1x1x11xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], [], []], open = ["a1", "a0"]>}, %arg4: tensor<14xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"]]>}, %arg5: tensor<1x11x4xi32> {dist.range = [-4, 5]}, %arg6: tensor<1x3x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a0", "a1"], []]>}, %arg7: tensor<9x10xi32> {dist.range = [-4, 5]}) -> (tensor<13x23xi32>, tensor<16x22xi32> {dist.sharding = #dist.sharding<@m, dims = [[], []]>}, tensor<1x3x4xi32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>}) {
    %0 = tensor.empty() : tensor<13x17xi32>
    %transposed = linalg.transpose ins(%arg0 : tensor<17x13xi32>) outs(%0 : tensor<13x17xi32>) permutation = [1, 0] 
    %cst = arith.constant dense<[[-3, 2, -1, -2, 0]]> : tensor<1x5xi32>
    %inserted_slice = tensor.insert_slice %cst into %arg0[16, 3] [1, 5] [3, 1] : tensor<1x5xi32> into tensor<17x13xi32>
    %cst_0 = arith.constant dense<[5, 14, 6, 14, 4, 16, 10, 12, 6, 11]> : tensor<10xi64>
    %1 = tensor.empty() : tensor<10x13xi32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_0 : tensor<10xi64>) outs(%1 : tensor<10x13xi32>) {
    ^bb0(%in: i64, %out: i32):
      %7 = arith.index_cast %in : i64 to index
      %8 = linalg.index 1 : index
      %extracted_7 = tensor.extract %arg0[%7, %8] : tensor<17x13xi32>
      linalg.yield %extracted_7 : i32
    } -> tensor<10x13xi32>
    %cst_1 = arith.constant dense<[0, 2, 0, 3, 3, 0, 2, 1, 1, 0, 3]> : tensor<11xi32>
    %c4 = arith.constant 4 : index
    %extracted = tensor.extract %cst_1[%c4] : tensor<11xi32>
    %3 = arith.index_cast %extracted : i32 to index
    %c0 = arith.constant 0 : index
    %4:3 = scf.while (%arg8 = %c0, %arg9 = %2, %arg10 = %arg1) : (index, tensor<10x13xi32>, tensor<f32>) -> (index, tensor<10x13xi32>, tensor<f32>) {
      %7 = arith.cmpi slt, %arg8, %3 : index
      scf.condition(%7) %arg8, %arg9, %arg10 : index, tensor<10x13xi32>, tensor<f32>
    } do {
    ^bb0(%arg8: index, %arg9: tensor<10x13xi32>, %arg10: tensor<f32>):
      %expanded = tensor.expand_shape %arg2 [[0, 1, 2], [3]] output_shape [10, 1, 1, 11] : tensor<10x11xi32> into tensor<10x1x1x11xi32>
      %7 = dist.reshard %arg10 to #dist.sharding<@m, [?, replicate]> : tensor<f32>
      %c0_i32_7 = arith.constant 0 : i32
      %padded_8 = tensor.pad %expanded low[0, 1, 1, 0] high[0, 1, 1, 0] {
      ^bb0(%arg11: index, %arg12: index, %arg13: index, %arg14: index):
        tensor.yield %c0_i32_7 : i32
      } : tensor<10x1x1x11xi32> to tensor<10x3x3x11xi32>
      %cst_9 = arith.constant dense<0> : tensor<10x3x3x11xi32>
      %8 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded_8, %arg3 : tensor<10x3x3x11xi32>, tensor<1x1x11xi32>) outs(%cst_9 : tensor<10x3x3x11xi32>) -> tensor<10x3x3x11xi32>
      %9 = arith.addf %arg10, %7 : tensor<f32>
      %10 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["reduction"]} ins(%arg4 : tensor<14xf32>) outs(%9 : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        %13 = arith.addf %out, %in : f32
        linalg.yield %13 : f32
      } -> tensor<f32>
      %cst_10 = arith.constant dense<1.250000e-01> : tensor<f32>
      %11 = arith.mulf %10, %cst_10 : tensor<f32>
      %c1 = arith.constant 1 : index
      %12 = arith.addi %arg8, %c1 : index
      scf.yield %12, %arg9, %11 : index, tensor<10x13xi32>, tensor<f32>
    }
    %padded = tensor.pad %transposed low[0, 2] high[0, 3] {
    ^bb0(%arg8: index, %arg9: index):
      %c0_7 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %7 = arith.muli %arg8, %c1 : index
      %8 = arith.addi %c0_7, %7 : index
      %c2 = arith.constant 2 : index
      %9 = arith.muli %arg9, %c2 : index
      %10 = arith.addi %8, %9 : index
      %11 = arith.index_cast %10 : index to i32
      tensor.yield %11 : i32
    } : tensor<13x17xi32> to tensor<13x22xi32>
    %c0_i32 = arith.constant 0 : i32
    %padded_2 = tensor.pad %arg3 low[0, 1, 0] high[0, 1, 0] {
    ^bb0(%arg8: index, %arg9: index, %arg10: index):
      tensor.yield %c0_i32 : i32
    } : tensor<1x1x11xi32> to tensor<1x3x11xi32>
    %5 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%padded_2, %arg5 : tensor<1x3x11xi32>, tensor<1x11x4xi32>) outs(%arg6 : tensor<1x3x4xi32>) -> tensor<1x3x4xi32>
    %6 = dist.shard_tensor %padded, #dist.sharding<@m, [replicate, shard(-1)]> : tensor<13x22xi32>
    %c0_i32_3 = arith.constant 0 : i32
    %padded_4 = tensor.pad %padded low[2, 0] high[1, 0] {
    ^bb0(%arg8: index, %arg9: index):
      tensor.yield %c0_i32_3 : i32
    } : tensor<13x22xi32> to tensor<16x22xi32>
    %padded_5 = tensor.pad %6 low[0, 1] high[0, 0] {
    ^bb0(%arg8: index, %arg9: index):
      %c0_7 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %7 = arith.muli %arg8, %c1 : index
      %8 = arith.addi %c0_7, %7 : index
      %c2 = arith.constant 2 : index
      %9 = arith.muli %arg9, %c2 : index
      %10 = arith.addi %8, %9 : index
      %11 = arith.index_cast %10 : index to i32
      tensor.yield %11 : i32
    } : tensor<13x22xi32> to tensor<13x23xi32>
    %inserted_slice_6 = tensor.insert_slice %arg7 into %padded_5[0, 0] [9, 10] [1, 1] : tensor<9x10xi32> into tensor<13x23xi32>
    return %inserted_slice_6, %padded_4, %5 : tensor<13x23xi32>, tensor<16x22xi32>, tensor<1x3x4xi32>
  }
}

