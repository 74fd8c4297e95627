#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [1, 4, 3], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<10x11x9xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1"], ["a0"], []], open = ["a2"]>}, %arg1: tensor<10x9x2xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a1":(2)2], ["a0", "a2"]]>}, %arg2: tensor<10x11x2xi32> {dist.range = [-4, 5]}, %arg3: tensor<15xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0), shard(0)], priority = 2>}, %arg4: tensor<15xi32> {dist.range = [-2, 7], dist.sharding = #dist.sharding<@m, [replicate, replicate, shard(0)]>}, %arg5: tensor<5xi64> {dist.range = [-4, 5]}) -> (tensor<5xi64> {dist.sharding = #dist.sharding<@m, [?, shard(0), replicate]>}, tensor<10x11x9xi32> {dist.sharding = #dist.sharding<@m, [partial(sum), replicate, shard(1)]>}) {
    %cst = arith.constant dense<2> : tensor<10x11x2xi32>
    %0 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<10x11x9xi32>, tensor<10x9x2xi32>) outs(%cst : tensor<10x11x2xi32>) -> tensor<10x11x2xi32>
    %1 = arith.addi %0, %arg2 : tensor<10x11x2xi32>
    %cst_0 = arith.constant dense<3> : tensor<10x11x9xi32>
    %2 = math.absi %arg0 : tensor<10x11x9xi32>
    %3 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction", "parallel"]} ins(%arg3, %arg4 : tensor<15xi64>, tensor<15xi32>) outs(%arg5 : tensor<5xi64>) {
    ^bb0(%in: i64, %in_1: i32, %out: i64):
      %4 = linalg.index 1 : index
      %5 = arith.index_cast %4 : index to i32
      %6 = arith.cmpi eq, %in_1, %5 : i32
      %7 = arith.select %6, %in, %out : i64
      linalg.yield %7 : i64
    } -> tensor<5xi64>
    return %3, %2 : tensor<5xi64>, tensor<10x11x9xi32>
  }
}

