#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> (d0, d0)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [6, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<6xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0":(3)2, "a0":(1)3, "a1"]], open = ["a2"]>}, %arg1: tensor<6x6xf64> {dist.sharding = #dist.sharding<@m, dims = [["a2"], []]>}, %arg2: tensor<5x1x7xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0), ?], priority = 1>}) -> (tensor<7xi64> {dist.sharding = #dist.sharding<@m, dims = [["a0":(3)2, "a2", "a0":(1)3, "a1"]]>}) {
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel"]} ins(%arg0 : tensor<6xf64>) outs(%arg1 : tensor<6x6xf64>) {
    ^bb0(%in: f64, %out: f64):
      linalg.yield %in : f64
    } -> tensor<6x6xf64>
    %cst = arith.constant -1.000000e+30 : f64
    %1 = tensor.empty() : tensor<6xf64>
    %2 = linalg.fill ins(%cst : f64) outs(%1 : tensor<6xf64>) -> tensor<6xf64>
    %c0_i32 = arith.constant 0 : i32
    %3 = tensor.empty() : tensor<6xi32>
    %4 = linalg.fill ins(%c0_i32 : i32) outs(%3 : tensor<6xi32>) -> tensor<6xi32>
    %5:2 = linalg.generic {indexing_maps = [#map2, #map3, #map3], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<6x6xf64>) outs(%2, %4 : tensor<6xf64>, tensor<6xi32>) {
    ^bb0(%in: f64, %out: f64, %out_3: i32):
      %12 = linalg.index 1 : index
      %13 = arith.index_cast %12 : index to i32
      %14 = arith.cmpf ogt, %in, %out : f64
      %15 = arith.select %14, %in, %out : f64
      %16 = arith.select %14, %13, %out_3 : i32
      linalg.yield %15, %16 : f64, i32
    } -> (tensor<6xf64>, tensor<6xi32>)
    %6 = tensor.empty() : tensor<6x6xf64>
    %7 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel"]} ins(%0, %5#0 : tensor<6x6xf64>, tensor<6xf64>) outs(%6 : tensor<6x6xf64>) {
    ^bb0(%in: f64, %in_3: f64, %out: f64):
      %12 = arith.minimumf %in, %in_3 : f64
      linalg.yield %12 : f64
    } -> tensor<6x6xf64>
    %cst_0 = arith.constant dense<[[0, 1, 2, -1, -3, -1, 0], [-1, 3, 1, 2, -2, -3, 1], [2, 2, -3, -2, 1, -1, -3], [1, -1, -3, -2, 2, 0, -1], [2, -1, -1, 1, 3, -3, -3], [3, -1, 1, 3, 1, 2, -3], [-1, -1, 1, 3, -2, -2, 0], [0, -2, 3, 3, -2, -3, 1], [0, 2, 1, 3, 1, 0, 2], [1, 1, 0, -2, 3, 0, -3], [0, 2, -1, 2, 2, -3, -2]]> : tensor<11x7xi64>
    %cst_1 = arith.constant dense<[[5], [1], [0], [6], [2]]> : tensor<5x1xindex>
    %scatter = tensor.scatter %arg2 into %cst_0[%cst_1] scatter_dims([0]) unique : (tensor<5x1x7xi64>, tensor<11x7xi64>, tensor<5x1xindex>) -> tensor<11x7xi64>
    %8 = tensor.empty() : tensor<7xi64>
    %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%8 : tensor<7xi64>) {
    ^bb0(%out: i64):
      %c1_3 = arith.constant 1 : index
      %12 = linalg.index 0 : index
      %c2_4 = arith.constant 2 : index
      %13 = arith.muli %c1_3, %c2_4 : index
      %14 = arith.addi %13, %12 : index
      %15 = arith.index_cast %14 : index to i64
      linalg.yield %15 : i64
    } -> tensor<7xi64>
    %cst_2 = arith.constant dense<0> : tensor<7xi64>
    %reduced = linalg.reduce ins(%scatter : tensor<11x7xi64>) outs(%cst_2 : tensor<7xi64>) dimensions = [0] 
      (%in: i64, %init: i64) {
        %12 = arith.addi %in, %init : i64
        linalg.yield %12 : i64
      }
    %10 = dist.shard_tensor %9, #dist.sharding<@m, [replicate, shard(0), replicate]> : tensor<7xi64>
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %11 = scf.for %arg3 = %c2 to %c5 step %c1 iter_args(%arg4 = %reduced) -> (tensor<7xi64>) {
      %12 = arith.minsi %reduced, %arg4 : tensor<7xi64>
      %cst_3 = arith.constant dense<-1.000000e+30> : tensor<6xf64>
      %c0_i32_4 = arith.constant 0 : i32
      %13 = tensor.empty() : tensor<6xi32>
      %14 = linalg.fill ins(%c0_i32_4 : i32) outs(%13 : tensor<6xi32>) -> tensor<6xi32>
      %15:2 = linalg.generic {indexing_maps = [#map2, #map3, #map3], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<6x6xf64>) outs(%cst_3, %14 : tensor<6xf64>, tensor<6xi32>) {
      ^bb0(%in: f64, %out: f64, %out_5: i32):
        %16 = linalg.index 1 : index
        %17 = arith.index_cast %16 : index to i32
        %18 = arith.cmpf ogt, %in, %out : f64
        %19 = arith.select %18, %in, %out : f64
        %20 = arith.select %18, %17, %out_5 : i32
        linalg.yield %19, %20 : f64, i32
      } -> (tensor<6xf64>, tensor<6xi32>)
      scf.yield %12 : tensor<7xi64>
    }
    return %11 : tensor<7xi64>
  }
}

