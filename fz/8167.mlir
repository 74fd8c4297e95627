#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [5, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<7xf32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]>}, %arg1: tensor<4x2xf32>, %arg2: tensor<2xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"]], open = ["a1"]>}, %arg3: tensor<4x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], []], partial = [sum("a1")], priority = 1>}, %arg4: tensor<4xi64> {dist.range = [0, 78], dist.sharding = #dist.sharding<@m, dims = [["a1"]], open = ["a0"]>}, %arg5: tensor<7x9xbf16> {dist.sharding = #dist.sharding<@m, dims = [[], []], open = ["a0", "a1"]>}, %arg6: tensor<9xbf16>, %arg7: tensor<17xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}) -> (tensor<2xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) {
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0] high[1] {
    ^bb0(%arg8: index):
      tensor.yield %cst : f32
    } : tensor<7xf32> to tensor<8xf32>
    %cst_0 = arith.constant dense<[[8.750000e-01, -8.750000e-01, 1.000000e+00], [-8.750000e-01, -8.750000e-01, 2.500000e-01], [-7.500000e-01, 1.250000e-01, 8.750000e-01], [-1.000000e+00, 5.000000e-01, 0.000000e+00], [2.500000e-01, 8.750000e-01, 5.000000e-01], [-1.000000e+00, 0.000000e+00, 5.000000e-01], [5.000000e-01, 0.000000e+00, 6.250000e-01], [0.000000e+00, 2.500000e-01, 8.750000e-01], [-3.750000e-01, -8.750000e-01, -6.250000e-01], [-7.500000e-01, 1.000000e+00, -8.750000e-01], [-1.250000e-01, -6.250000e-01, 3.750000e-01], [-5.000000e-01, -6.250000e-01, -3.750000e-01]]> : tensor<12x3xf32>
    %inserted_slice = tensor.insert_slice %arg1 into %cst_0[2, 1] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<12x3xf32>
    %0 = arith.cmpf ogt, %inserted_slice, %inserted_slice : tensor<12x3xf32>
    %1 = arith.select %0, %inserted_slice, %inserted_slice : tensor<12x3xi1>, tensor<12x3xf32>
    %2 = tensor.empty() : tensor<2x1xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<2xf32>) outs(%2 : tensor<2x1xf32>) dimensions = [1] 
    %concat = tensor.concat dim(0) %broadcasted, %broadcasted, %broadcasted : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<6x1xf32>
    %3 = tensor.empty() : tensor<78x4xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg4 : tensor<4xi64>) outs(%3 : tensor<78x4xf32>) {
    ^bb0(%in: i64, %out: f32):
      %11 = linalg.index 0 : index
      %12 = arith.index_cast %11 : index to i64
      %13 = arith.cmpi eq, %in, %12 : i64
      %14 = arith.uitofp %13 : i1 to f32
      linalg.yield %14 : f32
    } -> tensor<78x4xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<78x5xf32>
    %5 = linalg.matmul ins(%4, %arg3 : tensor<78x4xf32>, tensor<4x5xf32>) outs(%cst_1 : tensor<78x5xf32>) -> tensor<78x5xf32>
    %cst_2 = arith.constant 0.000000e+00 : bf16
    %6 = tensor.empty() : tensor<7xbf16>
    %7 = linalg.fill ins(%cst_2 : bf16) outs(%6 : tensor<7xbf16>) -> tensor<7xbf16>
    %8 = linalg.matvec ins(%arg5, %arg6 : tensor<7x9xbf16>, tensor<9xbf16>) outs(%7 : tensor<7xbf16>) -> tensor<7xbf16>
    %9 = dist.shard_tensor %arg7, #dist.sharding<@m, [?, shard(0)]> : tensor<17xf32>
    %cst_3 = arith.constant dense<5.000000e-01> : tensor<78x5xf32>
    %10 = arith.mulf %5, %cst_3 : tensor<78x5xf32>
    %cst_4 = arith.constant 0.000000e+00 : f32
    %padded_5 = tensor.pad %9 low[0] high[3] {
    ^bb0(%arg8: index):
      tensor.yield %cst_4 : f32
    } : tensor<17xf32> to tensor<20xf32>
    %cst_6 = arith.constant 0.000000e+00 : f32
    %padded_7 = tensor.pad %arg2 low[0] high[0] {
    ^bb0(%arg8: index):
      tensor.yield %cst_6 : f32
    } : tensor<2xf32> to tensor<2xf32>
    return %padded_7 : tensor<2xf32>
  }
}

