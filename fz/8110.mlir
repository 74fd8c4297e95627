#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [1, 4], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<f32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg1: tensor<15x9xf32>, %arg2: tensor<5x1xindex> {dist.range = [-1, 16], dist.sharding = #dist.sharding<@m, dims = [[], []], open = ["a0"], priority = 1>}, %arg3: tensor<7x2x9xi64> {dist.range = [-4, 5]}, %arg4: tensor<7x2x9xi64> {dist.range = [-4, 5]}, %arg5: tensor<i64> {dist.range = [-2, 11]}, %arg6: tensor<7x2x6xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate], priority = 0>}) -> tensor<7x2x9xi64> {
    %0 = arith.negf %arg0 : tensor<f32>
    %1 = tensor.empty() : tensor<9x15xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<15x9xf32>) outs(%1 : tensor<9x15xf32>) permutation = [1, 0] 
    %2 = tensor.empty() : tensor<15x9xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<15x9xf32>) outs(%2 : tensor<15x9xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = linalg.index 0 : index
      %11 = linalg.index 1 : index
      %c1 = arith.constant 1 : index
      %12 = arith.addi %11, %c1 : index
      %13 = arith.cmpi sge, %10, %12 : index
      %cst = arith.constant 5.000000e+00 : f32
      %14 = arith.select %13, %in, %cst : f32
      linalg.yield %14 : f32
    } -> tensor<15x9xf32>
    %gather = tensor.gather %3[%arg2] gather_dims([0]) : (tensor<15x9xf32>, tensor<5x1xindex>) -> tensor<5x1x9xf32>
    %4 = arith.minsi %arg3, %arg4 : tensor<7x2x9xi64>
    %5 = tensor.empty() : tensor<9x15xf32>
    %6 = linalg.softmax dimension(1) ins(%transposed : tensor<9x15xf32>) outs(%5 : tensor<9x15xf32>) -> tensor<9x15xf32>
    %extracted = tensor.extract %arg5[] : tensor<i64>
    %7 = arith.index_cast %extracted : i64 to index
    %inserted_slice = tensor.insert_slice %arg6 into %4[0, 0, %7] [7, 2, 6] [1, 1, 1] : tensor<7x2x6xi64> into tensor<7x2x9xi64>
    %8 = tensor.empty() : tensor<7x2x9xi64>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<7x2x9xi64>) outs(%8 : tensor<7x2x9xi64>) {
    ^bb0(%in: i64, %out: i64):
      %10 = linalg.index 1 : index
      %11 = linalg.index 2 : index
      %c1 = arith.constant 1 : index
      %12 = arith.addi %11, %c1 : index
      %13 = arith.cmpi sge, %10, %12 : index
      %c5_i64 = arith.constant 5 : i64
      %14 = arith.select %13, %in, %c5_i64 : i64
      linalg.yield %14 : i64
    } -> tensor<7x2x9xi64>
    return %9 : tensor<7x2x9xi64>
  }
}

