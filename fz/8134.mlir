#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [4, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<11x3xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1), shard(1)]>}, %arg1: tensor<13x3xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, replicate]>}) -> tensor<5x13x3xi32> {
    %cst = arith.constant dense<"0xFDFFFFFFFFFFFFFF0100000000000000FEFFFFFF020000000200000002000000FDFFFFFFFFFFFFFFFFFFFFFFFEFFFFFF03000000FEFFFFFF000000000300000003000000FDFFFFFFFDFFFFFFFDFFFFFFFDFFFFFF03000000FEFFFFFF0100000003000000000000000200000003000000010000000300000001000000FFFFFFFF02000000FFFFFFFF03000000FEFFFFFFFDFFFFFFFEFFFFFF0200000002000000FEFFFFFF0000000000000000FDFFFFFF00000000FEFFFFFF00000000FEFFFFFF030000000200000000000000FDFFFFFFFDFFFFFFFFFFFFFF000000000300000003000000FFFFFFFF0000000003000000FDFFFFFFFFFFFFFF0100000003000000FFFFFFFFFEFFFFFFFDFFFFFF020000000000000002000000FEFFFFFF01000000FEFFFFFF03000000030000000300000000000000FFFFFFFF0100000003000000FDFFFFFF00000000FFFFFFFF02000000FEFFFFFF03000000FDFFFFFFFEFFFFFF02000000010000000100000001000000030000000300000003000000FFFFFFFF0000000003000000030000000300000000000000FDFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF0300000002000000FFFFFFFFFFFFFFFF00000000FDFFFFFFFFFFFFFF020000000000000001000000010000000200000002000000020000000000000002000000FFFFFFFF00000000FFFFFFFFFDFFFFFF03000000FFFFFFFF01000000FFFFFFFF0100000001000000FFFFFFFF010000000200000002000000020000000000000001000000FDFFFFFF0000000002000000FDFFFFFF00000000"> : tensor<11x13xi32>
    %0 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%cst, %arg0 : tensor<11x13xi32>, tensor<11x3xi32>) outs(%arg1 : tensor<13x3xi32>) -> tensor<13x3xi32>
    %c2147483647_i32 = arith.constant 2147483647 : i32
    %1 = tensor.empty() : tensor<13xi32>
    %2 = linalg.fill ins(%c2147483647_i32 : i32) outs(%1 : tensor<13xi32>) -> tensor<13xi32>
    %3 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%arg1 : tensor<13x3xi32>) outs(%2 : tensor<13xi32>) {
    ^bb0(%in: i32, %out: i32):
      %7 = arith.minsi %in, %out : i32
      linalg.yield %7 : i32
    } -> tensor<13xi32>
    %4 = tensor.empty() : tensor<13x3xi32>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<13x3xi32>) outs(%4 : tensor<13x3xi32>) {
    ^bb0(%in: i32, %out: i32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %c2 = arith.constant 2 : index
      %9 = arith.addi %8, %c2 : index
      %10 = arith.cmpi sge, %7, %9 : index
      %c0_i32 = arith.constant 0 : i32
      %11 = arith.select %10, %in, %c0_i32 : i32
      linalg.yield %11 : i32
    } -> tensor<13x3xi32>
    %6 = tensor.empty() : tensor<5x13x3xi32>
    %broadcasted = linalg.broadcast ins(%0 : tensor<13x3xi32>) outs(%6 : tensor<5x13x3xi32>) dimensions = [0] 
    return %broadcasted : tensor<5x13x3xi32>
  }
}

