#map = affine_map<(d0, d1, d2) -> (d0, d1 + d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1) -> (-d0 + 1, d1)>
#map7 = affine_map<(d0) -> (d0)>
#map8 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map9 = affine_map<(d0, d1, d2) -> (d0)>
module {
  dist.process_mesh @m(shape = [2, 6, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<17x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1), ?, shard(0)]>}, %arg1: tensor<3xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0, order = 2), shard(0, order = 1), shard(0, order = 0)]>}, %arg2: tensor<13x9xf64>, %arg3: tensor<i64> {dist.range = [-2, 15]}, %arg4: tensor<i64> {dist.range = [-2, 11], dist.sharding = #dist.sharding<@m, [replicate, replicate, replicate]>}, %arg5: tensor<13x1xf64>, %arg6: tensor<2x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate, ?]>}, %arg7: tensor<5xi32> {dist.range = [0, 4]}, %arg8: tensor<6x2xi64> {dist.range = [-2, 5]}, %arg9: tensor<10x11x8xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1":(2)3], [], ["a0"]], open = ["a1":(1)2]>}, %arg10: tensor<10x11xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1), shard(0)]>}, %arg11: tensor<2xf32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 0), replicate, shard(0, order = 1)]>}) -> (tensor<2x16xf32> {dist.sharding = #dist.sharding<@m, [?, shard(1), replicate]>}, tensor<2xi32>) {
    %cst = arith.constant dense<0> : tensor<17x2xi32>
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<17x4xi32>, tensor<3xi32>) outs(%cst : tensor<17x2xi32>) {
    ^bb0(%in: i32, %in_5: i32, %out: i32):
      %20 = arith.muli %in, %in_5 : i32
      %21 = arith.addi %20, %out : i32
      linalg.yield %21 : i32
    } -> tensor<17x2xi32>
    %extracted = tensor.extract %arg3[] : tensor<i64>
    %1 = arith.index_cast %extracted : i64 to index
    %extracted_0 = tensor.extract %arg4[] : tensor<i64>
    %2 = arith.index_cast %extracted_0 : i64 to index
    %inserted_slice = tensor.insert_slice %arg5 into %arg2[%1, %2] [13, 1] [1, 1] : tensor<13x1xf64> into tensor<13x9xf64>
    %3 = arith.minsi %0, %0 : tensor<17x2xi32>
    %c2 = arith.constant 2 : index
    %extracted_1 = tensor.extract %arg7[%c2] : tensor<5xi32>
    %4 = arith.index_cast %extracted_1 : i32 to index
    %c0 = arith.constant 0 : index
    %5:3 = scf.while (%arg12 = %c0, %arg13 = %0, %arg14 = %arg6) : (index, tensor<17x2xi32>, tensor<2x16xf32>) -> (index, tensor<17x2xi32>, tensor<2x16xf32>) {
      %20 = arith.cmpi slt, %arg12, %4 : index
      scf.condition(%20) %arg12, %arg13, %arg14 : index, tensor<17x2xi32>, tensor<2x16xf32>
    } do {
    ^bb0(%arg12: index, %arg13: tensor<17x2xi32>, %arg14: tensor<2x16xf32>):
      %c-2147483648_i32 = arith.constant -2147483648 : i32
      %20 = tensor.empty() : tensor<17xi32>
      %21 = linalg.fill ins(%c-2147483648_i32 : i32) outs(%20 : tensor<17xi32>) -> tensor<17xi32>
      %c0_i32 = arith.constant 0 : i32
      %22 = tensor.empty() : tensor<17xi32>
      %23 = linalg.fill ins(%c0_i32 : i32) outs(%22 : tensor<17xi32>) -> tensor<17xi32>
      %24:2 = linalg.generic {indexing_maps = [#map3, #map4, #map4], iterator_types = ["parallel", "reduction"]} ins(%3 : tensor<17x2xi32>) outs(%21, %23 : tensor<17xi32>, tensor<17xi32>) {
      ^bb0(%in: i32, %out: i32, %out_5: i32):
        %29 = linalg.index 1 : index
        %30 = arith.index_cast %29 : index to i32
        %31 = arith.cmpi sgt, %in, %out : i32
        %32 = arith.select %31, %in, %out : i32
        %33 = arith.select %31, %30, %out_5 : i32
        linalg.yield %32, %33 : i32, i32
      } -> (tensor<17xi32>, tensor<17xi32>)
      %25 = dist.shard_tensor %3, #dist.sharding<@m, [shard(1), shard(1)]> : tensor<17x2xi32>
      %26 = tensor.empty() : tensor<6x2xi32>
      %27 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg8 : tensor<6x2xi64>) outs(%26 : tensor<6x2xi32>) {
      ^bb0(%in: i64, %out: i32):
        %29 = arith.index_cast %in : i64 to index
        %extracted_5 = tensor.extract %arg1[%29] : tensor<3xi32>
        linalg.yield %extracted_5 : i32
      } -> tensor<6x2xi32>
      %c1 = arith.constant 1 : index
      %28 = arith.addi %arg12, %c1 : index
      scf.yield %28, %25, %arg14 : index, tensor<17x2xi32>, tensor<2x16xf32>
    }
    %6 = tensor.empty() : tensor<10x11x8xi64>
    %7 = linalg.generic {indexing_maps = [#map5, #map2, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg9, %arg10 : tensor<10x11x8xi64>, tensor<10x11xi64>) outs(%6 : tensor<10x11x8xi64>) {
    ^bb0(%in: i64, %in_5: i64, %out: i64):
      %20 = arith.maxsi %in, %in_5 : i64
      linalg.yield %20 : i64
    } -> tensor<10x11x8xi64>
    %8 = tensor.empty() : tensor<2x16xf32>
    %9 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel"]} ins(%5#2 : tensor<2x16xf32>) outs(%8 : tensor<2x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x16xf32>
    %c1_i32 = arith.constant 1 : i32
    %10 = tensor.empty() : tensor<2xi32>
    %11 = linalg.fill ins(%c1_i32 : i32) outs(%10 : tensor<2xi32>) -> tensor<2xi32>
    %reduced = linalg.reduce ins(%5#1 : tensor<17x2xi32>) outs(%11 : tensor<2xi32>) dimensions = [0] 
      (%in: i32, %init: i32) {
        %20 = arith.muli %in, %init : i32
        linalg.yield %20 : i32
      }
    %12 = tensor.empty() : tensor<2xi32>
    %13 = linalg.generic {indexing_maps = [#map7], iterator_types = ["parallel"]} outs(%12 : tensor<2xi32>) {
    ^bb0(%out: i32):
      %20 = linalg.index 0 : index
      %21 = arith.index_cast %20 : index to i32
      linalg.yield %21 : i32
    } -> tensor<2xi32>
    %14:2 = ext.sort dim = 0 keys = 1 ins(%arg11, %13 : tensor<2xf32>, tensor<2xi32>)
    %cst_2 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_2 : tensor<2x16xf32>
    %15 = linalg.generic {indexing_maps = [#map8, #map9, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%9, %14#1 : tensor<2x16xf32>, tensor<2xi32>) outs(%splat : tensor<2x16xf32>) {
    ^bb0(%in: f32, %in_5: i32, %out: f32):
      %20 = linalg.index 2 : index
      %21 = arith.index_cast %20 : index to i32
      %22 = arith.cmpi eq, %in_5, %21 : i32
      %cst_6 = arith.constant 0.000000e+00 : f32
      %23 = arith.select %22, %in, %cst_6 : f32
      %24 = arith.addf %out, %23 : f32
      linalg.yield %24 : f32
    } -> tensor<2x16xf32>
    %16 = tensor.empty() : tensor<2x16xf32>
    %17 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<2x16xf32>) outs(%16 : tensor<2x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.negf %in : f32
      linalg.yield %20 : f32
    } -> tensor<2x16xf32>
    %18:2 = ext.sort dim = 0 keys = 1 ins(%14#1, %13 : tensor<2xi32>, tensor<2xi32>)
    %cst_3 = arith.constant 0.000000e+00 : f32
    %splat_4 = tensor.splat %cst_3 : tensor<2x16xf32>
    %19 = linalg.generic {indexing_maps = [#map8, #map9, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%17, %18#1 : tensor<2x16xf32>, tensor<2xi32>) outs(%splat_4 : tensor<2x16xf32>) {
    ^bb0(%in: f32, %in_5: i32, %out: f32):
      %20 = linalg.index 2 : index
      %21 = arith.index_cast %20 : index to i32
      %22 = arith.cmpi eq, %in_5, %21 : i32
      %cst_6 = arith.constant 0.000000e+00 : f32
      %23 = arith.select %22, %in, %cst_6 : f32
      %24 = arith.addf %out, %23 : f32
      linalg.yield %24 : f32
    } -> tensor<2x16xf32>
    return %19, %reduced : tensor<2x16xf32>, tensor<2xi32>
  }
}

