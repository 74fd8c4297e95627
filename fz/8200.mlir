#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> ()>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<7xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg1: tensor<6xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg2: tensor<15x10x6xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], []]>}, %arg3: tensor<15x10x6xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0"], []]>}, %arg4: tensor<3xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg5: tensor<9x14xi32> {dist.range = [-2, 8], dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg6: tensor<14x8x1xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg7: tensor<14x1x1xf64> {dist.sharding = #dist.sharding<@m, dims = [[], [], []], open = ["a0"]>}, %arg8: tensor<14xi32> {dist.range = [0, 7]}, %arg9: tensor<1xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[]], open = ["a0"]>}) -> (tensor<f32>, tensor<15x10x6xf32> {dist.feeds = 3 : i64}) {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = linalg.dot ins(%arg0, %arg0 : tensor<7xf32>, tensor<7xf32>) outs(%cst : tensor<f32>) -> tensor<f32>
    %concat = tensor.concat dim(0) %arg0, %arg1 : (tensor<7xf32>, tensor<6xf32>) -> tensor<13xf32>
    %1 = dist.reshard %0 to #dist.sharding<@m, dims = [], open = ["a0"]> : tensor<f32>
    %2 = arith.minimumf %arg2, %arg3 : tensor<15x10x6xf32>
    %inserted_slice = tensor.insert_slice %arg4 into %concat[10] [3] [1] : tensor<3xf32> into tensor<13xf32>
    %3 = dist.shard_tensor %arg0, #dist.sharding<@m, dims = [[]]> : tensor<7xf32>
    %c3 = arith.constant 3 : index
    %c3_0 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %4:2 = scf.for %arg10 = %c3 to %c3_0 step %c2 iter_args(%arg11 = %arg1, %arg12 = %3) -> (tensor<6xf32>, tensor<7xf32>) {
      %16 = tensor.empty() : tensor<9x14xf32>
      %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5 : tensor<9x14xi32>) outs(%16 : tensor<9x14xf32>) {
      ^bb0(%in: i32, %out: f32):
        %22 = arith.index_cast %in : i32 to index
        %extracted = tensor.extract %arg11[%22] : tensor<6xf32>
        linalg.yield %extracted : f32
      } -> tensor<9x14xf32>
      %18 = dist.reshard %concat to #dist.sharding<@m, dims = [["a0"]]> : tensor<13xf32>
      %cst_6 = arith.constant 0.000000e+00 : f64
      %19 = tensor.empty() : tensor<14x8x1xf64>
      %20 = linalg.fill ins(%cst_6 : f64) outs(%19 : tensor<14x8x1xf64>) -> tensor<14x8x1xf64>
      %21 = linalg.batch_matmul ins(%arg6, %arg7 : tensor<14x8x1xf64>, tensor<14x1x1xf64>) outs(%20 : tensor<14x8x1xf64>) -> tensor<14x8x1xf64>
      %expanded = tensor.expand_shape %17 [[0], [1, 2, 3]] output_shape [9, 2, 7, 1] : tensor<9x14xf32> into tensor<9x2x7x1xf32>
      scf.yield %arg11, %arg12 : tensor<6xf32>, tensor<7xf32>
    }
    %5 = tensor.empty() : tensor<14xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg8 : tensor<14xi32>) outs(%5 : tensor<14xf32>) {
    ^bb0(%in: i32, %out: f32):
      %16 = arith.index_cast %in : i32 to index
      %extracted = tensor.extract %3[%16] : tensor<7xf32>
      linalg.yield %extracted : f32
    } -> tensor<14xf32>
    %c2_1 = arith.constant 2 : index
    %c2_2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %7 = scf.for %arg10 = %c2_1 to %c2_2 step %c1 iter_args(%arg11 = %2) -> (tensor<15x10x6xf32>) {
      %extracted_slice = tensor.extract_slice %6[6] [8] [1] : tensor<14xf32> to tensor<8xf32>
      %extracted_slice_6 = tensor.extract_slice %6[0] [6] [1] : tensor<14xf32> to tensor<6xf32>
      %concat_7 = tensor.concat dim(0) %extracted_slice, %extracted_slice_6 : (tensor<8xf32>, tensor<6xf32>) -> tensor<14xf32>
      %cst_8 = arith.constant dense<3> : tensor<1xi64>
      %16 = arith.xori %arg9, %cst_8 : tensor<1xi64>
      scf.yield %arg11 : tensor<15x10x6xf32>
    }
    %8 = tensor.empty() : tensor<14xf32>
    %9 = linalg.add ins(%6, %6 : tensor<14xf32>, tensor<14xf32>) outs(%8 : tensor<14xf32>) -> tensor<14xf32>
    %10 = math.fma %arg2, %arg2, %arg2 : tensor<15x10x6xf32>
    %cst_3 = arith.constant 2.000000e+00 : f32
    %11 = tensor.empty() : tensor<f32>
    %12 = linalg.fill ins(%cst_3 : f32) outs(%11 : tensor<f32>) -> tensor<f32>
    %13 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["reduction", "reduction", "reduction"]} ins(%7 : tensor<15x10x6xf32>) outs(%12 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.addf %out, %in : f32
      linalg.yield %16 : f32
    } -> tensor<f32>
    %cst_4 = arith.constant dense<9.765625E-4> : tensor<f32>
    %14 = arith.mulf %13, %cst_4 : tensor<f32>
    %cst_5 = arith.constant 5.000000e-01 : f32
    %splat = tensor.splat %cst_5 : tensor<15x10x6xf32>
    %15 = arith.mulf %10, %splat : tensor<15x10x6xf32>
    return %14, %15 : tensor<f32>, tensor<15x10x6xf32>
  }
}

