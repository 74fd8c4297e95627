#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> ()>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [3, 3], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<17xf32>, %arg1: tensor<9x15xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1"], []]>}, %arg2: tensor<9x13xf64>, %arg3: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}) -> (tensor<4xf32>, tensor<9x13xf64>, tensor<11x15xf64>, tensor<15xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}) {
    %cst = arith.constant 2.000000e+00 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]} ins(%arg0, %arg0 : tensor<17xf32>, tensor<17xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %15 = arith.mulf %in, %in_4 : f32
      %16 = arith.addf %out, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<f32>
    %cst_0 = arith.constant dense<1.250000e-01> : tensor<f32>
    %3 = arith.mulf %2, %cst_0 : tensor<f32>
    %4 = tensor.empty() : tensor<9x15xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<9x15xf32>) outs(%4 : tensor<9x15xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = linalg.index 0 : index
      %16 = linalg.index 1 : index
      %c-1 = arith.constant -1 : index
      %17 = arith.addi %16, %c-1 : index
      %18 = arith.cmpi sge, %15, %17 : index
      %cst_4 = arith.constant 0.000000e+00 : f32
      %19 = arith.select %18, %in, %cst_4 : f32
      linalg.yield %19 : f32
    } -> tensor<9x15xf32>
    %cst_1 = arith.constant 0x7F800000 : f32
    %6 = tensor.empty() : tensor<f32>
    %7 = linalg.fill ins(%cst_1 : f32) outs(%6 : tensor<f32>) -> tensor<f32>
    %8 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["reduction", "reduction"]} ins(%arg1 : tensor<9x15xf32>) outs(%7 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.minimumf %in, %out : f32
      linalg.yield %15 : f32
    } -> tensor<f32>
    %cst_2 = arith.constant 0.000000e+00 : f32
    %9 = tensor.empty() : tensor<15xf32>
    %10 = linalg.fill ins(%cst_2 : f32) outs(%9 : tensor<15xf32>) -> tensor<15xf32>
    %11 = linalg.generic {indexing_maps = [#map2, #map2, #map4], iterator_types = ["reduction", "parallel"]} ins(%arg1, %5 : tensor<9x15xf32>, tensor<9x15xf32>) outs(%10 : tensor<15xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %15 = arith.subf %in, %in_4 : f32
      %16 = arith.addf %15, %out : f32
      linalg.yield %16 : f32
    } -> tensor<15xf32>
    %cst_3 = arith.constant dense<6.250000e-02> : tensor<15xf32>
    %12 = arith.mulf %11, %cst_3 : tensor<15xf32>
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %extracted = tensor.extract %arg2[%c2, %c7] : tensor<9x13xf64>
    %13 = arith.addf %extracted, %extracted : f64
    %splat = tensor.splat %13 : tensor<11x15xf64>
    %14 = dist.shard_tensor %arg2, #dist.sharding<@m, [shard(-2), replicate]> : tensor<9x13xf64>
    %padded = tensor.pad %arg3 low[0] high[0] {
    ^bb0(%arg4: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %15 = arith.muli %arg4, %c1 : index
      %16 = arith.addi %c0, %15 : index
      %17 = arith.index_cast %16 : index to i32
      %18 = arith.sitofp %17 : i32 to f32
      tensor.yield %18 : f32
    } : tensor<4xf32> to tensor<4xf32>
    return %padded, %14, %splat, %12 : tensor<4xf32>, tensor<9x13xf64>, tensor<11x15xf64>, tensor<15xf32>
  }
}

