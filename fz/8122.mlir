#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0) -> (-d0 + 11)>
module {
  dist.process_mesh @m(shape = [11], dim_names = ["a0"])
  func.func @main(%arg0: tensor<12x1x15x6xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg1: tensor<12xi32> {dist.range = [-4, 5]}, %arg2: tensor<10xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}) -> (tensor<i32> {dist.sharding = #dist.sharding<@m, dims = [], open = ["a0"]>}, tensor<12xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, tensor<12xi32>, tensor<i32>) {
    %c2_i32 = arith.constant 2 : i32
    %0 = tensor.empty() : tensor<12xi32>
    %1 = linalg.fill ins(%c2_i32 : i32) outs(%0 : tensor<12xi32>) -> tensor<12xi32>
    %reduced = linalg.reduce ins(%arg0 : tensor<12x1x15x6xi32>) outs(%1 : tensor<12xi32>) dimensions = [1, 2, 3] 
      (%in: i32, %init: i32) {
        %14 = arith.maxsi %in, %init : i32
        linalg.yield %14 : i32
      }
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<i32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<i32>) -> tensor<i32>
    %4 = linalg.dot ins(%reduced, %arg1 : tensor<12xi32>, tensor<12xi32>) outs(%3 : tensor<i32>) -> tensor<i32>
    %cst = arith.constant dense<3> : tensor<i32>
    %5 = arith.floordivsi %4, %cst : tensor<i32>
    %cst_0 = arith.constant dense<0> : tensor<i32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%reduced, %reduced : tensor<12xi32>, tensor<12xi32>) outs(%cst_0 : tensor<i32>) {
    ^bb0(%in: i32, %in_1: i32, %out: i32):
      %14 = arith.subi %in, %in_1 : i32
      %15 = arith.addi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<i32>
    %7 = dist.shard_tensor %6, #dist.sharding<@m, dims = [], priority = 1> : tensor<i32>
    %8 = tensor.empty() : tensor<12xi32>
    %9 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel"]} ins(%reduced : tensor<12xi32>) outs(%8 : tensor<12xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<12xi32>
    %10 = dist.shard_tensor %6, #dist.sharding<@m, [replicate]> : tensor<i32>
    %11 = tensor.empty() : tensor<12xi32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg1 : tensor<12xi32>) outs(%11 : tensor<12xi32>) {
    ^bb0(%in: i32, %out: i32):
      %14 = linalg.index 0 : index
      %c3 = arith.constant 3 : index
      %15 = arith.subi %14, %c3 : index
      %c10 = arith.constant 10 : index
      %16 = arith.cmpi ult, %15, %c10 : index
      %17 = scf.if %16 -> (i32) {
        %extracted = tensor.extract %arg2[%15] : tensor<10xi32>
        scf.yield %extracted : i32
      } else {
        scf.yield %in : i32
      }
      linalg.yield %17 : i32
    } -> tensor<12xi32>
    %padded = tensor.pad %9 low[0] high[0] {
    ^bb0(%arg3: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %14 = arith.muli %arg3, %c1 : index
      %15 = arith.addi %c0, %14 : index
      %16 = arith.index_cast %15 : index to i32
      tensor.yield %16 : i32
    } : tensor<12xi32> to tensor<12xi32>
    %13 = dist.reshard %5 to #dist.sharding<@m, dims = [], open = ["a0"]> : tensor<i32>
    return %13, %padded, %12, %10 : tensor<i32>, tensor<12xi32>, tensor<12xi32>, tensor<i32>
  }
}

