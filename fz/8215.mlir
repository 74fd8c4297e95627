#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [2, 2, 3], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<5x1x10xi32> {dist.range = [-4, 5]}, %arg1: tensor<5x10x1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?, shard(1), shard(-3)]>}, %arg2: tensor<5x1x1xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(2, order = 0), replicate, shard(2, order = 1)]>}, %arg3: tensor<i64> {dist.range = [-2, 3], dist.sharding = #dist.sharding<@m, [replicate, ?, replicate]>}, %arg4: tensor<3xi32> {dist.range = [1, 4], dist.sharding = #dist.sharding<@m, [shard(-1), shard(-1), replicate]>}, %arg5: tensor<5x1x1x6xi32> {dist.range = [-4, 5]}) -> tensor<5x1x1xi32> {
    %0 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<5x1x10xi32>, tensor<5x10x1xi32>) outs(%arg2 : tensor<5x1x1xi32>) -> tensor<5x1x1xi32>
    %cst = arith.constant dense<3> : tensor<5x1x1xi32>
    %1 = arith.xori %0, %cst : tensor<5x1x1xi32>
    %extracted = tensor.extract %arg3[] : tensor<i64>
    %2 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %1[0, %2, 0] [5, 1, 1] [1, 1, 1] : tensor<5x1x1xi32> to tensor<5x1x1xi32>
    %3 = tensor.empty() : tensor<5x1x1xi32>
    %4 = linalg.add ins(%0, %1 : tensor<5x1x1xi32>, tensor<5x1x1xi32>) outs(%3 : tensor<5x1x1xi32>) -> tensor<5x1x1xi32>
    %c2_i32 = arith.constant 2 : i32
    %5 = tensor.empty() : tensor<1x1xi32>
    %6 = linalg.fill ins(%c2_i32 : i32) outs(%5 : tensor<1x1xi32>) -> tensor<1x1xi32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction", "parallel", "parallel"]} ins(%extracted_slice, %arg2 : tensor<5x1x1xi32>, tensor<5x1x1xi32>) outs(%6 : tensor<1x1xi32>) {
    ^bb0(%in: i32, %in_2: i32, %out: i32):
      %12 = arith.subi %in, %in_2 : i32
      %13 = arith.addi %out, %12 : i32
      linalg.yield %13 : i32
    } -> tensor<1x1xi32>
    %collapsed = tensor.collapse_shape %4 [[0, 1, 2]] : tensor<5x1x1xi32> into tensor<5xi32>
    %cst_0 = arith.constant dense<-1> : tensor<i64>
    %extracted_1 = tensor.extract %cst_0[] : tensor<i64>
    %8 = arith.index_cast %extracted_1 : i64 to index
    %inserted_slice = tensor.insert_slice %1 into %4[0, %8, 0] [5, 1, 1] [1, 1, 1] : tensor<5x1x1xi32> into tensor<5x1x1xi32>
    %c3_i32 = arith.constant 3 : i32
    %splat = tensor.splat %c3_i32 : tensor<1x1xi32>
    %9 = math.absi %7 : tensor<1x1xi32>
    %10 = arith.minsi %arg3, %arg3 : tensor<i64>
    %c12_i32 = arith.constant 12 : i32
    %11:2 = scf.while (%arg6 = %arg4, %arg7 = %inserted_slice) : (tensor<3xi32>, tensor<5x1x1xi32>) -> (tensor<3xi32>, tensor<5x1x1xi32>) {
      %cst_2 = arith.constant dense<0> : tensor<i32>
      %12 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["reduction"]} ins(%arg6 : tensor<3xi32>) outs(%cst_2 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %14 = arith.addi %out, %in : i32
        linalg.yield %14 : i32
      } -> tensor<i32>
      %extracted_3 = tensor.extract %12[] : tensor<i32>
      %13 = arith.cmpi slt, %extracted_3, %c12_i32 : i32
      scf.condition(%13) %arg6, %arg7 : tensor<3xi32>, tensor<5x1x1xi32>
    } do {
    ^bb0(%arg6: tensor<3xi32>, %arg7: tensor<5x1x1xi32>):
      %extracted_slice_2 = tensor.extract_slice %arg0[0, 0, 3] [5, 1, 7] [1, 1, 1] : tensor<5x1x10xi32> to tensor<5x1x7xi32>
      %12 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg5 : tensor<5x1x1x6xi32>) outs(%arg7 : tensor<5x1x1xi32>) {
      ^bb0(%in: i32, %out: i32):
        %14 = arith.addi %out, %in : i32
        linalg.yield %14 : i32
      } -> tensor<5x1x1xi32>
      %13 = arith.addi %arg6, %arg6 : tensor<3xi32>
      scf.yield %13, %12 : tensor<3xi32>, tensor<5x1x1xi32>
    }
    return %11#1 : tensor<5x1x1xi32>
  }
}

