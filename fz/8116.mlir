#map = affine_map<(d0, d1, d2) -> (d0, d1 + d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [8], dim_names = ["a0"])
  func.func @main(%arg0: tensor<9x7xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], []], partial = [prod("a0")]>}, %arg1: tensor<1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<18x7xi32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<9x7xi32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], []]>}) {
    %concat = tensor.concat dim(0) %arg0, %arg0 : (tensor<9x7xi32>, tensor<9x7xi32>) -> tensor<18x7xi32>
    %0 = dist.reshard %arg0 to #dist.sharding<@m, [?], priority = 2> : tensor<9x7xi32>
    %cst = arith.constant dense<0> : tensor<18x7xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%concat, %arg1 : tensor<18x7xi32>, tensor<1xi32>) outs(%cst : tensor<18x7xi32>) {
    ^bb0(%in: i32, %in_0: i32, %out: i32):
      %2 = arith.muli %in, %in_0 : i32
      %3 = arith.addi %2, %out : i32
      linalg.yield %3 : i32
    } -> tensor<18x7xi32>
    return %1, %0 : tensor<18x7xi32>, tensor<9x7xi32>
  }
}

