#map = affine_map<(d0, d1) -> (d0 + d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [6], dim_names = ["a0"])
  func.func @main(%arg0: tensor<1xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg1: tensor<4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0":(3)2]], open = ["a0":(1)3], priority = 1>}, %arg2: tensor<1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg3: tensor<4xi32> {dist.range = [-4, 5]}, %arg4: tensor<f32>, %arg5: tensor<16xi64> {dist.range = [-4, 5]}, %arg6: tensor<13x9xf32>, %arg7: tensor<1xi32> {dist.range = [0, 4]}) -> tensor<13x9xf32> {
    %padded = tensor.pad %arg0 low[2] high[2] {
    ^bb0(%arg8: index):
      %c0_3 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %12 = arith.muli %arg8, %c1 : index
      %13 = arith.addi %c0_3, %12 : index
      %14 = arith.index_cast %13 : index to i32
      %15 = arith.sitofp %14 : i32 to f32
      tensor.yield %15 : f32
    } : tensor<1xf32> to tensor<5xf32>
    %c0_i32 = arith.constant 0 : i32
    %0 = tensor.empty() : tensor<4xi32>
    %1 = linalg.fill ins(%c0_i32 : i32) outs(%0 : tensor<4xi32>) -> tensor<4xi32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "reduction"]} ins(%arg1, %arg2 : tensor<4xi32>, tensor<1xi32>) outs(%1 : tensor<4xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %12 = arith.muli %in, %in_3 : i32
      %13 = arith.addi %12, %out : i32
      linalg.yield %13 : i32
    } -> tensor<4xi32>
    %3 = dist.shard_tensor %2, #dist.sharding<@m, [shard(0)]> : tensor<4xi32>
    %c2 = arith.constant 2 : index
    %c2_0 = arith.constant 2 : index
    %c2_1 = arith.constant 2 : index
    %4 = scf.for %arg8 = %c2 to %c2_0 step %c2_1 iter_args(%arg9 = %3) -> (tensor<4xi32>) {
      %cst_3 = arith.constant dense<0> : tensor<8xi32>
      %inserted_slice = tensor.insert_slice %arg9 into %cst_3[0] [4] [2] : tensor<4xi32> into tensor<8xi32>
      %cst_4 = arith.constant dense<0> : tensor<8xi32>
      %inserted_slice_5 = tensor.insert_slice %arg3 into %cst_4[1] [4] [2] : tensor<4xi32> into tensor<8xi32>
      %12 = tensor.empty() : tensor<8xi32>
      %13 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel"]} ins(%inserted_slice, %inserted_slice_5 : tensor<8xi32>, tensor<8xi32>) outs(%12 : tensor<8xi32>) {
      ^bb0(%in: i32, %in_6: i32, %out: i32):
        %14 = arith.addi %in, %in_6 : i32
        linalg.yield %14 : i32
      } -> tensor<8xi32>
      scf.yield %arg9 : tensor<4xi32>
    }
    %5 = tensor.empty() : tensor<4xi32>
    %6 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%4 : tensor<4xi32>) outs(%5 : tensor<4xi32>) {
    ^bb0(%in: i32, %out: i32):
      %c0_i32_3 = arith.constant 0 : i32
      %c12_i32 = arith.constant 12 : i32
      %12 = arith.cmpi ne, %in, %c0_i32_3 : i32
      %13 = scf.if %12 -> (i32) {
        %14 = arith.divsi %c12_i32, %in : i32
        scf.yield %14 : i32
      } else {
        scf.yield %c0_i32_3 : i32
      }
      linalg.yield %13 : i32
    } -> tensor<4xi32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3, #map4], iterator_types = ["reduction"]} ins(%padded, %padded : tensor<5xf32>, tensor<5xf32>) outs(%arg4 : tensor<f32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %12 = arith.subf %in, %in_3 : f32
      %13 = arith.addf %12, %out : f32
      linalg.yield %13 : f32
    } -> tensor<f32>
    %cst = arith.constant dense<6.250000e-02> : tensor<f32>
    %8 = arith.mulf %7, %cst : tensor<f32>
    %9 = tensor.empty() : tensor<2x16xi64>
    %broadcasted = linalg.broadcast ins(%arg5 : tensor<16xi64>) outs(%9 : tensor<2x16xi64>) dimensions = [0] 
    %c0 = arith.constant 0 : index
    %extracted = tensor.extract %arg7[%c0] : tensor<1xi32>
    %10 = arith.index_cast %extracted : i32 to index
    %c0_2 = arith.constant 0 : index
    %11:2 = scf.while (%arg8 = %c0_2, %arg9 = %arg6) : (index, tensor<13x9xf32>) -> (index, tensor<13x9xf32>) {
      %12 = arith.cmpi slt, %arg8, %10 : index
      scf.condition(%12) %arg8, %arg9 : index, tensor<13x9xf32>
    } do {
    ^bb0(%arg8: index, %arg9: tensor<13x9xf32>):
      %cst_3 = arith.constant dense<3> : tensor<4xi32>
      %12 = arith.muli %6, %cst_3 : tensor<4xi32>
      %c1 = arith.constant 1 : index
      %13 = arith.addi %arg8, %c1 : index
      scf.yield %13, %arg9 : index, tensor<13x9xf32>
    }
    return %11#1 : tensor<13x9xf32>
  }
}

