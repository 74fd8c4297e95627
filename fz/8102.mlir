#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, -d1 + 3)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [5, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<7x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), shard(0)]>}, %arg1: tensor<11xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)], priority = 2>}, %arg2: tensor<1x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1, order = 0), shard(1, order = 1)]>}, %arg3: tensor<1x9xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}, %arg4: tensor<16x9xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"], ["a0"]]>}) -> (tensor<7x4xi64> {dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@m, [shard(0), ?]>}, tensor<16x9xf32> {dist.feeds = 4 : i64}) {
    %0 = tensor.empty() : tensor<7x4xi64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<7x4xi64>) outs(%0 : tensor<7x4xi64>) {
    ^bb0(%in: i64, %out: i64):
      %15 = linalg.index 1 : index
      %c3 = arith.constant 3 : index
      %16 = arith.subi %15, %c3 : index
      %c11 = arith.constant 11 : index
      %17 = arith.cmpi ult, %16, %c11 : index
      %18 = scf.if %17 -> (i64) {
        %extracted = tensor.extract %arg1[%16] : tensor<11xi64>
        scf.yield %extracted : i64
      } else {
        scf.yield %in : i64
      }
      linalg.yield %18 : i64
    } -> tensor<7x4xi64>
    %cst = arith.constant dense<3> : tensor<7x4xi64>
    %2 = arith.xori %arg0, %cst : tensor<7x4xi64>
    %cst_0 = arith.constant dense<3> : tensor<7x4xi64>
    %3 = arith.xori %arg0, %cst_0 : tensor<7x4xi64>
    %4 = tensor.empty() : tensor<7x4xi64>
    %5 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<7x4xi64>) outs(%4 : tensor<7x4xi64>) {
    ^bb0(%in: i64, %out: i64):
      linalg.yield %in : i64
    } -> tensor<7x4xi64>
    %c2_i64 = arith.constant 2 : i64
    %6 = tensor.empty() : tensor<i64>
    %7 = linalg.fill ins(%c2_i64 : i64) outs(%6 : tensor<i64>) -> tensor<i64>
    %reduced = linalg.reduce ins(%arg0 : tensor<7x4xi64>) outs(%7 : tensor<i64>) dimensions = [0, 1] 
      (%in: i64, %init: i64) {
        %15 = arith.muli %in, %init : i64
        linalg.yield %15 : i64
      }
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<16x9xf32>
    %8 = linalg.matmul indexing_maps = [#map2, #map3, #map4] ins(%arg2, %arg3 : tensor<1x16xf32>, tensor<1x9xf32>) outs(%cst_1 : tensor<16x9xf32>) -> tensor<16x9xf32>
    %cst_2 = arith.constant dense<6.250000e-02> : tensor<16x9xf32>
    %9 = arith.mulf %8, %cst_2 : tensor<16x9xf32>
    %10 = arith.subf %arg4, %9 : tensor<16x9xf32>
    %cst_3 = arith.constant dense<[2, -1, -2, -3]> : tensor<4xi64>
    %c0_i64 = arith.constant 0 : i64
    %11 = tensor.empty() : tensor<7x4xi64>
    %12 = linalg.fill ins(%c0_i64 : i64) outs(%11 : tensor<7x4xi64>) -> tensor<7x4xi64>
    %13 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %cst_3 : tensor<7x4xi64>, tensor<4xi64>) outs(%12 : tensor<7x4xi64>) {
    ^bb0(%in: i64, %in_4: i64, %out: i64):
      %15 = arith.muli %in, %in_4 : i64
      %16 = arith.addi %out, %15 : i64
      linalg.yield %16 : i64
    } -> tensor<7x4xi64>
    %14 = dist.shard_tensor %13, #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]> : tensor<7x4xi64>
    return %14, %10 : tensor<7x4xi64>, tensor<16x9xf32>
  }
}

