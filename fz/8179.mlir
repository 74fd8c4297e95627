#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 12, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, -d2 + 4)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [3, 3, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<11x16x5xi32> {dist.range = [-4, 5]}, %arg1: tensor<11x5xi32> {dist.range = [-4, 5]}) -> (tensor<8x11x2xi32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a2", "a1"], []]>}) {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = scf.for %arg2 = %c0 to %c0_0 step %c1 iter_args(%arg3 = %arg0) -> (tensor<11x16x5xi32>) {
      %7 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<11x5xi32>) outs(%arg3 : tensor<11x16x5xi32>) {
      ^bb0(%in: i32, %out: i32):
        linalg.yield %in : i32
      } -> tensor<11x16x5xi32>
      scf.yield %7 : tensor<11x16x5xi32>
    }
    %1 = tensor.empty() : tensor<11x16x5xi32>
    %2 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<11x16x5xi32>) outs(%1 : tensor<11x16x5xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<11x16x5xi32>
    %extracted_slice = tensor.extract_slice %2[0, 0, 0] [11, 16, 2] [1, 1, 1] : tensor<11x16x5xi32> to tensor<11x16x2xi32>
    %3 = dist.shard_tensor %arg0, #dist.sharding<@m, [replicate, replicate, shard(0)]> : tensor<11x16x5xi32>
    %cst = arith.constant dense<[1, 3, 7, 2, 6]> : tensor<5xi64>
    %c1_i32 = arith.constant 1 : i32
    %4 = tensor.empty() : tensor<11x13xi32>
    %5 = linalg.fill ins(%c1_i32 : i32) outs(%4 : tensor<11x13xi32>) -> tensor<11x13xi32>
    %6 = linalg.generic {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %cst : tensor<11x5xi32>, tensor<5xi64>) outs(%5 : tensor<11x13xi32>) {
    ^bb0(%in: i32, %in_2: i64, %out: i32):
      %7 = linalg.index 1 : index
      %8 = arith.index_cast %7 : index to i64
      %9 = arith.cmpi eq, %8, %in_2 : i64
      %c1_i32_3 = arith.constant 1 : i32
      %10 = arith.select %9, %in, %c1_i32_3 : i32
      %11 = arith.muli %out, %10 : i32
      linalg.yield %11 : i32
    } -> tensor<11x13xi32>
    %extracted_slice_1 = tensor.extract_slice %extracted_slice[3, 0, 0] [8, 11, 2] [1, 1, 1] : tensor<11x16x2xi32> to tensor<8x11x2xi32>
    return %extracted_slice_1 : tensor<8x11x2xi32>
  }
}

