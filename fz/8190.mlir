#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [4, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<9x2x13x8xf32> {dist.sharding = #dist.sharding<@m, [shard(2, order = 0), shard(2, order = 1)]>}, %arg1: tensor<3x1xindex> {dist.range = [0, 8], dist.sharding = #dist.sharding<@m, [shard(0), ?]>}, %arg2: tensor<39x8xf32>, %arg3: tensor<i64> {dist.range = [-4, 5]}, %arg4: tensor<3x5x14x1xf32>, %arg5: tensor<f64>, %arg6: tensor<8x2xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<2x1x3x1xf32>, tensor<39x2xf32> {dist.sharding = #dist.sharding<@m, [shard(1), ?]>}, tensor<f64> {dist.feeds = 5 : i64}, tensor<i64>) {
    %cst = arith.constant dense<1.000000e+00> : tensor<9x13x8xf32>
    %reduced = linalg.reduce ins(%arg0 : tensor<9x2x13x8xf32>) outs(%cst : tensor<9x13x8xf32>) dimensions = [1] 
      (%in: f32, %init: f32) {
        %12 = arith.mulf %in, %init : f32
        linalg.yield %12 : f32
      }
    %gather = tensor.gather %reduced[%arg1] gather_dims([2]) : (tensor<9x13x8xf32>, tensor<3x1xindex>) -> tensor<3x9x13x1xf32>
    %cst_0 = arith.constant dense<[[5.000000e-01, -6.250000e-01, -8.750000e-01, 6.250000e-01, -1.000000e+00, -5.000000e-01, -1.250000e-01, 5.000000e-01, 7.500000e-01, -6.250000e-01, -3.750000e-01, -1.000000e+00, 1.250000e-01, 0.000000e+00, -1.000000e+00, -3.750000e-01, -1.000000e+00, 0.000000e+00, -5.000000e-01, 8.750000e-01, -1.000000e+00, 1.250000e-01, 8.750000e-01, 2.500000e-01, 8.750000e-01, 7.500000e-01, -3.750000e-01, 0.000000e+00, 1.000000e+00, -8.750000e-01, -5.000000e-01, -1.000000e+00, -1.000000e+00, 0.000000e+00, 1.250000e-01, 8.750000e-01, 0.000000e+00, 6.250000e-01, -1.250000e-01], [1.250000e-01, 1.250000e-01, 2.500000e-01, -2.500000e-01, 0.000000e+00, -8.750000e-01, 0.000000e+00, 7.500000e-01, -5.000000e-01, -2.500000e-01, -1.000000e+00, -7.500000e-01, -1.250000e-01, -3.750000e-01, -6.250000e-01, -6.250000e-01, 6.250000e-01, 1.000000e+00, 1.250000e-01, 8.750000e-01, 5.000000e-01, 0.000000e+00, -1.000000e+00, -7.500000e-01, -2.500000e-01, 1.000000e+00, -2.500000e-01, 5.000000e-01, -3.750000e-01, -6.250000e-01, 3.750000e-01, 0.000000e+00, -6.250000e-01, -1.000000e+00, -8.750000e-01, -7.500000e-01, 5.000000e-01, -1.250000e-01, 3.750000e-01]]> : tensor<2x39xf32>
    %cst_1 = arith.constant dense<[[3.750000e-01, 1.000000e+00, -5.000000e-01, 8.750000e-01, -7.500000e-01, -6.250000e-01, 5.000000e-01, -7.500000e-01], [0.000000e+00, 1.000000e+00, -8.750000e-01, -2.500000e-01, -7.500000e-01, 6.250000e-01, -7.500000e-01, 1.000000e+00]]> : tensor<2x8xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<39x8xf32>
    %0 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%cst_0, %cst_1 : tensor<2x39xf32>, tensor<2x8xf32>) outs(%cst_2 : tensor<39x8xf32>) -> tensor<39x8xf32>
    %cst_3 = arith.constant 3.125000e-02 : f32
    %splat = tensor.splat %cst_3 : tensor<39x8xf32>
    %1 = arith.mulf %0, %splat : tensor<39x8xf32>
    %2 = arith.subf %arg2, %1 : tensor<39x8xf32>
    %3 = arith.cmpi sgt, %arg3, %arg3 : tensor<i64>
    %4 = arith.select %3, %arg3, %arg3 : tensor<i1>, tensor<i64>
    %cst_4 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %gather low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst_4 : f32
    } : tensor<3x9x13x1xf32> to tensor<3x11x15x1xf32>
    %5 = tensor.empty() : tensor<3x2xf32>
    %6 = linalg.pooling_nhwc_min {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%padded, %5 : tensor<3x11x15x1xf32>, tensor<3x2xf32>) outs(%arg4 : tensor<3x5x14x1xf32>) -> tensor<3x5x14x1xf32>
    %cst_5 = arith.constant 0.000000e+00 : f32
    %padded_6 = tensor.pad %2 low[0, 3] high[0, 0] {
    ^bb0(%arg7: index, %arg8: index):
      tensor.yield %cst_5 : f32
    } : tensor<39x8xf32> to tensor<39x11xf32>
    %extracted_slice = tensor.extract_slice %padded_6[0, 0] [39, 8] [1, 1] : tensor<39x11xf32> to tensor<39x8xf32>
    %7 = dist.shard_tensor %arg5, #dist.sharding<@m, [replicate, replicate]> : tensor<f64>
    %cst_7 = arith.constant 0.000000e+00 : f32
    %8 = tensor.empty() : tensor<39x2xf32>
    %9 = linalg.fill ins(%cst_7 : f32) outs(%8 : tensor<39x2xf32>) -> tensor<39x2xf32>
    %10 = linalg.matmul ins(%extracted_slice, %arg6 : tensor<39x8xf32>, tensor<8x2xf32>) outs(%9 : tensor<39x2xf32>) -> tensor<39x2xf32>
    %cst_8 = arith.constant dense<1.250000e-01> : tensor<39x2xf32>
    %11 = arith.mulf %10, %cst_8 : tensor<39x2xf32>
    %extracted_slice_9 = tensor.extract_slice %6[1, 4, 5, 0] [2, 1, 3, 1] [1, 1, 1, 1] : tensor<3x5x14x1xf32> to tensor<2x1x3x1xf32>
    return %extracted_slice_9, %11, %7, %4 : tensor<2x1x3x1xf32>, tensor<39x2xf32>, tensor<f64>, tensor<i64>
  }
}

