#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [2, 4], dim_names = ["a0", "a1"], process_ids = [6, 7, 0, 1, 4, 3, 5, 2])
  func.func @main(%arg0: tensor<3x16x4x4xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(2)]>}, %arg1: tensor<8x10x13xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], [], ["a1":(1)2, "a0"]]>}, %arg2: tensor<8x13x7xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}, %arg3: tensor<8x13x7xi64> {dist.range = [-4, 5]}, %arg4: tensor<17xf64>, %arg5: tensor<3x9xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1":(2)2], []], open = ["a1":(1)2, "a0"]>}) -> (tensor<3x9xf32> {dist.feeds = 5 : i64}, tensor<i64> {dist.sharding = #dist.sharding<@m, dims = [], open = ["a1"]>}, tensor<17xf64> {dist.feeds = 4 : i64}) {
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [2, 16, 1, 4] [1, 1, 1, 1] : tensor<3x16x4x4xf32> to tensor<2x16x1x4xf32>
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<8x10x7xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<8x10x7xi64>) -> tensor<8x10x7xi64>
    %2 = linalg.batch_matmul ins(%arg1, %arg2 : tensor<8x10x13xi64>, tensor<8x13x7xi64>) outs(%1 : tensor<8x10x7xi64>) -> tensor<8x10x7xi64>
    %c7 = arith.constant 7 : index
    %c6 = arith.constant 6 : index
    %c1 = arith.constant 1 : index
    %extracted = tensor.extract %2[%c7, %c6, %c1] : tensor<8x10x7xi64>
    %3 = arith.addi %extracted, %extracted : i64
    %4 = tensor.empty() : tensor<5xi64>
    %5 = linalg.fill ins(%3 : i64) outs(%4 : tensor<5xi64>) -> tensor<5xi64>
    %concat = tensor.concat dim(1) %arg2, %arg2, %arg3 : (tensor<8x13x7xi64>, tensor<8x13x7xi64>, tensor<8x13x7xi64>) -> tensor<8x39x7xi64>
    %c0_i64_0 = arith.constant 0 : i64
    %padded = tensor.pad %5 low[0] high[0] {
    ^bb0(%arg6: index):
      tensor.yield %c0_i64_0 : i64
    } : tensor<5xi64> to tensor<5xi64>
    %c0_i64_1 = arith.constant 0 : i64
    %6 = tensor.empty() : tensor<5xi64>
    %7 = linalg.fill ins(%c0_i64_1 : i64) outs(%6 : tensor<5xi64>) -> tensor<5xi64>
    %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%5, %5 : tensor<5xi64>, tensor<5xi64>) outs(%7 : tensor<5xi64>) {
    ^bb0(%in: i64, %in_6: i64, %out: i64):
      %14 = arith.muli %in, %in_6 : i64
      %15 = arith.addi %out, %14 : i64
      linalg.yield %15 : i64
    } -> tensor<5xi64>
    %c0_i64_2 = arith.constant 0 : i64
    %9 = tensor.empty() : tensor<i64>
    %10 = linalg.fill ins(%c0_i64_2 : i64) outs(%9 : tensor<i64>) -> tensor<i64>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%padded, %padded : tensor<5xi64>, tensor<5xi64>) outs(%10 : tensor<i64>) {
    ^bb0(%in: i64, %in_6: i64, %out: i64):
      %14 = arith.subi %in, %in_6 : i64
      %15 = arith.muli %14, %14 : i64
      %16 = arith.addi %out, %15 : i64
      linalg.yield %16 : i64
    } -> tensor<i64>
    %extracted_slice_3 = tensor.extract_slice %arg4[11] [6] [1] : tensor<17xf64> to tensor<6xf64>
    %extracted_slice_4 = tensor.extract_slice %arg4[0] [11] [1] : tensor<17xf64> to tensor<11xf64>
    %concat_5 = tensor.concat dim(0) %extracted_slice_3, %extracted_slice_4 : (tensor<6xf64>, tensor<11xf64>) -> tensor<17xf64>
    %12 = arith.addi %11, %11 : tensor<i64>
    %13 = dist.shard_tensor %arg5, #dist.sharding<@m, [shard(0)], priority = 0> : tensor<3x9xf32>
    return %13, %12, %concat_5 : tensor<3x9xf32>, tensor<i64>, tensor<17xf64>
  }
}

