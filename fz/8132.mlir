#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  dist.process_mesh @m(shape = [1, 6, 2], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<17xi32> {dist.range = [-4, 5]}, %arg1: tensor<14x17xi32> {dist.range = [1, 4], dist.sharding = #dist.sharding<@m, dims = [["a1":(3)2], ["a2"]], open = ["a1":(1)3]>}, %arg2: tensor<14x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, ?, shard(1)]>}, %arg3: tensor<14x6xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate, shard(1)]>}, %arg4: tensor<4xi32> {dist.range = [-4, 5]}, %arg5: tensor<5xf64>, %arg6: tensor<9xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, [replicate, shard(0), shard(0)]>}, %arg7: tensor<8x12xf32> {dist.sharding = #dist.sharding<@m, [shard(-2, order = 1), replicate, shard(-2, order = 0)]>}) -> (tensor<16x12xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a2", "a0"]], open = ["a1"]>}, tensor<5xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a2"]], open = ["a0"]>}) {
    %cst = arith.constant dense<[-2, 2, 3, -2, -3, -1, -3, 1, 0, 0, 0, 0, -2, 3, 3, 0, 1]> : tensor<17xi32>
    %cst_0 = arith.constant dense<[-1, 0, -1, 1, 2, -1, 0, -2, 0, -3, 3, -2, -1, 1, -3, -2, 1]> : tensor<17xi32>
    %0 = arith.cmpi sgt, %cst, %cst_0 : tensor<17xi32>
    %1 = arith.select %0, %cst, %arg0 : tensor<17xi1>, tensor<17xi32>
    %2 = arith.addi %arg0, %1 : tensor<17xi32>
    %c1428_i32 = arith.constant 1428 : i32
    %3:3 = scf.while (%arg8 = %arg1, %arg9 = %2, %arg10 = %2) : (tensor<14x17xi32>, tensor<17xi32>, tensor<17xi32>) -> (tensor<14x17xi32>, tensor<17xi32>, tensor<17xi32>) {
      %c0_i32 = arith.constant 0 : i32
      %splat_8 = tensor.splat %c0_i32 : tensor<i32>
      %15 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg8 : tensor<14x17xi32>) outs(%splat_8 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %17 = arith.addi %out, %in : i32
        linalg.yield %17 : i32
      } -> tensor<i32>
      %extracted_9 = tensor.extract %15[] : tensor<i32>
      %16 = arith.cmpi slt, %extracted_9, %c1428_i32 : i32
      scf.condition(%16) %arg8, %arg9, %arg10 : tensor<14x17xi32>, tensor<17xi32>, tensor<17xi32>
    } do {
    ^bb0(%arg8: tensor<14x17xi32>, %arg9: tensor<17xi32>, %arg10: tensor<17xi32>):
      %15 = tensor.empty() : tensor<14x17xi32>
      %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<14x17xi32>) outs(%15 : tensor<14x17xi32>) {
      ^bb0(%in: i32, %out: i32):
        %18 = linalg.index 0 : index
        %19 = linalg.index 1 : index
        %c-2 = arith.constant -2 : index
        %20 = arith.addi %19, %c-2 : index
        %21 = arith.cmpi sge, %18, %20 : index
        %c0_i32 = arith.constant 0 : i32
        %22 = arith.select %21, %in, %c0_i32 : i32
        linalg.yield %22 : i32
      } -> tensor<14x17xi32>
      %17 = arith.addi %arg8, %arg8 : tensor<14x17xi32>
      scf.yield %17, %arg10, %arg9 : tensor<14x17xi32>, tensor<17xi32>, tensor<17xi32>
    }
    %concat = tensor.concat dim(1) %3#0, %arg2, %arg3 : (tensor<14x17xi32>, tensor<14x4xi32>, tensor<14x6xi32>) -> tensor<14x27xi32>
    %4 = dist.shard_tensor %concat, #dist.sharding<@m, [replicate, replicate, replicate]> : tensor<14x27xi32>
    %concat_1 = tensor.concat dim(0) %3#2, %arg4, %arg0 : (tensor<17xi32>, tensor<4xi32>, tensor<17xi32>) -> tensor<38xi32>
    %5 = arith.cmpi sgt, %4, %4 : tensor<14x27xi32>
    %6 = arith.select %5, %4, %concat : tensor<14x27xi1>, tensor<14x27xi32>
    %cst_2 = arith.constant dense<-6.250000e-01> : tensor<f64>
    %7 = dist.shard_tensor %cst_2, #dist.sharding<@m, [replicate]> : tensor<f64>
    %8 = tensor.empty() : tensor<14x27xi32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<14x27xi32>) outs(%8 : tensor<14x27xi32>) {
    ^bb0(%in: i32, %out: i32):
      %15 = linalg.index 0 : index
      %16 = linalg.index 1 : index
      %c2 = arith.constant 2 : index
      %17 = arith.addi %16, %c2 : index
      %18 = arith.cmpi sge, %15, %17 : index
      %c5_i32 = arith.constant 5 : i32
      %19 = arith.select %18, %in, %c5_i32 : i32
      linalg.yield %19 : i32
    } -> tensor<14x27xi32>
    %10 = dist.shard_tensor %6, #dist.sharding<@m, dims = [["a2", "a1", "a0"], []]> : tensor<14x27xi32>
    %c7 = arith.constant 7 : index
    %extracted = tensor.extract %arg6[%c7] : tensor<9xi32>
    %11 = arith.index_cast %extracted : i32 to index
    %c0 = arith.constant 0 : index
    %12:3 = scf.while (%arg8 = %c0, %arg9 = %arg5, %arg10 = %arg5) : (index, tensor<5xf64>, tensor<5xf64>) -> (index, tensor<5xf64>, tensor<5xf64>) {
      %15 = arith.cmpi slt, %arg8, %11 : index
      scf.condition(%15) %arg8, %arg9, %arg10 : index, tensor<5xf64>, tensor<5xf64>
    } do {
    ^bb0(%arg8: index, %arg9: tensor<5xf64>, %arg10: tensor<5xf64>):
      %15 = arith.cmpi sgt, %10, %10 : tensor<14x27xi32>
      %16 = arith.select %15, %10, %10 : tensor<14x27xi1>, tensor<14x27xi32>
      %extracted_slice = tensor.extract_slice %16[0, 3] [5, 24] [2, 1] : tensor<14x27xi32> to tensor<5x24xi32>
      %17 = dist.shard_tensor %9, #dist.sharding<@m, dims = [["a0", "a1":(1)3, "a2"], []], open = ["a1":(3)2]> : tensor<14x27xi32>
      %c1 = arith.constant 1 : index
      %18 = arith.addi %arg8, %c1 : index
      scf.yield %18, %arg10, %arg9 : index, tensor<5xf64>, tensor<5xf64>
    }
    %cst_3 = arith.constant dense<[[3.750000e-01, 3.750000e-01, 7.500000e-01, -1.250000e-01, -6.250000e-01, -1.250000e-01, -1.250000e-01, -8.750000e-01, -8.750000e-01, 5.000000e-01, -3.750000e-01, 5.000000e-01], [-1.000000e+00, 3.750000e-01, 1.000000e+00, -6.250000e-01, 6.250000e-01, 5.000000e-01, 1.000000e+00, 1.000000e+00, -7.500000e-01, 8.750000e-01, -7.500000e-01, 5.000000e-01], [-2.500000e-01, 3.750000e-01, 3.750000e-01, -7.500000e-01, -1.250000e-01, 7.500000e-01, 7.500000e-01, 7.500000e-01, -7.500000e-01, 8.750000e-01, -1.250000e-01, -3.750000e-01], [3.750000e-01, 1.250000e-01, -3.750000e-01, -1.000000e+00, -5.000000e-01, 1.000000e+00, 3.750000e-01, 7.500000e-01, -1.250000e-01, 2.500000e-01, -8.750000e-01, 0.000000e+00], [3.750000e-01, 1.250000e-01, -5.000000e-01, 2.500000e-01, 7.500000e-01, -5.000000e-01, 5.000000e-01, 1.000000e+00, -8.750000e-01, 3.750000e-01, 7.500000e-01, 0.000000e+00], [-5.000000e-01, -1.000000e+00, 6.250000e-01, 0.000000e+00, -2.500000e-01, 2.500000e-01, -2.500000e-01, 5.000000e-01, 1.000000e+00, -3.750000e-01, -5.000000e-01, 2.500000e-01], [1.000000e+00, -1.250000e-01, -8.750000e-01, -8.750000e-01, -6.250000e-01, -3.750000e-01, 0.000000e+00, 8.750000e-01, -8.750000e-01, -2.500000e-01, 5.000000e-01, 1.000000e+00], [-6.250000e-01, 0.000000e+00, 1.250000e-01, -8.750000e-01, 7.500000e-01, 7.500000e-01, 0.000000e+00, -2.500000e-01, -8.750000e-01, -1.000000e+00, -7.500000e-01, 5.000000e-01]]> : tensor<8x12xf32>
    %cst_4 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_4 : tensor<16x12xf32>
    %inserted_slice = tensor.insert_slice %arg7 into %splat[0, 0] [8, 12] [2, 1] : tensor<8x12xf32> into tensor<16x12xf32>
    %cst_5 = arith.constant 0.000000e+00 : f32
    %splat_6 = tensor.splat %cst_5 : tensor<16x12xf32>
    %inserted_slice_7 = tensor.insert_slice %cst_3 into %splat_6[1, 0] [8, 12] [2, 1] : tensor<8x12xf32> into tensor<16x12xf32>
    %13 = tensor.empty() : tensor<16x12xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%inserted_slice, %inserted_slice_7 : tensor<16x12xf32>, tensor<16x12xf32>) outs(%13 : tensor<16x12xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %15 = arith.addf %in, %in_8 : f32
      linalg.yield %15 : f32
    } -> tensor<16x12xf32>
    return %14, %12#2 : tensor<16x12xf32>, tensor<5xf64>
  }
}

