#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> ()>
#map5 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [1, 3, 3], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<f32> {dist.sharding = #dist.sharding<@m, dims = [], open = ["a0", "a2"]>}, %arg1: tensor<2x35xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0), ?]>}, %arg2: tensor<2x8xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a2"]], open = ["a1"]>}, %arg3: tensor<35x8xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a2"], []], open = ["a0"]>}, %arg4: tensor<14xf32>, %arg5: tensor<3x12x17xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0), shard(1)]>}, %arg6: tensor<2x17x1xi32> {dist.range = [-4, 5]}, %arg7: tensor<11x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [[], ["a2", "a0"]], open = ["a1"]>}, %arg8: tensor<11xi32> {dist.range = [0, 18]}) -> (tensor<70xf32> {dist.sharding = #dist.sharding<@m, [?, ?, replicate]>}) {
    %0 = math.fma %arg0, %arg0, %arg0 : tensor<f32>
    %1 = tensor.empty() : tensor<f32>
    %2 = linalg.exp ins(%arg0 : tensor<f32>) outs(%1 : tensor<f32>) -> tensor<f32>
    %cst = arith.constant 0.000000e+00 : f32
    %3 = tensor.empty() : tensor<35x8xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<35x8xf32>) -> tensor<35x8xf32>
    %5 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg1, %arg2 : tensor<2x35xf32>, tensor<2x8xf32>) outs(%4 : tensor<35x8xf32>) -> tensor<35x8xf32>
    %cst_0 = arith.constant dense<3.125000e-02> : tensor<35x8xf32>
    %6 = arith.mulf %5, %cst_0 : tensor<35x8xf32>
    %7 = arith.subf %arg3, %6 : tensor<35x8xf32>
    %padded = tensor.pad %arg1 low[0, 0] high[2, 0] {
    ^bb0(%arg9: index, %arg10: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %19 = arith.muli %arg9, %c1 : index
      %20 = arith.addi %c0, %19 : index
      %c2 = arith.constant 2 : index
      %21 = arith.muli %arg10, %c2 : index
      %22 = arith.addi %20, %21 : index
      %23 = arith.index_cast %22 : index to i32
      %24 = arith.sitofp %23 : i32 to f32
      tensor.yield %24 : f32
    } : tensor<2x35xf32> to tensor<4x35xf32>
    %cst_1 = arith.constant dense<3.125000e-02> : tensor<4x35xf32>
    %8 = arith.mulf %padded, %cst_1 : tensor<4x35xf32>
    %9 = tensor.empty() : tensor<2x35xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg0 : tensor<2x35xf32>, tensor<f32>) outs(%9 : tensor<2x35xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.minimumf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<2x35xf32>
    %11 = tensor.empty() : tensor<2x35xf32>
    %12 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<2x35xf32>) outs(%11 : tensor<2x35xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = linalg.index 1 : index
      %c1 = arith.constant 1 : index
      %20 = arith.subi %19, %c1 : index
      %c14 = arith.constant 14 : index
      %21 = arith.cmpi ult, %20, %c14 : index
      %22 = scf.if %21 -> (f32) {
        %extracted = tensor.extract %arg4[%20] : tensor<14xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %in : f32
      }
      linalg.yield %22 : f32
    } -> tensor<2x35xf32>
    %cst_2 = arith.constant dense<0> : tensor<3x11x1xi32>
    %13 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%arg5, %arg6 : tensor<3x12x17xi32>, tensor<2x17x1xi32>) outs(%cst_2 : tensor<3x11x1xi32>) -> tensor<3x11x1xi32>
    %14 = dist.shard_tensor %12, #dist.sharding<@m, dims = [["a1", "a0"], []], open = ["a2"]> : tensor<2x35xf32>
    %cst_3 = arith.constant dense<[[7.500000e-01, -8.750000e-01, 7.500000e-01, -1.250000e-01, -1.250000e-01, 3.750000e-01, -2.500000e-01, -8.750000e-01, 3.750000e-01, 1.250000e-01, -5.000000e-01, -2.500000e-01, -7.500000e-01, 6.250000e-01, -8.750000e-01, -7.500000e-01, -3.750000e-01, -1.000000e+00, -5.000000e-01, 1.250000e-01, -1.000000e+00, 3.750000e-01, -8.750000e-01, -3.750000e-01, -1.250000e-01, 8.750000e-01, -3.750000e-01, 7.500000e-01, -2.500000e-01, 7.500000e-01, 1.000000e+00, -7.500000e-01, 2.500000e-01, 7.500000e-01, -6.250000e-01], [6.250000e-01, 6.250000e-01, 1.250000e-01, 6.250000e-01, 5.000000e-01, 8.750000e-01, -5.000000e-01, 1.250000e-01, -8.750000e-01, 2.500000e-01, -1.250000e-01, -1.000000e+00, 0.000000e+00, -7.500000e-01, 1.000000e+00, -6.250000e-01, 7.500000e-01, 8.750000e-01, -1.000000e+00, -8.750000e-01, 1.000000e+00, 2.500000e-01, -3.750000e-01, -5.000000e-01, -2.500000e-01, 1.000000e+00, 7.500000e-01, 1.000000e+00, 8.750000e-01, 1.250000e-01, -1.250000e-01, -5.000000e-01, 3.750000e-01, 6.250000e-01, -7.500000e-01]]> : tensor<2x35xf32>
    %15 = arith.mulf %14, %cst_3 : tensor<2x35xf32>
    %16 = tensor.empty() : tensor<18x11xi32>
    %17 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg8 : tensor<11xi32>) outs(%16 : tensor<18x11xi32>) {
    ^bb0(%in: i32, %out: i32):
      %19 = linalg.index 0 : index
      %20 = arith.index_cast %19 : index to i32
      %21 = arith.cmpi eq, %in, %20 : i32
      %22 = arith.extui %21 : i1 to i32
      linalg.yield %22 : i32
    } -> tensor<18x11xi32>
    %cst_4 = arith.constant dense<0> : tensor<18x4xi32>
    %18 = linalg.matmul ins(%17, %arg7 : tensor<18x11xi32>, tensor<11x4xi32>) outs(%cst_4 : tensor<18x4xi32>) -> tensor<18x4xi32>
    %collapsed = tensor.collapse_shape %14 [[0, 1]] : tensor<2x35xf32> into tensor<70xf32>
    return %collapsed : tensor<70xf32>
  }
}

