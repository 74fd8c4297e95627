#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [6, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<16xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0":(3)2]], open = ["a0":(1)3]>}, %arg1: tensor<2x35xf64>, %arg2: tensor<35x6xf64>, %arg3: tensor<7xi32> {dist.range = [-4, 5]}, %arg4: tensor<11xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg5: tensor<1xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0)]>}, %arg6: tensor<16xi32> {dist.range = [-4, 5]}) -> (tensor<i32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, tensor<1xi32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0)]>}) {
    %expanded = tensor.expand_shape %arg0 [[0]] output_shape [16] : tensor<16xi32> into tensor<16xi32>
    %cst = arith.constant dense<[[-1.000000e+00, -2.500000e-01, 0.000000e+00, -8.750000e-01, -1.250000e-01, 1.250000e-01], [-1.250000e-01, -2.500000e-01, -3.750000e-01, -5.000000e-01, 1.000000e+00, -1.250000e-01]]> : tensor<2x6xf64>
    %cst_0 = arith.constant 0.000000e+00 : f64
    %0 = tensor.empty() : tensor<35x6xf64>
    %1 = linalg.fill ins(%cst_0 : f64) outs(%0 : tensor<35x6xf64>) -> tensor<35x6xf64>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg1, %cst : tensor<2x35xf64>, tensor<2x6xf64>) outs(%1 : tensor<35x6xf64>) -> tensor<35x6xf64>
    %cst_1 = arith.constant dense<3.125000e-02> : tensor<35x6xf64>
    %3 = arith.mulf %2, %cst_1 : tensor<35x6xf64>
    %4 = arith.subf %arg2, %3 : tensor<35x6xf64>
    %inserted_slice = tensor.insert_slice %arg3 into %expanded[9] [7] [1] : tensor<7xi32> into tensor<16xi32>
    %cst_2 = arith.constant dense<3> : tensor<16xi32>
    %cst_3 = arith.constant dense<[4, 5, 3, 2, 4, 3, 3, 4, 2, 2, 4, 3, 1, 3, 4, 4]> : tensor<16xi32>
    %5 = arith.divsi %expanded, %cst_3 : tensor<16xi32>
    %6 = dist.shard_tensor %arg1, #dist.sharding<@m, [replicate, replicate], priority = 1> : tensor<2x35xf64>
    %c0_i32 = arith.constant 0 : i32
    %splat = tensor.splat %c0_i32 : tensor<i32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3, #map4], iterator_types = ["reduction"]} ins(%inserted_slice, %inserted_slice : tensor<16xi32>, tensor<16xi32>) outs(%splat : tensor<i32>) {
    ^bb0(%in: i32, %in_8: i32, %out: i32):
      %11 = arith.muli %in, %in_8 : i32
      %12 = arith.addi %out, %11 : i32
      linalg.yield %12 : i32
    } -> tensor<i32>
    %cst_4 = arith.constant dense<13> : tensor<i64>
    %extracted = tensor.extract %cst_4[] : tensor<i64>
    %8 = arith.index_cast %extracted : i64 to index
    %inserted_slice_5 = tensor.insert_slice %arg4 into %inserted_slice[%8] [11] [1] : tensor<11xi32> into tensor<16xi32>
    %c0 = arith.constant 0 : index
    %extracted_6 = tensor.extract %arg5[%c0] : tensor<1xi32>
    %9 = arith.index_cast %extracted_6 : i32 to index
    %c0_7 = arith.constant 0 : index
    %10:3 = scf.while (%arg7 = %c0_7, %arg8 = %6, %arg9 = %7) : (index, tensor<2x35xf64>, tensor<i32>) -> (index, tensor<2x35xf64>, tensor<i32>) {
      %11 = arith.cmpi slt, %arg7, %9 : index
      scf.condition(%11) %arg7, %arg8, %arg9 : index, tensor<2x35xf64>, tensor<i32>
    } do {
    ^bb0(%arg7: index, %arg8: tensor<2x35xf64>, %arg9: tensor<i32>):
      %11 = tensor.empty() : tensor<11xi32>
      %12 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%arg4 : tensor<11xi32>) outs(%11 : tensor<11xi32>) {
      ^bb0(%in: i32, %out: i32):
        %c0_i32_8 = arith.constant 0 : i32
        %c12_i32 = arith.constant 12 : i32
        %15 = arith.cmpi ne, %in, %c0_i32_8 : i32
        %16 = scf.if %15 -> (i32) {
          %17 = arith.divsi %c12_i32, %in : i32
          scf.yield %17 : i32
        } else {
          scf.yield %c0_i32_8 : i32
        }
        linalg.yield %16 : i32
      } -> tensor<11xi32>
      %13 = arith.subi %inserted_slice, %arg6 : tensor<16xi32>
      %c1 = arith.constant 1 : index
      %14 = arith.addi %arg7, %c1 : index
      scf.yield %14, %arg8, %arg9 : index, tensor<2x35xf64>, tensor<i32>
    }
    return %10#2, %arg5 : tensor<i32>, tensor<1xi32>
  }
}

