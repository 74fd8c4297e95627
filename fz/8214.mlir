#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map4 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2) -> (d2, d1, d0)>
module {
  dist.process_mesh @m(shape = [5], dim_names = ["a0"])
  func.func @main(%arg0: tensor<10xf32> {dist.sharding = #dist.sharding<@m, [?]>}, %arg1: tensor<f32>, %arg2: tensor<2x38xf32>, %arg3: tensor<2x5xf32>, %arg4: tensor<38x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], []]>}, %arg5: tensor<5xf32>, %arg6: tensor<15x11x3xf32> {dist.sharding = #dist.sharding<@m, [partial(max)], priority = 1>}, %arg7: tensor<1x3x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %arg8: tensor<15x11x3xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg9: tensor<i64> {dist.range = [-2, 17], dist.sharding = #dist.sharding<@m, dims = [], partial = [max("a0")]>}, %arg10: tensor<i64> {dist.range = [-2, 5], dist.sharding = #dist.sharding<@m, dims = []>}) -> (tensor<10x11x2xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<3x11x15xf32>, tensor<15x11x3xf32> {dist.feeds = 6 : i64}) {
    %cst = arith.constant dense<0.000000e+00> : tensor<10xf32>
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel"]} ins(%arg0, %arg1 : tensor<10xf32>, tensor<f32>) outs(%cst : tensor<10xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %20 = arith.mulf %in, %in_6 : f32
      %21 = arith.addf %out, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<10xf32>
    %1 = dist.reshard %0 to #dist.sharding<@m, [shard(0)]> : tensor<10xf32>
    %2 = tensor.empty() : tensor<14x8xi32>
    %3 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel", "parallel"]} outs(%2 : tensor<14x8xi32>) {
    ^bb0(%out: i32):
      %c1 = arith.constant 1 : index
      %20 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %21 = arith.muli %c1, %c2 : index
      %22 = arith.addi %21, %20 : index
      %23 = linalg.index 1 : index
      %c2_6 = arith.constant 2 : index
      %24 = arith.muli %22, %c2_6 : index
      %25 = arith.addi %24, %23 : index
      %26 = arith.index_cast %25 : index to i32
      linalg.yield %26 : i32
    } -> tensor<14x8xi32>
    %4 = arith.subf %1, %arg0 : tensor<10xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %5 = tensor.empty() : tensor<38x5xf32>
    %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<38x5xf32>) -> tensor<38x5xf32>
    %7 = linalg.matmul indexing_maps = [#map3, #map4, #map5] ins(%arg2, %arg3 : tensor<2x38xf32>, tensor<2x5xf32>) outs(%6 : tensor<38x5xf32>) -> tensor<38x5xf32>
    %cst_1 = arith.constant dense<3.125000e-02> : tensor<38x5xf32>
    %8 = arith.mulf %7, %cst_1 : tensor<38x5xf32>
    %9 = arith.subf %arg4, %8 : tensor<38x5xf32>
    %cst_2 = arith.constant 0.000000e+00 : f32
    %10 = tensor.empty() : tensor<38xf32>
    %11 = linalg.fill ins(%cst_2 : f32) outs(%10 : tensor<38xf32>) -> tensor<38xf32>
    %12 = linalg.matvec ins(%9, %arg5 : tensor<38x5xf32>, tensor<5xf32>) outs(%11 : tensor<38xf32>) -> tensor<38xf32>
    %cst_3 = arith.constant dense<2.000000e+00> : tensor<15x11x3xf32>
    %13 = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins(%arg6, %arg7 : tensor<15x11x3xf32>, tensor<1x3x3xf32>) outs(%cst_3 : tensor<15x11x3xf32>) -> tensor<15x11x3xf32>
    %14 = tensor.empty() : tensor<15x11x3xf32>
    %15 = tensor.empty() : tensor<3x11x15xf32>
    %16:2 = linalg.generic {indexing_maps = [#map6, #map6, #map6, #map7], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %arg8 : tensor<15x11x3xf32>, tensor<15x11x3xf32>) outs(%14, %15 : tensor<15x11x3xf32>, tensor<3x11x15xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32, %out_7: f32):
      %20 = arith.addf %in, %in_6 : f32
      %21 = arith.maximumf %in, %in_6 : f32
      linalg.yield %20, %21 : f32, f32
    } -> (tensor<15x11x3xf32>, tensor<3x11x15xf32>)
    %extracted = tensor.extract %arg9[] : tensor<i64>
    %17 = arith.index_cast %extracted : i64 to index
    %extracted_4 = tensor.extract %arg10[] : tensor<i64>
    %18 = arith.index_cast %extracted_4 : i64 to index
    %extracted_slice = tensor.extract_slice %16#0[%17, 0, %18] [10, 11, 2] [1, 1, 1] : tensor<15x11x3xf32> to tensor<10x11x2xf32>
    %cst_5 = arith.constant dense<1.250000e-01> : tensor<15x11x3xf32>
    %19 = arith.mulf %13, %cst_5 : tensor<15x11x3xf32>
    return %extracted_slice, %16#1, %19 : tensor<10x11x2xf32>, tensor<3x11x15xf32>, tensor<15x11x3xf32>
  }
}

