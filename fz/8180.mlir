module {
  dist.process_mesh @m(shape = [6, 2, 1], dim_names = ["a0", "a1", "a2"], process_ids = [10, 2, 11, 1, 7, 3, 5, 0, 9, 4, 6, 8])
  func.func @main(%arg0: tensor<2x4x9xi64> {dist.range = [-4, 5]}, %arg1: tensor<3x9x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, shard(2)]>}, %arg2: tensor<8x8x2x3xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a0":(1)2], ["a1", "a0":(2)3], []], open = ["a2"]>}, %arg3: tensor<1x1x3x2xi64> {dist.range = [-4, 5]}) -> tensor<8x8x2x2xi64> {
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<2x1x4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<2x1x4xi64>) -> tensor<2x1x4xi64>
    %2 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>} ins(%arg0, %arg1 : tensor<2x4x9xi64>, tensor<3x9x4xi64>) outs(%1 : tensor<2x1x4xi64>) -> tensor<2x1x4xi64>
    %3 = dist.shard_tensor %arg1, #dist.sharding<@m, [replicate]> : tensor<3x9x4xi64>
    %c0_i64_0 = arith.constant 0 : i64
    %4 = tensor.empty() : tensor<8x8x2x2xi64>
    %5 = linalg.fill ins(%c0_i64_0 : i64) outs(%4 : tensor<8x8x2x2xi64>) -> tensor<8x8x2x2xi64>
    %6 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%arg2, %arg3 : tensor<8x8x2x3xi64>, tensor<1x1x3x2xi64>) outs(%5 : tensor<8x8x2x2xi64>) -> tensor<8x8x2x2xi64>
    %cst = arith.constant dense<2> : tensor<2xi64>
    %reduced = linalg.reduce ins(%6 : tensor<8x8x2x2xi64>) outs(%cst : tensor<2xi64>) dimensions = [0, 1, 2] 
      (%in: i64, %init: i64) {
        %8 = arith.muli %in, %init : i64
        linalg.yield %8 : i64
      }
    %7 = dist.shard_tensor %6, #dist.sharding<@m, [shard(2, order = 1), replicate, shard(2, order = 0)], priority = 2> : tensor<8x8x2x2xi64>
    return %7 : tensor<8x8x2x2xi64>
  }
}

