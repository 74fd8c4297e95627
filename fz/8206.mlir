#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d2)>
module {
  dist.process_mesh @m(shape = [3, 2, 2], dim_names = ["a0", "a1", "a2"], process_ids = [10, 9, 7, 6, 11, 3, 0, 2, 4, 5, 1, 8])
  func.func @main(%arg0: tensor<3x14xf32>, %arg1: tensor<3x7x3x5xi64> {dist.range = [-4, 5]}, %arg2: tensor<14x13xf32>, %arg3: tensor<3x13xf32>, %arg4: tensor<2x11x6xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], [], ["a0", "a1"]]>}, %arg5: tensor<1x6x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0), replicate]>}, %arg6: tensor<3xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate, replicate]>}, %arg7: tensor<14x8xf32>, %arg8: tensor<14x7xf32> {dist.sharding = #dist.sharding<@m, dims = [["a2", "a1"], []], open = ["a0"]>}) -> (tensor<3x14xf32>, tensor<14x5xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(0, order = 0), shard(0, order = 1)]>}, tensor<3x7x3x5xi64> {dist.feeds = 1 : i64, dist.sharding = #dist.sharding<@m, dims = [[], [], ["a0"], []], partial = [prod("a1")]>}) {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %0 = scf.for %arg9 = %c1 to %c3 step %c2 iter_args(%arg10 = %arg0) -> (tensor<3x14xf32>) {
      %cst_1 = arith.constant dense<[6.250000e-01, 1.000000e+00, 7.500000e-01, -3.750000e-01, -2.500000e-01, 6.250000e-01, -1.000000e+00]> : tensor<7xf32>
      %cst_2 = arith.constant 0.000000e+00 : f32
      %padded = tensor.pad %cst_1 low[0] high[0] {
      ^bb0(%arg11: index):
        tensor.yield %cst_2 : f32
      } : tensor<7xf32> to tensor<7xf32>
      %4 = dist.reshard %arg1 to #dist.sharding<@m, [partial(sum), partial(sum)]> : tensor<3x7x3x5xi64>
      %5 = linalg.matmul ins(%arg0, %arg2 : tensor<3x14xf32>, tensor<14x13xf32>) outs(%arg3 : tensor<3x13xf32>) -> tensor<3x13xf32>
      %c0_i64 = arith.constant 0 : i64
      %6 = tensor.empty() : tensor<2x11x4xi64>
      %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<2x11x4xi64>) -> tensor<2x11x4xi64>
      %8 = linalg.conv_1d_nwc_wcf {dilations = dense<2> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%arg4, %arg5 : tensor<2x11x6xi64>, tensor<1x6x4xi64>) outs(%7 : tensor<2x11x4xi64>) -> tensor<2x11x4xi64>
      scf.yield %arg10 : tensor<3x14xf32>
    }
    %1 = tensor.empty() : tensor<3x7x3x5xi64>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %arg6 : tensor<3x7x3x5xi64>, tensor<3xi64>) outs(%1 : tensor<3x7x3x5xi64>) {
    ^bb0(%in: i64, %in_1: i64, %out: i64):
      %4 = arith.muli %in, %in_1 : i64
      linalg.yield %4 : i64
    } -> tensor<3x7x3x5xi64>
    %extracted_slice = tensor.extract_slice %arg7[0, 6] [14, 1] [1, 1] : tensor<14x8xf32> to tensor<14x1xf32>
    %extracted_slice_0 = tensor.extract_slice %arg8[0, 1] [14, 3] [1, 1] : tensor<14x7xf32> to tensor<14x3xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<14x1xf32>
    %concat = tensor.concat dim(1) %extracted_slice, %cst, %extracted_slice_0 : (tensor<14x1xf32>, tensor<14x1xf32>, tensor<14x3xf32>) -> tensor<14x5xf32>
    %3 = dist.reshard %0 to #dist.sharding<@m, dims = [[], ["a0"]], open = ["a2"]> : tensor<3x14xf32>
    return %3, %concat, %2 : tensor<3x14xf32>, tensor<14x5xf32>, tensor<3x7x3x5xi64>
  }
}

