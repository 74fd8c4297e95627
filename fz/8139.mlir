#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0) -> (d0)>
module {
  dist.process_mesh @m(shape = [4, 3], dim_names = ["a0", "a1"], process_ids = [8, 5, 3, 10, 7, 11, 6, 2, 4, 1, 9, 0])
  func.func @main(%arg0: tensor<9x4x3x3xi32> {dist.range = [-4, 5]}, %arg1: tensor<2x2xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}, %arg2: tensor<5x9xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1"], []], open = ["a0"]>}, %arg3: tensor<9x5xi64> {dist.range = [-4, 5]}, %arg4: tensor<5xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"]]>}) -> (tensor<5xi64> {dist.feeds = 4 : i64}, tensor<5xi64>, tensor<2x2xi32> {dist.feeds = 1 : i64}) {
    %c-2147483647_i32 = arith.constant -2147483647 : i32
    %0 = tensor.empty() : tensor<9x4x1x3xi32>
    %1 = linalg.fill ins(%c-2147483647_i32 : i32) outs(%0 : tensor<9x4x1x3xi32>) -> tensor<9x4x1x3xi32>
    %2 = tensor.empty() : tensor<1x3xi32>
    %3 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%arg0, %2 : tensor<9x4x3x3xi32>, tensor<1x3xi32>) outs(%1 : tensor<9x4x1x3xi32>) -> tensor<9x4x1x3xi32>
    %c0_i32 = arith.constant 0 : i32
    %padded = tensor.pad %arg1 low[1, 0] high[0, 0] {
    ^bb0(%arg5: index, %arg6: index):
      tensor.yield %c0_i32 : i32
    } : tensor<2x2xi32> to tensor<3x2xi32>
    %extracted_slice = tensor.extract_slice %padded[0, 0] [2, 2] [1, 1] : tensor<3x2xi32> to tensor<2x2xi32>
    %c0_i64 = arith.constant 0 : i64
    %4 = tensor.empty() : tensor<5x5xi64>
    %5 = linalg.fill ins(%c0_i64 : i64) outs(%4 : tensor<5x5xi64>) -> tensor<5x5xi64>
    %6 = linalg.matmul ins(%arg2, %arg3 : tensor<5x9xi64>, tensor<9x5xi64>) outs(%5 : tensor<5x5xi64>) -> tensor<5x5xi64>
    %c0_i64_0 = arith.constant 0 : i64
    %7 = tensor.empty() : tensor<5xi64>
    %8 = linalg.fill ins(%c0_i64_0 : i64) outs(%7 : tensor<5xi64>) -> tensor<5xi64>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "reduction"]} ins(%6, %6 : tensor<5x5xi64>, tensor<5x5xi64>) outs(%8 : tensor<5xi64>) {
    ^bb0(%in: i64, %in_2: i64, %out: i64):
      %16 = arith.subi %in, %in_2 : i64
      %17 = arith.addi %out, %16 : i64
      linalg.yield %17 : i64
    } -> tensor<5xi64>
    %c0_i64_1 = arith.constant 0 : i64
    %10 = tensor.empty() : tensor<5xi64>
    %11 = linalg.fill ins(%c0_i64_1 : i64) outs(%10 : tensor<5xi64>) -> tensor<5xi64>
    %12 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg2, %arg2 : tensor<5x9xi64>, tensor<5x9xi64>) outs(%11 : tensor<5xi64>) {
    ^bb0(%in: i64, %in_2: i64, %out: i64):
      %16 = arith.subi %in, %in_2 : i64
      %17 = arith.addi %out, %16 : i64
      linalg.yield %17 : i64
    } -> tensor<5xi64>
    %13 = dist.shard_tensor %9, #dist.sharding<@m, dims = [[]], open = ["a1", "a0":(2)2]> : tensor<5xi64>
    %14 = tensor.empty() : tensor<5xi64>
    %15 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel"]} ins(%12, %arg4 : tensor<5xi64>, tensor<5xi64>) outs(%14 : tensor<5xi64>) {
    ^bb0(%in: i64, %in_2: i64, %out: i64):
      %16 = arith.muli %in, %in_2 : i64
      linalg.yield %16 : i64
    } -> tensor<5xi64>
    return %15, %13, %extracted_slice : tensor<5xi64>, tensor<5xi64>, tensor<2x2xi32>
  }
}

