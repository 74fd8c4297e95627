#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 + d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [2, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<13x7xi32> {dist.range = [-4, 5]}, %arg1: tensor<4xi64> {dist.range = [-2, 15], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<5x6x5xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1"], [], []]>}, %arg3: tensor<1xf64>, %arg4: tensor<11xf64> {dist.sharding = #dist.sharding<@m, [replicate, ?]>}, %arg5: tensor<i64> {dist.range = [-2, 13], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0", "a1"]>}) -> (tensor<3x7x2xf64>, tensor<5x6x5xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"], [], []], open = ["a1"]>}, tensor<1xf64>) {
    %0 = tensor.empty() : tensor<4x7xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<4xi64>) outs(%0 : tensor<4x7xi32>) {
    ^bb0(%in: i64, %out: i32):
      %11 = arith.index_cast %in : i64 to index
      %12 = linalg.index 1 : index
      %extracted_5 = tensor.extract %arg0[%11, %12] : tensor<13x7xi32>
      linalg.yield %extracted_5 : i32
    } -> tensor<4x7xi32>
    %cst = arith.constant dense<[1, 3, -2, 0]> : tensor<4xi64>
    %c0_i64 = arith.constant 0 : i64
    %2 = tensor.empty() : tensor<i64>
    %3 = linalg.fill ins(%c0_i64 : i64) outs(%2 : tensor<i64>) -> tensor<i64>
    %4 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["reduction"]} ins(%arg1, %cst : tensor<4xi64>, tensor<4xi64>) outs(%3 : tensor<i64>) {
    ^bb0(%in: i64, %in_5: i64, %out: i64):
      %11 = arith.subi %in, %in_5 : i64
      %12 = arith.addi %out, %11 : i64
      linalg.yield %12 : i64
    } -> tensor<i64>
    %5 = tensor.empty() : tensor<13x7x5xi32>
    %broadcasted = linalg.broadcast ins(%arg0 : tensor<13x7xi32>) outs(%5 : tensor<13x7x5xi32>) dimensions = [2] 
    %cst_0 = arith.constant 0.000000e+00 : f64
    %6 = tensor.empty() : tensor<5x6x5xf64>
    %7 = linalg.fill ins(%cst_0 : f64) outs(%6 : tensor<5x6x5xf64>) -> tensor<5x6x5xf64>
    %8 = linalg.generic {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg2, %arg3 : tensor<5x6x5xf64>, tensor<1xf64>) outs(%7 : tensor<5x6x5xf64>) {
    ^bb0(%in: f64, %in_5: f64, %out: f64):
      %11 = arith.mulf %in, %in_5 : f64
      %12 = arith.addf %11, %out : f64
      linalg.yield %12 : f64
    } -> tensor<5x6x5xf64>
    %extracted_slice = tensor.extract_slice %8[2, 0, 3] [3, 6, 2] [1, 1, 1] : tensor<5x6x5xf64> to tensor<3x6x2xf64>
    %extracted = tensor.extract %arg5[] : tensor<i64>
    %9 = arith.index_cast %extracted : i64 to index
    %extracted_slice_1 = tensor.extract_slice %arg4[%9] [1] [1] : tensor<11xf64> to tensor<1xf64>
    %10 = dist.shard_tensor %8, #dist.sharding<@m, [replicate, shard(0)]> : tensor<5x6x5xf64>
    %extracted_slice_2 = tensor.extract_slice %extracted_slice[0, 3, 0] [3, 1, 2] [1, 1, 1] : tensor<3x6x2xf64> to tensor<3x1x2xf64>
    %extracted_slice_3 = tensor.extract_slice %extracted_slice[0, 3, 0] [3, 3, 2] [1, 1, 1] : tensor<3x6x2xf64> to tensor<3x3x2xf64>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<3x3x2xf64>
    %concat = tensor.concat dim(1) %extracted_slice_2, %extracted_slice_3, %cst_4 : (tensor<3x1x2xf64>, tensor<3x3x2xf64>, tensor<3x3x2xf64>) -> tensor<3x7x2xf64>
    return %concat, %10, %extracted_slice_1 : tensor<3x7x2xf64>, tensor<5x6x5xf64>, tensor<1xf64>
  }
}

