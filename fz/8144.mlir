#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map6 = affine_map<(d0, d1, d2) -> (d0)>
#map7 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map8 = affine_map<(d0, d1, d2) -> (d2)>
#map9 = affine_map<(d0, d1, d2) -> (d2, d0)>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<3xf32> {dist.sharding = #dist.sharding<@m, dims = [[]]>}, %arg1: tensor<15xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg2: tensor<11xi32> {dist.range = [0, 4], dist.sharding = #dist.sharding<@m, dims = [["a0"]]>}, %arg3: tensor<8x11xf32> {dist.sharding = #dist.sharding<@m, [replicate], priority = 2>}, %arg4: tensor<f32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %arg5: tensor<10x3xf32>, %arg6: tensor<10xf32> {dist.sharding = #dist.sharding<@m, dims = [[]], open = ["a0"]>}, %arg7: tensor<2x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg8: tensor<36x6xf32> {dist.sharding = #dist.sharding<@m, dims = [[], []], open = ["a0"]>}) -> (tensor<36x6xf32>, tensor<10x3xf32> {dist.feeds = 5 : i64, dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<8x11xf32> {dist.feeds = 3 : i64}) {
    %cst = arith.constant dense<[[-1.000000e+00, 8.750000e-01, -1.000000e+00, 5.000000e-01, -2.500000e-01, -5.000000e-01, 2.500000e-01, 1.000000e+00, 1.250000e-01, -6.250000e-01, 2.500000e-01], [5.000000e-01, 8.750000e-01, 2.500000e-01, -2.500000e-01, 1.250000e-01, 5.000000e-01, -1.250000e-01, 3.750000e-01, -8.750000e-01, 1.250000e-01, 0.000000e+00], [1.000000e+00, -5.000000e-01, 2.500000e-01, 2.500000e-01, -8.750000e-01, -8.750000e-01, 2.500000e-01, -6.250000e-01, -2.500000e-01, 2.500000e-01, 1.250000e-01], [1.250000e-01, 1.250000e-01, 2.500000e-01, 6.250000e-01, -6.250000e-01, -3.750000e-01, -7.500000e-01, 0.000000e+00, -5.000000e-01, 3.750000e-01, 6.250000e-01], [-7.500000e-01, -6.250000e-01, 6.250000e-01, -6.250000e-01, -1.250000e-01, 6.250000e-01, -7.500000e-01, 2.500000e-01, 6.250000e-01, 8.750000e-01, -1.000000e+00], [5.000000e-01, 7.500000e-01, 3.750000e-01, 5.000000e-01, -6.250000e-01, 3.750000e-01, -1.000000e+00, -2.500000e-01, 8.750000e-01, 1.250000e-01, -2.500000e-01], [-2.500000e-01, 8.750000e-01, -7.500000e-01, 2.500000e-01, -1.000000e+00, 6.250000e-01, 0.000000e+00, 7.500000e-01, -8.750000e-01, -1.250000e-01, 8.750000e-01], [1.250000e-01, -3.750000e-01, -6.250000e-01, 0.000000e+00, 2.500000e-01, -1.000000e+00, 6.250000e-01, -1.250000e-01, 7.500000e-01, -6.250000e-01, -7.500000e-01]]> : tensor<8x11xf32>
    %0 = tensor.empty() : tensor<8x11xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<8x11xf32>) outs(%0 : tensor<8x11xf32>) {
    ^bb0(%in: f32, %out: f32):
      %21 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %22 = arith.subi %21, %c2 : index
      %c3_7 = arith.constant 3 : index
      %23 = arith.cmpi ult, %22, %c3_7 : index
      %24 = scf.if %23 -> (f32) {
        %extracted_8 = tensor.extract %arg0[%22] : tensor<3xf32>
        scf.yield %extracted_8 : f32
      } else {
        scf.yield %in : f32
      }
      linalg.yield %24 : f32
    } -> tensor<8x11xf32>
    %expanded = tensor.expand_shape %1 [[0, 1], [2, 3, 4]] output_shape [4, 2, 11, 1, 1] : tensor<8x11xf32> into tensor<4x2x11x1x1xf32>
    %2 = arith.trunci %arg1 : tensor<15xi64> to tensor<15xi32>
    %c3 = arith.constant 3 : index
    %extracted = tensor.extract %arg2[%c3] : tensor<11xi32>
    %3 = arith.index_cast %extracted : i32 to index
    %c1 = arith.constant 1 : index
    %4 = arith.cmpi sgt, %3, %c1 : index
    %5 = scf.if %4 -> (tensor<3xf32>) {
      %concat = tensor.concat dim(1) %1, %arg3 : (tensor<8x11xf32>, tensor<8x11xf32>) -> tensor<8x22xf32>
      %cst_7 = arith.constant dense<[[6.250000e-01, -7.500000e-01, -1.250000e-01, -1.000000e+00, -1.250000e-01, -8.750000e-01, 3.750000e-01], [3.750000e-01, -6.250000e-01, -1.250000e-01, -2.500000e-01, 7.500000e-01, 7.500000e-01, -3.750000e-01], [-6.250000e-01, -3.750000e-01, -8.750000e-01, -5.000000e-01, -7.500000e-01, 1.000000e+00, 1.250000e-01]]> : tensor<3x7xf32>
      %21 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%cst_7 : tensor<3x7xf32>) outs(%arg0 : tensor<3xf32>) {
      ^bb0(%in: f32, %out: f32):
        %23 = arith.addf %out, %in : f32
        linalg.yield %23 : f32
      } -> tensor<3xf32>
      %cst_8 = arith.constant dense<5.000000e-01> : tensor<3xf32>
      %22 = arith.mulf %21, %cst_8 : tensor<3xf32>
      scf.yield %22 : tensor<3xf32>
    } else {
      %21 = tensor.empty() : tensor<3xf32>
      %22 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel"]} ins(%arg0, %arg4 : tensor<3xf32>, tensor<f32>) outs(%21 : tensor<3xf32>) {
      ^bb0(%in: f32, %in_7: f32, %out: f32):
        %24 = arith.maximumf %in, %in_7 : f32
        linalg.yield %24 : f32
      } -> tensor<3xf32>
      %23 = dist.shard_tensor %arg0, #dist.sharding<@m, [shard(0)]> : tensor<3xf32>
      scf.yield %23 : tensor<3xf32>
    }
    %6 = arith.extsi %2 : tensor<15xi32> to tensor<15xi64>
    %7 = tensor.empty() : tensor<10x3xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5, %arg0 : tensor<10x3xf32>, tensor<3xf32>) outs(%7 : tensor<10x3xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %21 = arith.subf %in, %in_7 : f32
      linalg.yield %21 : f32
    } -> tensor<10x3xf32>
    %9 = tensor.empty() : tensor<8x11xf32>
    %transposed = linalg.transpose ins(%arg3 : tensor<8x11xf32>) outs(%9 : tensor<8x11xf32>) permutation = [0, 1] 
    %10 = tensor.empty() : tensor<10xi32>
    %11 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%10 : tensor<10xi32>) {
    ^bb0(%out: i32):
      %21 = linalg.index 0 : index
      %22 = arith.index_cast %21 : index to i32
      linalg.yield %22 : i32
    } -> tensor<10xi32>
    %12:2 = ext.sort dim = 0 keys = 1 ins(%arg6, %11 : tensor<10xf32>, tensor<10xi32>)
    %cst_0 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_0 : tensor<10x3xf32>
    %13 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8, %12#1 : tensor<10x3xf32>, tensor<10xi32>) outs(%splat : tensor<10x3xf32>) {
    ^bb0(%in: f32, %in_7: i32, %out: f32):
      %21 = linalg.index 2 : index
      %22 = arith.index_cast %21 : index to i32
      %23 = arith.cmpi eq, %in_7, %22 : i32
      %cst_8 = arith.constant 0.000000e+00 : f32
      %24 = arith.select %23, %in, %cst_8 : f32
      %25 = arith.addf %out, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<10x3xf32>
    %14 = tensor.empty() : tensor<10x3xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<10x3xf32>) outs(%14 : tensor<10x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %21 = arith.negf %in : f32
      %22 = linalg.index 0 : index
      %23 = arith.index_cast %22 : index to i32
      %24 = arith.sitofp %23 : i32 to f32
      %25 = arith.addf %21, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<10x3xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %splat_2 = tensor.splat %cst_1 : tensor<10x3xf32>
    %16 = linalg.generic {indexing_maps = [#map5, #map8, #map7], iterator_types = ["parallel", "parallel", "reduction"]} ins(%15, %12#1 : tensor<10x3xf32>, tensor<10xi32>) outs(%splat_2 : tensor<10x3xf32>) {
    ^bb0(%in: f32, %in_7: i32, %out: f32):
      %21 = linalg.index 0 : index
      %22 = arith.index_cast %21 : index to i32
      %23 = arith.cmpi eq, %in_7, %22 : i32
      %cst_8 = arith.constant 0.000000e+00 : f32
      %24 = arith.select %23, %in, %cst_8 : f32
      %25 = arith.addf %out, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<10x3xf32>
    %cst_3 = arith.constant dense<[[2.500000e-01, 0.000000e+00, -2.500000e-01, -2.500000e-01, 7.500000e-01, -2.500000e-01, 6.250000e-01, 0.000000e+00, 8.750000e-01, -1.000000e+00, -7.500000e-01, -1.250000e-01, 0.000000e+00, -5.000000e-01, 6.250000e-01, 1.000000e+00, 5.000000e-01, 3.750000e-01, 1.000000e+00, 2.500000e-01, 3.750000e-01, -5.000000e-01, 3.750000e-01, 3.750000e-01, -2.500000e-01, -3.750000e-01, 0.000000e+00, 0.000000e+00, -2.500000e-01, -5.000000e-01, 8.750000e-01, -1.250000e-01, 6.250000e-01, 8.750000e-01, -6.250000e-01, 6.250000e-01], [5.000000e-01, 1.000000e+00, -8.750000e-01, -5.000000e-01, -6.250000e-01, -2.500000e-01, 1.000000e+00, -5.000000e-01, -8.750000e-01, 5.000000e-01, 3.750000e-01, -1.000000e+00, -6.250000e-01, 8.750000e-01, -2.500000e-01, -2.500000e-01, 8.750000e-01, -1.250000e-01, 1.000000e+00, -2.500000e-01, -8.750000e-01, 5.000000e-01, 5.000000e-01, -1.250000e-01, -8.750000e-01, -8.750000e-01, 3.750000e-01, 1.000000e+00, 5.000000e-01, -1.250000e-01, -1.000000e+00, 8.750000e-01, -8.750000e-01, -1.000000e+00, 6.250000e-01, 1.250000e-01]]> : tensor<2x36xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<36x6xf32>
    %17 = linalg.matmul indexing_maps = [#map9, #map5, #map7] ins(%cst_3, %arg7 : tensor<2x36xf32>, tensor<2x6xf32>) outs(%cst_4 : tensor<36x6xf32>) -> tensor<36x6xf32>
    %cst_5 = arith.constant dense<3.125000e-02> : tensor<36x6xf32>
    %18 = arith.mulf %17, %cst_5 : tensor<36x6xf32>
    %19 = arith.subf %arg8, %18 : tensor<36x6xf32>
    %cst_6 = arith.constant dense<5.000000e-01> : tensor<10x3xf32>
    %20 = arith.mulf %16, %cst_6 : tensor<10x3xf32>
    return %19, %20, %transposed : tensor<36x6xf32>, tensor<10x3xf32>, tensor<8x11xf32>
  }
}

