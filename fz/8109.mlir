#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0 + d1)>
module {
  dist.process_mesh @m(shape = [4, 2], dim_names = ["a0", "a1"], process_ids = [5, 6, 4, 3, 2, 0, 7, 1])
  func.func @main(%arg0: tensor<f64> {dist.sharding = #dist.sharding<@m, [?], priority = 2>}, %arg1: tensor<12xi32> {dist.range = [-1, 9], dist.sharding = #dist.sharding<@m, dims = [[]], open = ["a0", "a1"]>}, %arg2: tensor<12xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0":(2)2, "a1", "a0":(1)2]]>}, %arg3: tensor<3xf64> {dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0)]>}, %arg4: tensor<i64> {dist.range = [-2, 10]}, %arg5: tensor<16x5xf64>) -> (tensor<16x8xf64> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>}, tensor<11xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0"]], open = ["a1"]>}) {
    %cst = arith.constant dense<"0x0000603F000080BF000020BF000080BE000040BF000080BF000020BF0000003F0000803E000080BF0000003E0000003F0000403F0000C03E0000603F0000403F000080BE000040BF000020BF0000203F0000603F0000003E000060BF000040BF0000C0BE0000603F0000803E000080BF000080BE0000403F000000BE0000C03E000060BF0000803F0000803F0000603F0000203F0000803F0000C03E000080BE000000BF0000603F0000003E000060BF000020BF000060BF0000403F000040BF000000BE0000603F0000003F000000BF0000803E0000003E0000203F0000C0BE0000C03E0000003F0000603F0000003E0000803E000020BF0000403F0000C03E0000203F0000403F0000803F000020BF0000603F0000803F000060BF000000BE0000003F0000C0BE0000203F0000803E0000003F0000003E000080BE0000003F0000803E0000003E0000C03E00000000000080BE0000803E000000000000603F0000803F000000BE000000BF0000803F0000C03E000000BE000080BF0000003E000080BF0000803E0000C03E000020BF0000803E000060BF0000C0BE000080BE000000BE0000203F0000803E000040BF000060BF0000403F000080BF000000BE000080BF000080BF0000003E0000603F000020BF0000203F000080BE0000003F000000BF0000C0BE000080BF00000000000080BE000000BE0000803F00000000"> : tensor<8x16xf32>
    %0 = arith.extf %cst : tensor<8x16xf32> to tensor<8x16xf64>
    %1 = tensor.empty() : tensor<8x16xf64>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %arg0 : tensor<8x16xf64>, tensor<f64>) outs(%1 : tensor<8x16xf64>) {
    ^bb0(%in: f64, %in_6: f64, %out: f64):
      %15 = arith.minimumf %in, %in_6 : f64
      linalg.yield %15 : f64
    } -> tensor<8x16xf64>
    %3 = tensor.empty() : tensor<8x16xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<8x16xf64>) outs(%3 : tensor<8x16xf64>) {
    ^bb0(%in: f64, %out: f64):
      %15 = linalg.index 0 : index
      %16 = linalg.index 1 : index
      %c2 = arith.constant 2 : index
      %17 = arith.addi %16, %c2 : index
      %18 = arith.cmpi sge, %15, %17 : index
      %cst_6 = arith.constant 5.000000e+00 : f64
      %19 = arith.select %18, %in, %cst_6 : f64
      linalg.yield %19 : f64
    } -> tensor<8x16xf64>
    %cst_0 = arith.constant 0.000000e+00 : f64
    %5 = tensor.empty() : tensor<8xf64>
    %6 = linalg.fill ins(%cst_0 : f64) outs(%5 : tensor<8xf64>) -> tensor<8xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map2], iterator_types = ["parallel", "reduction"]} ins(%2, %0 : tensor<8x16xf64>, tensor<8x16xf64>) outs(%6 : tensor<8xf64>) {
    ^bb0(%in: f64, %in_6: f64, %out: f64):
      %15 = arith.subf %in, %in_6 : f64
      %16 = arith.mulf %15, %15 : f64
      %17 = arith.addf %16, %out : f64
      linalg.yield %17 : f64
    } -> tensor<8xf64>
    %cst_1 = arith.constant dense<6.250000e-02> : tensor<8xf64>
    %8 = arith.mulf %7, %cst_1 : tensor<8xf64>
    %cst_2 = arith.constant 0.000000e+00 : f64
    %padded = tensor.pad %8 low[0] high[0] {
    ^bb0(%arg6: index):
      tensor.yield %cst_2 : f64
    } : tensor<8xf64> to tensor<8xf64>
    %9 = linalg.generic {indexing_maps = [#map2, #map3, #map3], iterator_types = ["reduction", "parallel"]} ins(%padded, %arg1 : tensor<8xf64>, tensor<12xi32>) outs(%arg2 : tensor<12xf64>) {
    ^bb0(%in: f64, %in_6: i32, %out: f64):
      %15 = linalg.index 0 : index
      %16 = arith.index_cast %15 : index to i32
      %17 = arith.cmpi eq, %in_6, %16 : i32
      %cst_7 = arith.constant 0x7FF0000000000000 : f64
      %18 = arith.select %17, %in, %cst_7 : f64
      %19 = arith.minimumf %out, %18 : f64
      linalg.yield %19 : f64
    } -> tensor<12xf64>
    %10 = tensor.empty() : tensor<16x8xf64>
    %transposed = linalg.transpose ins(%0 : tensor<8x16xf64>) outs(%10 : tensor<16x8xf64>) permutation = [1, 0] 
    %inserted_slice = tensor.insert_slice %arg3 into %arg2[8] [3] [1] : tensor<3xf64> into tensor<12xf64>
    %cst_3 = arith.constant dense<[-1.000000e+00, -6.250000e-01]> : tensor<2xf64>
    %cst_4 = arith.constant 0.000000e+00 : f64
    %11 = tensor.empty() : tensor<11xf64>
    %12 = linalg.fill ins(%cst_4 : f64) outs(%11 : tensor<11xf64>) -> tensor<11xf64>
    %13 = linalg.generic {indexing_maps = [#map4, #map3, #map2], iterator_types = ["parallel", "reduction"]} ins(%inserted_slice, %cst_3 : tensor<12xf64>, tensor<2xf64>) outs(%12 : tensor<11xf64>) {
    ^bb0(%in: f64, %in_6: f64, %out: f64):
      %15 = arith.mulf %in, %in_6 : f64
      %16 = arith.addf %15, %out : f64
      linalg.yield %16 : f64
    } -> tensor<11xf64>
    %extracted = tensor.extract %arg4[] : tensor<i64>
    %14 = arith.index_cast %extracted : i64 to index
    %inserted_slice_5 = tensor.insert_slice %arg5 into %transposed[0, %14] [16, 5] [1, 1] : tensor<16x5xf64> into tensor<16x8xf64>
    return %inserted_slice_5, %13 : tensor<16x8xf64>, tensor<11xf64>
  }
}

