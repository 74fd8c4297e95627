#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map3 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0, d1 * 3)>
module {
  dist.process_mesh @m(shape = [3, 4, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<1x17x14x2xi64> {dist.range = [-4, 5]}, %arg1: tensor<12x7xf32>, %arg2: tensor<7x16xf32>, %arg3: tensor<12x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(1), replicate]>}, %arg4: tensor<3x12xf32>, %arg5: tensor<12x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), ?, replicate]>}, %arg6: tensor<7xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, shard(0), replicate], priority = 1>}) -> tensor<5x12x16x3xf32> {
    %c2147483647_i64 = arith.constant 2147483647 : i64
    %0 = tensor.empty() : tensor<1x16x7x2xi64>
    %1 = linalg.fill ins(%c2147483647_i64 : i64) outs(%0 : tensor<1x16x7x2xi64>) -> tensor<1x16x7x2xi64>
    %2 = tensor.empty() : tensor<2x2xi64>
    %3 = linalg.pooling_nhwc_min {dilations = dense<1> : tensor<2xi64>, strides = dense<[1, 2]> : tensor<2xi64>} ins(%arg0, %2 : tensor<1x17x14x2xi64>, tensor<2x2xi64>) outs(%1 : tensor<1x16x7x2xi64>) -> tensor<1x16x7x2xi64>
    %4 = dist.shard_tensor %arg0, #dist.sharding<@m, dims = [["a2", "a1":(2)2], ["a1":(1)2], [], []], open = ["a0"]> : tensor<1x17x14x2xi64>
    %c0_i64 = arith.constant 0 : i64
    %splat = tensor.splat %c0_i64 : tensor<16x7xi64>
    %reduced = linalg.reduce ins(%3 : tensor<1x16x7x2xi64>) outs(%splat : tensor<16x7xi64>) dimensions = [0, 3] 
      (%in: i64, %init: i64) {
        %16 = arith.addi %in, %init : i64
        linalg.yield %16 : i64
      }
    %5 = dist.shard_tensor %reduced, #dist.sharding<@m, [shard(1)]> : tensor<16x7xi64>
    %6 = ext.scan dim = 1 ins(%5 : tensor<16x7xi64>) {
    ^bb0(%arg7: i64, %arg8: i64):
      ext.yield %arg8 : i64
    }
    %7 = linalg.matmul ins(%arg1, %arg2 : tensor<12x7xf32>, tensor<7x16xf32>) outs(%arg3 : tensor<12x16xf32>) -> tensor<12x16xf32>
    %8 = dist.shard_tensor %7, #dist.sharding<@m, [shard(0), replicate]> : tensor<12x16xf32>
    %cst = arith.constant 5.000000e-01 : f32
    %splat_0 = tensor.splat %cst : tensor<12x16xf32>
    %9 = arith.mulf %8, %splat_0 : tensor<12x16xf32>
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c2_1 = arith.constant 2 : index
    %10 = scf.for %arg7 = %c2 to %c8 step %c2_1 iter_args(%arg8 = %9) -> (tensor<12x16xf32>) {
      %cst_4 = arith.constant 0.000000e+00 : f32
      %16 = tensor.empty() : tensor<12xf32>
      %17 = linalg.fill ins(%cst_4 : f32) outs(%16 : tensor<12xf32>) -> tensor<12xf32>
      %18 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7, %7 : tensor<12x16xf32>, tensor<12x16xf32>) outs(%17 : tensor<12xf32>) {
      ^bb0(%in: f32, %in_9: f32, %out: f32):
        %24 = arith.subf %in, %in_9 : f32
        %25 = arith.mulf %24, %24 : f32
        %26 = arith.addf %25, %out : f32
        linalg.yield %26 : f32
      } -> tensor<12xf32>
      %cst_5 = arith.constant 9.765625E-4 : f32
      %splat_6 = tensor.splat %cst_5 : tensor<12xf32>
      %19 = arith.mulf %18, %splat_6 : tensor<12xf32>
      %20 = math.erf %arg8 : tensor<12x16xf32>
      %cst_7 = arith.constant dense<2.000000e+00> : tensor<16x3xf32>
      %21 = linalg.matmul indexing_maps = [#map2, #map3, #map4] ins(%20, %arg4 : tensor<12x16xf32>, tensor<3x12xf32>) outs(%cst_7 : tensor<16x3xf32>) -> tensor<16x3xf32>
      %22 = arith.addf %arg8, %20 : tensor<12x16xf32>
      %cst_8 = arith.constant dense<5.000000e-01> : tensor<12x16xf32>
      %23 = arith.mulf %22, %cst_8 : tensor<12x16xf32>
      scf.yield %23 : tensor<12x16xf32>
    }
    %11 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel"]} ins(%arg5 : tensor<12x6xf32>) outs(%10 : tensor<12x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.addf %out, %in : f32
      linalg.yield %16 : f32
    } -> tensor<12x16xf32>
    %12 = tensor.empty() : tensor<12x16xf32>
    %13 = linalg.softmax dimension(0) ins(%11 : tensor<12x16xf32>) outs(%12 : tensor<12x16xf32>) -> tensor<12x16xf32>
    %c0_i64_2 = arith.constant 0 : i64
    %splat_3 = tensor.splat %c0_i64_2 : tensor<16xi64>
    %14 = linalg.matvec ins(%reduced, %arg6 : tensor<16x7xi64>, tensor<7xi64>) outs(%splat_3 : tensor<16xi64>) -> tensor<16xi64>
    %15 = tensor.empty() : tensor<5x12x16x3xf32>
    %broadcasted = linalg.broadcast ins(%8 : tensor<12x16xf32>) outs(%15 : tensor<5x12x16x3xf32>) dimensions = [0, 3] 
    return %broadcasted : tensor<5x12x16x3xf32>
  }
}

