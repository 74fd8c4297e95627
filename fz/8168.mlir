#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [12], dim_names = ["a0"], process_ids = [3, 5, 9, 0, 1, 4, 7, 10, 11, 8, 2, 6])
  func.func @main(%arg0: tensor<7xbf16> {dist.sharding = #dist.sharding<@m, [?]>}, %arg1: tensor<6xbf16>) -> (tensor<16x9xf32>, tensor<7xbf16>) {
    %0 = tensor.empty() : tensor<7xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<7xbf16>) outs(%0 : tensor<7xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %7 = linalg.index 0 : index
      %c0 = arith.constant 0 : index
      %8 = arith.subi %7, %c0 : index
      %c6 = arith.constant 6 : index
      %9 = arith.cmpi ult, %8, %c6 : index
      %10 = scf.if %9 -> (bf16) {
        %extracted = tensor.extract %arg1[%8] : tensor<6xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %in : bf16
      }
      linalg.yield %10 : bf16
    } -> tensor<7xbf16>
    %cst = arith.constant dense<[[-7.500000e-01, -5.000000e-01, -1.000000e+00, 1.000000e+00, 3.750000e-01, -3.750000e-01, -6.250000e-01, -2.500000e-01, 6.250000e-01, -7.500000e-01, 0.000000e+00, -1.250000e-01, 1.000000e+00], [0.000000e+00, 1.000000e+00, 1.250000e-01, 3.750000e-01, 1.250000e-01, 1.000000e+00, -1.000000e+00, 5.000000e-01, -2.500000e-01, 6.250000e-01, -7.500000e-01, 7.500000e-01, -6.250000e-01], [-8.750000e-01, 8.750000e-01, -1.000000e+00, -7.500000e-01, -6.250000e-01, 2.500000e-01, -8.750000e-01, -6.250000e-01, -3.750000e-01, -3.750000e-01, -3.750000e-01, -8.750000e-01, -1.000000e+00], [-5.000000e-01, 8.750000e-01, 1.250000e-01, -2.500000e-01, 3.750000e-01, 2.500000e-01, 0.000000e+00, -7.500000e-01, -3.750000e-01, -8.750000e-01, 8.750000e-01, -2.500000e-01, 1.250000e-01], [-1.000000e+00, -8.750000e-01, -5.000000e-01, -2.500000e-01, -8.750000e-01, -3.750000e-01, -5.000000e-01, -1.000000e+00, -5.000000e-01, -7.500000e-01, 8.750000e-01, 6.250000e-01, 7.500000e-01], [-8.750000e-01, -2.500000e-01, 5.000000e-01, 1.250000e-01, 2.500000e-01, -8.750000e-01, 1.000000e+00, 3.750000e-01, 2.500000e-01, -1.250000e-01, 1.250000e-01, 1.250000e-01, 3.750000e-01]]> : tensor<6x13xf32>
    %2 = tensor.empty() : tensor<6x13xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<6x13xf32>) outs(%2 : tensor<6x13xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %c2 = arith.constant 2 : index
      %9 = arith.addi %8, %c2 : index
      %10 = arith.cmpi sge, %7, %9 : index
      %cst_3 = arith.constant 0.000000e+00 : f32
      %11 = arith.select %10, %in, %cst_3 : f32
      linalg.yield %11 : f32
    } -> tensor<6x13xf32>
    %4 = tensor.empty() : tensor<13x6xf32>
    %transposed = linalg.transpose ins(%3 : tensor<6x13xf32>) outs(%4 : tensor<13x6xf32>) permutation = [1, 0] 
    %cst_0 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %transposed low[0, 0] high[3, 3] {
    ^bb0(%arg2: index, %arg3: index):
      tensor.yield %cst_0 : f32
    } : tensor<13x6xf32> to tensor<16x9xf32>
    %padded_1 = tensor.pad %padded low[0, 0] high[0, 0] {
    ^bb0(%arg2: index, %arg3: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %7 = arith.muli %arg2, %c1 : index
      %8 = arith.addi %c0, %7 : index
      %c2 = arith.constant 2 : index
      %9 = arith.muli %arg3, %c2 : index
      %10 = arith.addi %8, %9 : index
      %11 = arith.index_cast %10 : index to i32
      %12 = arith.sitofp %11 : i32 to f32
      tensor.yield %12 : f32
    } : tensor<16x9xf32> to tensor<16x9xf32>
    %cst_2 = arith.constant dense<6.250000e-02> : tensor<16x9xf32>
    %5 = arith.mulf %padded_1, %cst_2 : tensor<16x9xf32>
    %6 = dist.shard_tensor %5, #dist.sharding<@m, [shard(0)], priority = 0> : tensor<16x9xf32>
    return %6, %1 : tensor<16x9xf32>, tensor<7xbf16>
  }
}

