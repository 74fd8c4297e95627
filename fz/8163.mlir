module {
  dist.process_mesh @m(shape = [6, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<8x10x17xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate, shard(0)]>}) -> (tensor<12x1x7xf64> {dist.sharding = #dist.sharding<@m, dims = [[], ["a1"], ["a2", "a0":(3)2]], open = ["a0":(1)3]>}) {
    %0 = tensor.empty() : tensor<8x10x17xf32>
    %1 = linalg.softmax dimension(1) ins(%arg0 : tensor<8x10x17xf32>) outs(%0 : tensor<8x10x17xf32>) -> tensor<8x10x17xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %1 low[3, 0, 0] high[0, 0, 0] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index):
      tensor.yield %cst : f32
    } : tensor<8x10x17xf32> to tensor<11x10x17xf32>
    %extracted_slice = tensor.extract_slice %padded[0, 0, 0] [8, 10, 17] [1, 1, 1] : tensor<11x10x17xf32> to tensor<8x10x17xf32>
    %2 = dist.shard_tensor %1, #dist.sharding<@m, [shard(0), ?, ?]> : tensor<8x10x17xf32>
    %collapsed = tensor.collapse_shape %arg0 [[0], [1, 2]] : tensor<8x10x17xf32> into tensor<8x170xf32>
    %cst_0 = arith.constant dense<[[[6.250000e-01, 1.250000e-01, 3.750000e-01, 0.000000e+00, -8.750000e-01, 0.000000e+00, 3.750000e-01]], [[1.250000e-01, 0.000000e+00, 0.000000e+00, -7.500000e-01, -5.000000e-01, -1.000000e+00, -2.500000e-01]], [[6.250000e-01, 5.000000e-01, 5.000000e-01, -8.750000e-01, 6.250000e-01, -1.250000e-01, -5.000000e-01]], [[7.500000e-01, -1.250000e-01, -1.250000e-01, -6.250000e-01, -1.250000e-01, 2.500000e-01, -1.000000e+00]], [[-1.250000e-01, 1.250000e-01, -5.000000e-01, 5.000000e-01, 1.000000e+00, 3.750000e-01, -1.250000e-01]], [[-1.000000e+00, 3.750000e-01, -1.250000e-01, -7.500000e-01, -1.250000e-01, 1.250000e-01, 0.000000e+00]], [[-8.750000e-01, 5.000000e-01, -5.000000e-01, 7.500000e-01, 1.250000e-01, -2.500000e-01, 7.500000e-01]], [[-3.750000e-01, -1.000000e+00, -8.750000e-01, -7.500000e-01, 8.750000e-01, 8.750000e-01, 7.500000e-01]], [[2.500000e-01, -1.250000e-01, -7.500000e-01, 5.000000e-01, 0.000000e+00, 6.250000e-01, -2.500000e-01]], [[-5.000000e-01, -1.000000e+00, 3.750000e-01, 6.250000e-01, -1.000000e+00, -7.500000e-01, -3.750000e-01]], [[2.500000e-01, 7.500000e-01, -2.500000e-01, -1.250000e-01, 1.250000e-01, 5.000000e-01, 1.250000e-01]], [[7.500000e-01, 5.000000e-01, -8.750000e-01, 6.250000e-01, -2.500000e-01, 6.250000e-01, 1.250000e-01]]]> : tensor<12x1x7xf64>
    %3 = dist.shard_tensor %cst_0, #dist.sharding<@m, dims = [["a0":(3)2], ["a1"], ["a2"]], open = ["a0":(1)3]> : tensor<12x1x7xf64>
    return %3 : tensor<12x1x7xf64>
  }
}

