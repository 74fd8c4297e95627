#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [9], dim_names = ["a0"])
  func.func @main(%arg0: tensor<2xf64>, %arg1: tensor<8xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<8xi32> {dist.range = [1, 4]}, %arg3: tensor<16xi32> {dist.range = [-1, 9], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg4: tensor<3x11xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a0":(3)3]]>}, %arg5: tensor<11x14xi64> {dist.range = [-4, 5]}, %arg6: tensor<3x14xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg7: tensor<8x12x6xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0":(3)3], [], ["a0":(1)3]]>}, %arg8: tensor<1x12x6xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], [], ["a0"]]>}, %arg9: tensor<12xi32> {dist.range = [0, 4]}, %arg10: tensor<10xf64>, %arg11: tensor<8x5xi32> {dist.range = [-4, 5]}) -> tensor<5xi32> {
    %c64_i32 = arith.constant 64 : i32
    %0:3 = scf.while (%arg12 = %arg2, %arg13 = %arg0, %arg14 = %arg1) : (tensor<8xi32>, tensor<2xf64>, tensor<8xi32>) -> (tensor<8xi32>, tensor<2xf64>, tensor<8xi32>) {
      %cst = arith.constant dense<0> : tensor<i32>
      %14 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%arg12 : tensor<8xi32>) outs(%cst : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %16 = arith.addi %out, %in : i32
        linalg.yield %16 : i32
      } -> tensor<i32>
      %extracted_3 = tensor.extract %14[] : tensor<i32>
      %15 = arith.cmpi slt, %extracted_3, %c64_i32 : i32
      scf.condition(%15) %arg12, %arg13, %arg14 : tensor<8xi32>, tensor<2xf64>, tensor<8xi32>
    } do {
    ^bb0(%arg12: tensor<8xi32>, %arg13: tensor<2xf64>, %arg14: tensor<8xi32>):
      %14 = tensor.empty() : tensor<16xi32>
      %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg3 : tensor<16xi32>) outs(%14 : tensor<16xi32>) {
      ^bb0(%in: i32, %out: i32):
        %17 = arith.index_cast %in : i32 to index
        %extracted_3 = tensor.extract %arg14[%17] : tensor<8xi32>
        linalg.yield %extracted_3 : i32
      } -> tensor<16xi32>
      %16 = arith.addi %arg12, %arg12 : tensor<8xi32>
      scf.yield %16, %arg13, %arg14 : tensor<8xi32>, tensor<2xf64>, tensor<8xi32>
    }
    %1 = dist.reshard %0#2 to #dist.sharding<@m, dims = [["a0":(3)3, "a0":(1)3]]> : tensor<8xi32>
    %2 = linalg.matmul ins(%arg4, %arg5 : tensor<3x11xi64>, tensor<11x14xi64>) outs(%arg6 : tensor<3x14xi64>) -> tensor<3x14xi64>
    %c0_i32 = arith.constant 0 : i32
    %3 = tensor.empty() : tensor<i32>
    %4 = linalg.fill ins(%c0_i32 : i32) outs(%3 : tensor<i32>) -> tensor<i32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%1, %arg1 : tensor<8xi32>, tensor<8xi32>) outs(%4 : tensor<i32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %14 = arith.subi %in, %in_3 : i32
      %15 = arith.addi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<i32>
    %extracted_slice = tensor.extract_slice %arg7[6, 0, 0] [1, 12, 6] [2, 1, 1] : tensor<8x12x6xi32> to tensor<1x12x6xi32>
    %extracted_slice_0 = tensor.extract_slice %arg8[0, 0, 0] [1, 12, 6] [2, 1, 1] : tensor<1x12x6xi32> to tensor<1x12x6xi32>
    %extracted_slice_1 = tensor.extract_slice %arg7[1, 0, 0] [1, 12, 6] [3, 1, 1] : tensor<8x12x6xi32> to tensor<1x12x6xi32>
    %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_0, %extracted_slice_1 : (tensor<1x12x6xi32>, tensor<1x12x6xi32>, tensor<1x12x6xi32>) -> tensor<3x12x6xi32>
    %6 = dist.reshard %arg2 to #dist.sharding<@m, [replicate]> : tensor<8xi32>
    %c4 = arith.constant 4 : index
    %extracted = tensor.extract %arg9[%c4] : tensor<12xi32>
    %7 = arith.index_cast %extracted : i32 to index
    %c0 = arith.constant 0 : index
    %8:2 = scf.while (%arg12 = %c0, %arg13 = %5) : (index, tensor<i32>) -> (index, tensor<i32>) {
      %14 = arith.cmpi slt, %arg12, %7 : index
      scf.condition(%14) %arg12, %arg13 : index, tensor<i32>
    } do {
    ^bb0(%arg12: index, %arg13: tensor<i32>):
      %14 = arith.cmpi sgt, %concat, %concat : tensor<3x12x6xi32>
      %15 = arith.select %14, %concat, %concat : tensor<3x12x6xi1>, tensor<3x12x6xi32>
      %16 = dist.shard_tensor %arg10, #dist.sharding<@m, dims = [["a0"]]> : tensor<10xf64>
      %cst = arith.constant dense<3> : tensor<3x12x6xi32>
      %17 = math.absi %15 : tensor<3x12x6xi32>
      %c1 = arith.constant 1 : index
      %18 = arith.addi %arg12, %c1 : index
      scf.yield %18, %arg13 : index, tensor<i32>
    }
    %9 = tensor.empty() : tensor<3x14xi64>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<3x14xi64>) outs(%9 : tensor<3x14xi64>) {
    ^bb0(%in: i64, %out: i64):
      %c0_i64 = arith.constant 0 : i64
      %c12_i64 = arith.constant 12 : i64
      %14 = arith.cmpi ne, %in, %c0_i64 : i64
      %15 = scf.if %14 -> (i64) {
        %16 = arith.divsi %c12_i64, %in : i64
        scf.yield %16 : i64
      } else {
        scf.yield %c0_i64 : i64
      }
      linalg.yield %15 : i64
    } -> tensor<3x14xi64>
    %c0_i32_2 = arith.constant 0 : i32
    %11 = tensor.empty() : tensor<5xi32>
    %12 = linalg.fill ins(%c0_i32_2 : i32) outs(%11 : tensor<5xi32>) -> tensor<5xi32>
    %13 = linalg.generic {indexing_maps = [#map3, #map2, #map4], iterator_types = ["reduction", "parallel"]} ins(%6, %arg11 : tensor<8xi32>, tensor<8x5xi32>) outs(%12 : tensor<5xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %14 = arith.muli %in, %in_3 : i32
      %15 = arith.addi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<5xi32>
    return %13 : tensor<5xi32>
  }
}

