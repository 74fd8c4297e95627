#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [3, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<13xi64> {dist.range = [-4, 5]}, %arg1: tensor<13xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [partial(prod), shard(0)]>}, %arg2: tensor<10x14xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a1", "a0"]]>}, %arg3: tensor<14x2xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"]]>}, %arg4: tensor<16x12x3xf64>) -> (tensor<16x12x3xf64> {dist.sharding = #dist.sharding<@m, [shard(2), shard(1)]>}, tensor<16x12x3xf64> {dist.sharding = #dist.sharding<@m, [shard(1), shard(0)], priority = 0>}, tensor<13xi64> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}, tensor<10x1xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a0"], []]>}) {
    %0 = tensor.empty() : tensor<13xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<13xi64>) {
    ^bb0(%out: i64):
      %c1 = arith.constant 1 : index
      %19 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %20 = arith.muli %c1, %c2 : index
      %21 = arith.addi %20, %19 : index
      %22 = arith.index_cast %21 : index to i64
      linalg.yield %22 : i64
    } -> tensor<13xi64>
    %2 = arith.maxsi %1, %arg0 : tensor<13xi64>
    %3 = arith.subi %arg0, %1 : tensor<13xi64>
    %c0_i64 = arith.constant 0 : i64
    %4 = tensor.empty() : tensor<i64>
    %5 = linalg.fill ins(%c0_i64 : i64) outs(%4 : tensor<i64>) -> tensor<i64>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%3, %arg1 : tensor<13xi64>, tensor<13xi64>) outs(%5 : tensor<i64>) {
    ^bb0(%in: i64, %in_0: i64, %out: i64):
      %19 = arith.subi %in, %in_0 : i64
      %20 = arith.muli %19, %19 : i64
      %21 = arith.addi %out, %20 : i64
      linalg.yield %21 : i64
    } -> tensor<i64>
    %cst = arith.constant 0.000000e+00 : f32
    %7 = tensor.empty() : tensor<10x2xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<10x2xf32>) -> tensor<10x2xf32>
    %9 = linalg.matmul ins(%arg2, %arg3 : tensor<10x14xf32>, tensor<14x2xf32>) outs(%8 : tensor<10x2xf32>) -> tensor<10x2xf32>
    %extracted_slice = tensor.extract_slice %9[0, 1] [10, 1] [1, 1] : tensor<10x2xf32> to tensor<10x1xf32>
    %10 = tensor.empty() : tensor<13xi64>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel"]} ins(%3, %6 : tensor<13xi64>, tensor<i64>) outs(%10 : tensor<13xi64>) {
    ^bb0(%in: i64, %in_0: i64, %out: i64):
      %19 = arith.muli %in, %in_0 : i64
      linalg.yield %19 : i64
    } -> tensor<13xi64>
    %12 = tensor.empty() : tensor<13xi64>
    %13 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%12 : tensor<13xi64>) {
    ^bb0(%out: i64):
      %19 = linalg.index 0 : index
      %c12 = arith.constant 12 : index
      %20 = arith.subi %c12, %19 : index
      %extracted = tensor.extract %11[%20] : tensor<13xi64>
      linalg.yield %extracted : i64
    } -> tensor<13xi64>
    %14 = arith.negf %arg4 : tensor<16x12x3xf64>
    %15 = dist.shard_tensor %13, #dist.sharding<@m, dims = [["a1", "a0"]]> : tensor<13xi64>
    %16 = tensor.empty() : tensor<16x12x3xf64>
    %17 = tensor.empty() : tensor<16x12x3xf64>
    %18:2 = linalg.generic {indexing_maps = [#map2, #map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %14 : tensor<16x12x3xf64>, tensor<16x12x3xf64>) outs(%16, %17 : tensor<16x12x3xf64>, tensor<16x12x3xf64>) {
    ^bb0(%in: f64, %in_0: f64, %out: f64, %out_1: f64):
      %19 = arith.addf %in, %in_0 : f64
      %20 = arith.maximumf %in, %in_0 : f64
      linalg.yield %19, %20 : f64, f64
    } -> (tensor<16x12x3xf64>, tensor<16x12x3xf64>)
    return %18#1, %18#0, %15, %extracted_slice : tensor<16x12x3xf64>, tensor<16x12x3xf64>, tensor<13xi64>, tensor<10x1xf32>
  }
}

