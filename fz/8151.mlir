#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [11], dim_names = ["a0"])
  func.func @main(%arg0: tensor<1x9x17xf32> {dist.sharding = #dist.sharding<@m, [replicate], priority = 1>}) -> (tensor<17x5xf32>, tensor<1x9x17xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
    %cst = arith.constant dense<5.000000e-01> : tensor<f32>
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.exp ins(%cst : tensor<f32>) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = tensor.empty() : tensor<1x9x17xf32>
    %3 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs(%2 : tensor<1x9x17xf32>) {
    ^bb0(%out: f32):
      %19 = linalg.index 0 : index
      %20 = linalg.index 1 : index
      %21 = linalg.index 2 : index
      %c8 = arith.constant 8 : index
      %22 = arith.subi %c8, %20 : index
      %extracted = tensor.extract %arg0[%19, %22, %21] : tensor<1x9x17xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x9x17xf32>
    %4 = tensor.empty() : tensor<7xi64>
    %5 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%4 : tensor<7xi64>) {
    ^bb0(%out: i64):
      %c1 = arith.constant 1 : index
      %19 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %20 = arith.muli %c1, %c2 : index
      %21 = arith.addi %20, %19 : index
      %22 = arith.index_cast %21 : index to i64
      linalg.yield %22 : i64
    } -> tensor<7xi64>
    %6 = tensor.empty() : tensor<1x9x17xf32>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs(%6 : tensor<1x9x17xf32>) {
    ^bb0(%out: f32):
      %19 = linalg.index 0 : index
      %20 = linalg.index 1 : index
      %21 = linalg.index 2 : index
      %c16 = arith.constant 16 : index
      %22 = arith.subi %c16, %21 : index
      %extracted = tensor.extract %3[%19, %20, %22] : tensor<1x9x17xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x9x17xf32>
    %cst_0 = arith.constant dense<[0.000000e+00, 1.250000e-01, -1.000000e+00, -1.250000e-01, -2.500000e-01, 7.500000e-01, -3.750000e-01, 8.750000e-01, 7.500000e-01]> : tensor<9xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<17x1xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map2, #map3], iterator_types = ["parallel", "reduction", "parallel"]} ins(%7, %cst_0 : tensor<1x9x17xf32>, tensor<9xf32>) outs(%cst_1 : tensor<17x1xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %19 = arith.mulf %in, %in_6 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<17x1xf32>
    %9 = tensor.empty() : tensor<1x9x17xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<1x9x17xf32>) outs(%9 : tensor<1x9x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = linalg.index 1 : index
      %20 = linalg.index 2 : index
      %c2 = arith.constant 2 : index
      %21 = arith.addi %20, %c2 : index
      %22 = arith.cmpi sge, %19, %21 : index
      %cst_6 = arith.constant 0.000000e+00 : f32
      %23 = arith.select %22, %in, %cst_6 : f32
      linalg.yield %23 : f32
    } -> tensor<1x9x17xf32>
    %cst_2 = arith.constant dense<2.000000e+00> : tensor<1xf32>
    %reduced = linalg.reduce ins(%8 : tensor<17x1xf32>) outs(%cst_2 : tensor<1xf32>) dimensions = [0] 
      (%in: f32, %init: f32) {
        %19 = arith.maximumf %in, %init : f32
        linalg.yield %19 : f32
      }
    %cst_3 = arith.constant dense<[[1.000000e+00, 1.000000e+00, -2.500000e-01, 1.000000e+00, -7.500000e-01]]> : tensor<1x5xf32>
    %cst_4 = arith.constant 0.000000e+00 : f32
    %11 = tensor.empty() : tensor<17x5xf32>
    %12 = linalg.fill ins(%cst_4 : f32) outs(%11 : tensor<17x5xf32>) -> tensor<17x5xf32>
    %13 = linalg.matmul ins(%8, %cst_3 : tensor<17x1xf32>, tensor<1x5xf32>) outs(%12 : tensor<17x5xf32>) -> tensor<17x5xf32>
    %14 = dist.shard_tensor %10, #dist.sharding<@m, [shard(-1)], priority = 2> : tensor<1x9x17xf32>
    %15 = tensor.empty() : tensor<17x5xf32>
    %transposed = linalg.transpose ins(%13 : tensor<17x5xf32>) outs(%15 : tensor<17x5xf32>) permutation = [0, 1] 
    %16 = tensor.empty() : tensor<17x5xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%transposed, %13 : tensor<17x5xf32>, tensor<17x5xf32>) outs(%16 : tensor<17x5xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %19 = arith.subf %in, %in_6 : f32
      linalg.yield %19 : f32
    } -> tensor<17x5xf32>
    %cst_5 = arith.constant dense<1.250000e-01> : tensor<17x5xf32>
    %18 = arith.mulf %17, %cst_5 : tensor<17x5xf32>
    return %18, %14 : tensor<17x5xf32>, tensor<1x9x17xf32>
  }
}

