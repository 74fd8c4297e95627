#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, -d3 + 1)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> (d0, d0)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d3, d1)>
module {
  dist.process_mesh @m(shape = [7], dim_names = ["a0"], process_ids = [5, 1, 3, 0, 6, 2, 4])
  func.func @main(%arg0: tensor<8x6x4x2xf64> {dist.sharding = #dist.sharding<@m, [shard(2)]>}, %arg1: tensor<5xi64> {dist.range = [-4, 5]}, %arg2: tensor<5x5xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], []]>}, %arg3: tensor<8x5xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?]>}, %arg4: tensor<2x1x1x1xf64> {dist.sharding = #dist.sharding<@m, dims = [[], [], [], []], open = ["a0"]>}, %arg5: tensor<1x3xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<1x3x6x1xf64> {dist.sharding = #dist.sharding<@m, [shard(2)]>}, tensor<5x8xi64>, tensor<f64>) {
    %0 = tensor.empty() : tensor<8x6x4x2xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<8x6x4x2xf64>) outs(%0 : tensor<8x6x4x2xf64>) {
    ^bb0(%in: f64, %out: f64):
      linalg.yield %in : f64
    } -> tensor<8x6x4x2xf64>
    %cst = arith.constant dense<-7.500000e-01> : tensor<f64>
    %c3 = arith.constant 3 : index
    %c3_0 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %2 = scf.for %arg6 = %c3 to %c3_0 step %c2 iter_args(%arg7 = %cst) -> (tensor<f64>) {
      %10 = tensor.empty() : tensor<4x6x8x2xf64>
      %transposed = linalg.transpose ins(%1 : tensor<8x6x4x2xf64>) outs(%10 : tensor<4x6x8x2xf64>) permutation = [2, 1, 0, 3] 
      %extracted_slice_4 = tensor.extract_slice %transposed[0, 0, 1, 0] [4, 2, 3, 1] [1, 3, 3, 1] : tensor<4x6x8x2xf64> to tensor<4x2x3x1xf64>
      %11 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel"]} ins(%arg1 : tensor<5xi64>) outs(%arg2 : tensor<5x5xi64>) {
      ^bb0(%in: i64, %out: i64):
        linalg.yield %in : i64
      } -> tensor<5x5xi64>
      scf.yield %arg7 : tensor<f64>
    }
    %extracted_slice = tensor.extract_slice %1[7, 0, 0, 0] [1, 2, 4, 1] [2, 3, 1, 1] : tensor<8x6x4x2xf64> to tensor<1x2x4x1xf64>
    %cst_1 = arith.constant dense<0> : tensor<5x8xi64>
    %3 = linalg.matmul indexing_maps = [#map4, #map5, #map6] ins(%arg2, %arg3 : tensor<5x5xi64>, tensor<8x5xi64>) outs(%cst_1 : tensor<5x8xi64>) -> tensor<5x8xi64>
    %4 = math.tanh %extracted_slice : tensor<1x2x4x1xf64>
    %cst_2 = arith.constant 0.000000e+00 : f64
    %padded = tensor.pad %4 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg6: index, %arg7: index, %arg8: index, %arg9: index):
      tensor.yield %cst_2 : f64
    } : tensor<1x2x4x1xf64> to tensor<1x4x6x1xf64>
    %cst_3 = arith.constant 0.000000e+00 : f64
    %5 = tensor.empty() : tensor<1x3x6x1xf64>
    %6 = linalg.fill ins(%cst_3 : f64) outs(%5 : tensor<1x3x6x1xf64>) -> tensor<1x3x6x1xf64>
    %7 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %arg4 : tensor<1x4x6x1xf64>, tensor<2x1x1x1xf64>) outs(%6 : tensor<1x3x6x1xf64>) -> tensor<1x3x6x1xf64>
    %8 = tensor.empty() : tensor<1x3x6x1xf64>
    %9 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %arg5 : tensor<1x3x6x1xf64>, tensor<1x3xf64>) outs(%8 : tensor<1x3x6x1xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %10 = arith.addf %in, %in_4 : f64
      linalg.yield %10 : f64
    } -> tensor<1x3x6x1xf64>
    return %9, %3, %2 : tensor<1x3x6x1xf64>, tensor<5x8xi64>, tensor<f64>
  }
}

