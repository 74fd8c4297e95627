#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [11], dim_names = ["a0"])
  func.func @main(%arg0: tensor<2x12xf32>, %arg1: tensor<1x4xf32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], []]>}, %arg2: tensor<15xf32> {dist.sharding = #dist.sharding<@m, [replicate], priority = 0>}, %arg3: tensor<6x16x5xi64> {dist.range = [-4, 5]}) -> (tensor<6x16x5xi64> {dist.feeds = 3 : i64, dist.sharding = #dist.sharding<@m, dims = [[], [], []], open = ["a0"]>}, tensor<2x12xf32> {dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@m, [shard(-2)]>}, tensor<2x12xf32>) {
    %inserted_slice = tensor.insert_slice %arg1 into %arg0[1, 8] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<2x12xf32>
    %0 = dist.shard_tensor %arg0, #dist.sharding<@m, [replicate]> : tensor<2x12xf32>
    %cst = arith.constant dense<[-6.250000e-01, 0.000000e+00, -7.500000e-01, -1.250000e-01, -1.250000e-01, -8.750000e-01, 0.000000e+00]> : tensor<7xf32>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %1:2 = scf.for %arg4 = %c1 to %c3 step %c2 iter_args(%arg5 = %cst, %arg6 = %arg0) -> (tensor<7xf32>, tensor<2x12xf32>) {
      %7 = arith.subf %arg0, %inserted_slice : tensor<2x12xf32>
      %8 = dist.shard_tensor %arg1, #dist.sharding<@m, [?], priority = 0> : tensor<1x4xf32>
      %extracted_slice = tensor.extract_slice %arg6[0, 7] [1, 3] [1, 1] : tensor<2x12xf32> to tensor<1x3xf32>
      scf.yield %arg5, %7 : tensor<7xf32>, tensor<2x12xf32>
    }
    %2 = dist.shard_tensor %inserted_slice, #dist.sharding<@m, dims = [["a0"], []]> : tensor<2x12xf32>
    %3 = tensor.empty() : tensor<2x12xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1#1 : tensor<2x12xf32>) outs(%3 : tensor<2x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = linalg.index 0 : index
      %c2_3 = arith.constant 2 : index
      %8 = arith.subi %7, %c2_3 : index
      %c15 = arith.constant 15 : index
      %9 = arith.cmpi ult, %8, %c15 : index
      %10 = scf.if %9 -> (f32) {
        %extracted = tensor.extract %arg2[%8] : tensor<15xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %in : f32
      }
      linalg.yield %10 : f32
    } -> tensor<2x12xf32>
    %c1_0 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c1_1 = arith.constant 1 : index
    %5 = scf.for %arg4 = %c1_0 to %c4 step %c1_1 iter_args(%arg5 = %arg3) -> (tensor<6x16x5xi64>) {
      %7 = math.absf %1#1 : tensor<2x12xf32>
      scf.yield %arg5 : tensor<6x16x5xi64>
    }
    %cst_2 = arith.constant dense<2.500000e-01> : tensor<2x12xf32>
    %6 = arith.mulf %4, %cst_2 : tensor<2x12xf32>
    return %5, %6, %2 : tensor<6x16x5xi64>, tensor<2x12xf32>, tensor<2x12xf32>
  }
}

