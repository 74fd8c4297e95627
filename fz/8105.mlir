#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [2, 2, 3], dim_names = ["a0", "a1", "a2"], process_ids = [11, 7, 3, 2, 6, 0, 9, 10, 5, 1, 8, 4])
  func.func @main(%arg0: tensor<5x7x2xf32>, %arg1: tensor<11x12x14xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"], [], []]>}, %arg2: tensor<11x12x14xi32> {dist.range = [-4, 5]}, %arg3: tensor<i64> {dist.range = [-2, 7], dist.sharding = #dist.sharding<@m, [replicate, replicate, replicate]>}, %arg4: tensor<i64> {dist.range = [-2, 5]}, %arg5: tensor<i32> {dist.range = [-4, 5]}, %arg6: tensor<15x13xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), replicate, ?]>}, %arg7: tensor<27xi32> {dist.range = [-4, 5]}) -> (tensor<2x2xi32> {dist.sharding = #dist.sharding<@m, [partial(prod), shard(1), shard(0)]>}, tensor<11x12x14xi64> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2), ?]>}, tensor<12xi64>) {
    %cst = arith.constant 3.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 0] high[0, 0, 1] {
    ^bb0(%arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst : f32
    } : tensor<5x7x2xf32> to tensor<5x7x3xf32>
    %0 = tensor.empty() : tensor<11x12x14xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1, %arg2 : tensor<11x12x14xi32>, tensor<11x12x14xi32>) outs(%0 : tensor<11x12x14xi32>) {
    ^bb0(%in: i32, %in_2: i32, %out: i32):
      %15 = arith.minsi %in, %in_2 : i32
      linalg.yield %15 : i32
    } -> tensor<11x12x14xi32>
    %2 = arith.extsi %1 : tensor<11x12x14xi32> to tensor<11x12x14xi64>
    %extracted = tensor.extract %arg3[] : tensor<i64>
    %3 = arith.index_cast %extracted : i64 to index
    %extracted_0 = tensor.extract %arg4[] : tensor<i64>
    %4 = arith.index_cast %extracted_0 : i64 to index
    %extracted_slice = tensor.extract_slice %padded[%3, 0, %4] [4, 7, 1] [1, 1, 1] : tensor<5x7x3xf32> to tensor<4x7x1xf32>
    %5 = arith.cmpi sgt, %arg5, %arg5 : tensor<i32>
    %cst_1 = arith.constant dense<1> : tensor<i32>
    %6 = arith.select %5, %arg5, %cst_1 : tensor<i1>, tensor<i32>
    %7 = dist.shard_tensor %2, #dist.sharding<@m, dims = [["a0"], ["a2"], ["a1"]], priority = 2> : tensor<11x12x14xi64>
    %8 = tensor.empty() : tensor<4x11x3xi64>
    %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs(%8 : tensor<4x11x3xi64>) {
    ^bb0(%out: i64):
      %c1 = arith.constant 1 : index
      %15 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %16 = arith.muli %c1, %c2 : index
      %17 = arith.addi %16, %15 : index
      %18 = linalg.index 1 : index
      %c2_2 = arith.constant 2 : index
      %19 = arith.muli %17, %c2_2 : index
      %20 = arith.addi %19, %18 : index
      %21 = linalg.index 2 : index
      %c2_3 = arith.constant 2 : index
      %22 = arith.muli %20, %c2_3 : index
      %23 = arith.addi %22, %21 : index
      %24 = arith.index_cast %23 : index to i64
      linalg.yield %24 : i64
    } -> tensor<4x11x3xi64>
    %10 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["reduction", "reduction"]} ins(%arg6 : tensor<15x13xi32>) outs(%arg7 : tensor<27xi32>) {
    ^bb0(%in: i32, %out: i32):
      %15 = arith.addi %out, %in : i32
      linalg.yield %15 : i32
    } -> tensor<27xi32>
    %c2147483647_i64 = arith.constant 2147483647 : i64
    %11 = tensor.empty() : tensor<12xi64>
    %12 = linalg.fill ins(%c2147483647_i64 : i64) outs(%11 : tensor<12xi64>) -> tensor<12xi64>
    %reduced = linalg.reduce ins(%7 : tensor<11x12x14xi64>) outs(%12 : tensor<12xi64>) dimensions = [0, 2] 
      (%in: i64, %init: i64) {
        %15 = arith.minsi %in, %init : i64
        linalg.yield %15 : i64
      }
    %13 = dist.reshard %2 to #dist.sharding<@m, dims = [["a1"], [], ["a0"]], priority = 1> : tensor<11x12x14xi64>
    %14 = tensor.empty() : tensor<2x2xi32>
    %broadcasted = linalg.broadcast ins(%arg5 : tensor<i32>) outs(%14 : tensor<2x2xi32>) dimensions = [0, 1] 
    return %broadcasted, %13, %reduced : tensor<2x2xi32>, tensor<11x12x14xi64>, tensor<12xi64>
  }
}

