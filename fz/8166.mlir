module {
  dist.process_mesh @m(shape = [2], dim_names = ["a0"])
  func.func @main(%arg0: tensor<3x14xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg1: tensor<5x7x1x5xf32>, %arg2: tensor<5x4x3x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"], [], []]>}, %arg3: tensor<5x17xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?]>}, %arg4: tensor<1x2x3x2xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], [], []]>}, %arg5: tensor<6x16x1xf64>, %arg6: tensor<6x1x6xf64>, %arg7: tensor<6x16x6xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], []]>}, %arg8: tensor<6x4x3x17xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<6x4x3x17xf32>, tensor<3x14xi32>, tensor<11xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
    %extracted_slice = tensor.extract_slice %arg0[1, 3] [1, 11] [2, 1] : tensor<3x14xi32> to tensor<11xi32>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg9: index, %arg10: index, %arg11: index, %arg12: index):
      tensor.yield %cst : f32
    } : tensor<5x7x1x5xf32> to tensor<5x9x3x5xf32>
    %0 = tensor.empty() : tensor<2x1xf32>
    %1 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%padded, %0 : tensor<5x9x3x5xf32>, tensor<2x1xf32>) outs(%arg2 : tensor<5x4x3x5xf32>) -> tensor<5x4x3x5xf32>
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c2 = arith.constant 2 : index
    %2 = scf.for %arg9 = %c1 to %c5 step %c2 iter_args(%arg10 = %arg0) -> (tensor<3x14xi32>) {
      %4 = ext.sort dim = 1 keys = 1 descending limit = 14 ins(%arg3 : tensor<5x17xi64>)
      %inserted_slice = tensor.insert_slice %arg4 into %1[4, 2, 0, 3] [1, 2, 3, 2] [1, 1, 1, 1] : tensor<1x2x3x2xf32> into tensor<5x4x3x5xf32>
      %5 = dist.shard_tensor %4, #dist.sharding<@m, [replicate]> : tensor<5x14xi64>
      %6 = linalg.batch_matmul ins(%arg5, %arg6 : tensor<6x16x1xf64>, tensor<6x1x6xf64>) outs(%arg7 : tensor<6x16x6xf64>) -> tensor<6x16x6xf64>
      %7 = dist.shard_tensor %5, #dist.sharding<@m, [shard(1)]> : tensor<5x14xi64>
      scf.yield %arg10 : tensor<3x14xi32>
    }
    %3 = dist.shard_tensor %arg8, #dist.sharding<@m, dims = [["a0"], [], [], []]> : tensor<6x4x3x17xf32>
    return %3, %2, %extracted_slice : tensor<6x4x3x17xf32>, tensor<3x14xi32>, tensor<11xi32>
  }
}

