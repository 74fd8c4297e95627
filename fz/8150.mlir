#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d2)>
#map6 = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
#map7 = affine_map<(d0, d1) -> ()>
#map8 = affine_map<(d0, d1) -> (d1, d0)>
module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<13xi64> {dist.range = [-4, 5]}, %arg1: tensor<11x1xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg2: tensor<15x17xf32>, %arg3: tensor<6x15x17xf32>) -> (tensor<13xi64>, tensor<13xi64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
    %cst = arith.constant dense<[[2], [5], [12], [7], [6], [11], [1], [10], [9], [4], [0]]> : tensor<11x1xindex>
    %scatter = tensor.scatter %arg1 into %arg0[%cst] scatter_dims([0]) unique : (tensor<11x1xi64>, tensor<13xi64>, tensor<11x1xindex>) -> tensor<13xi64>
    %0 = ext.scan dim = 1 reverse ins(%arg1 : tensor<11x1xi64>) {
    ^bb0(%arg4: i64, %arg5: i64):
      %9 = arith.maxsi %arg4, %arg5 : i64
      ext.yield %9 : i64
    }
    %cst_0 = arith.constant dense<[-2.500000e-01, -1.000000e+00, -5.000000e-01, 2.500000e-01, -6.250000e-01, -2.500000e-01, -1.250000e-01, 7.500000e-01, 8.750000e-01, -6.250000e-01, -1.250000e-01, -1.000000e+00, 2.500000e-01, -7.500000e-01, 1.000000e+00]> : tensor<15xf32>
    %1 = tensor.empty() : tensor<15xi32>
    %2 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%1 : tensor<15xi32>) {
    ^bb0(%out: i32):
      %9 = linalg.index 0 : index
      %10 = arith.index_cast %9 : index to i32
      linalg.yield %10 : i32
    } -> tensor<15xi32>
    %3:2 = ext.sort dim = 0 keys = 1 ins(%cst_0, %2 : tensor<15xf32>, tensor<15xi32>)
    %cst_1 = arith.constant 0.000000e+00 : f32
    %splat = tensor.splat %cst_1 : tensor<15x17xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg2, %3#1 : tensor<15x17xf32>, tensor<15xi32>) outs(%splat : tensor<15x17xf32>) {
    ^bb0(%in: f32, %in_5: i32, %out: f32):
      %9 = linalg.index 2 : index
      %10 = arith.index_cast %9 : index to i32
      %11 = arith.cmpi eq, %in_5, %10 : i32
      %cst_6 = arith.constant 0.000000e+00 : f32
      %12 = arith.select %11, %in, %cst_6 : f32
      %13 = arith.addf %out, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<15x17xf32>
    %5 = tensor.empty() : tensor<15x17xf32>
    %6 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<15x17xf32>) outs(%5 : tensor<15x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.negf %in : f32
      linalg.yield %9 : f32
    } -> tensor<15x17xf32>
    %cst_2 = arith.constant 0.000000e+00 : f32
    %splat_3 = tensor.splat %cst_2 : tensor<15x17xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map5, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6, %3#1 : tensor<15x17xf32>, tensor<15xi32>) outs(%splat_3 : tensor<15x17xf32>) {
    ^bb0(%in: f32, %in_5: i32, %out: f32):
      %9 = linalg.index 0 : index
      %10 = arith.index_cast %9 : index to i32
      %11 = arith.cmpi eq, %in_5, %10 : i32
      %cst_6 = arith.constant 0.000000e+00 : f32
      %12 = arith.select %11, %in, %cst_6 : f32
      %13 = arith.addf %out, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<15x17xf32>
    %c1 = arith.constant 1 : index
    %c1_4 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %8 = scf.for %arg4 = %c1 to %c1_4 step %c2 iter_args(%arg5 = %arg0) -> (tensor<13xi64>) {
      %cst_5 = arith.constant 0.000000e+00 : f32
      %9 = tensor.empty() : tensor<6xf32>
      %10 = linalg.fill ins(%cst_5 : f32) outs(%9 : tensor<6xf32>) -> tensor<6xf32>
      %11 = linalg.generic {indexing_maps = [#map3, #map6, #map5], iterator_types = ["reduction", "reduction", "parallel"]} ins(%7, %arg3 : tensor<15x17xf32>, tensor<6x15x17xf32>) outs(%10 : tensor<6xf32>) {
      ^bb0(%in: f32, %in_9: f32, %out: f32):
        %20 = arith.mulf %in, %in_9 : f32
        %21 = arith.addf %out, %20 : f32
        linalg.yield %21 : f32
      } -> tensor<6xf32>
      %cst_6 = arith.constant 1.562500e-02 : f32
      %splat_7 = tensor.splat %cst_6 : tensor<6xf32>
      %12 = arith.mulf %11, %splat_7 : tensor<6xf32>
      %13 = dist.shard_tensor %0, #dist.sharding<@m, [replicate]> : tensor<11x1xi64>
      %14 = tensor.empty() : tensor<13xi64>
      %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg5 : tensor<13xi64>) outs(%14 : tensor<13xi64>) {
      ^bb0(%in: i64, %out: i64):
        %c0_i64_9 = arith.constant 0 : i64
        %c12_i64 = arith.constant 12 : i64
        %20 = arith.cmpi ne, %in, %c0_i64_9 : i64
        %21 = scf.if %20 -> (i64) {
          %22 = arith.divsi %c12_i64, %in : i64
          scf.yield %22 : i64
        } else {
          scf.yield %c0_i64_9 : i64
        }
        linalg.yield %21 : i64
      } -> tensor<13xi64>
      %16 = dist.reshard %13 to #dist.sharding<@m, dims = [[], ["a0"]]> : tensor<11x1xi64>
      %cst_8 = arith.constant dense<1> : tensor<i64>
      %c0_i64 = arith.constant 0 : i64
      %17 = tensor.empty() : tensor<1x11xi64>
      %18 = linalg.fill ins(%c0_i64 : i64) outs(%17 : tensor<1x11xi64>) -> tensor<1x11xi64>
      %19 = linalg.generic {indexing_maps = [#map4, #map7, #map8], iterator_types = ["parallel", "parallel"]} ins(%16, %cst_8 : tensor<11x1xi64>, tensor<i64>) outs(%18 : tensor<1x11xi64>) {
      ^bb0(%in: i64, %in_9: i64, %out: i64):
        %20 = arith.muli %in, %in_9 : i64
        %21 = arith.addi %out, %20 : i64
        linalg.yield %21 : i64
      } -> tensor<1x11xi64>
      scf.yield %15 : tensor<13xi64>
    }
    return %8, %scatter : tensor<13xi64>, tensor<13xi64>
  }
}

