#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> (d0, d0)>
module {
  dist.process_mesh @m(shape = [6], dim_names = ["a0"])
  func.func @main(%arg0: tensor<12xi32> {dist.range = [-4, 5]}, %arg1: tensor<12x12xi32> {dist.range = [-4, 5]}, %arg2: tensor<7x17x6xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg3: tensor<1x6x3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], []]>}) -> (tensor<7x19x3xf32>, tensor<12x12xi32>, tensor<12x12xi32> {dist.sharding = #dist.sharding<@m, dims = [["a0":(2)3, "a0":(1)2], []]>}) {
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel"]} ins(%arg0 : tensor<12xi32>) outs(%arg1 : tensor<12x12xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<12x12xi32>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg2 low[0, 1, 0] high[0, 1, 0] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f32
    } : tensor<7x17x6xf32> to tensor<7x19x6xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %1 = tensor.empty() : tensor<7x19x3xf32>
    %2 = linalg.fill ins(%cst_0 : f32) outs(%1 : tensor<7x19x3xf32>) -> tensor<7x19x3xf32>
    %3 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%padded, %arg3 : tensor<7x19x6xf32>, tensor<1x6x3xf32>) outs(%2 : tensor<7x19x3xf32>) -> tensor<7x19x3xf32>
    return %3, %0, %arg1 : tensor<7x19x3xf32>, tensor<12x12xi32>, tensor<12x12xi32>
  }
}

