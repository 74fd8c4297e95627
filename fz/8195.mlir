#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 * 2 + d3 * 2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [6, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg1: tensor<4x4x5xf64> {dist.sharding = #dist.sharding<@m, [shard(2), shard(-3)]>}, %arg2: tensor<2xf64> {dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"]]>}, %arg3: tensor<13x16x1xi32> {dist.range = [-4, 5]}, %arg4: tensor<14xi64> {dist.range = [0, 2], dist.sharding = #dist.sharding<@m, [replicate, replicate]>}, %arg5: tensor<14x13xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(1), shard(1)]>}) -> (tensor<8x9x8xi64>, tensor<i32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) {
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c2 = arith.constant 2 : index
    %0 = scf.for %arg6 = %c1 to %c5 step %c2 iter_args(%arg7 = %arg0) -> (tensor<i32>) {
      %cst_3 = arith.constant dense<3> : tensor<i32>
      %13 = arith.subi %cst_3, %arg0 : tensor<i32>
      %14 = dist.shard_tensor %arg7, #dist.sharding<@m, [replicate, replicate]> : tensor<i32>
      %cst_4 = arith.constant dense<0.000000e+00> : tensor<4x4x2xf64>
      %15 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg1, %arg2 : tensor<4x4x5xf64>, tensor<2xf64>) outs(%cst_4 : tensor<4x4x2xf64>) {
      ^bb0(%in: f64, %in_5: f64, %out: f64):
        %17 = arith.mulf %in, %in_5 : f64
        %18 = arith.addf %17, %out : f64
        linalg.yield %18 : f64
      } -> tensor<4x4x2xf64>
      %c3_i32 = arith.constant 3 : i32
      %splat = tensor.splat %c3_i32 : tensor<13x16x1xi32>
      %16 = arith.muli %arg3, %splat : tensor<13x16x1xi32>
      scf.yield %14 : tensor<i32>
    }
    %1 = arith.addi %arg0, %0 : tensor<i32>
    %2 = tensor.empty() : tensor<14xf64>
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%arg4 : tensor<14xi64>) outs(%2 : tensor<14xf64>) {
    ^bb0(%in: i64, %out: f64):
      %13 = arith.index_cast %in : i64 to index
      %extracted_3 = tensor.extract %arg2[%13] : tensor<2xf64>
      linalg.yield %extracted_3 : f64
    } -> tensor<14xf64>
    %4 = ext.scan dim = 0 reverse ins(%3 : tensor<14xf64>) {
    ^bb0(%arg6: f64, %arg7: f64):
      %13 = arith.maximumf %arg6, %arg7 : f64
      ext.yield %13 : f64
    }
    %cst = arith.constant 0.000000e+00 : f64
    %padded = tensor.pad %3 low[0] high[1] {
    ^bb0(%arg6: index):
      tensor.yield %cst : f64
    } : tensor<14xf64> to tensor<15xf64>
    %5 = tensor.empty() : tensor<14xi64>
    %6 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%5 : tensor<14xi64>) {
    ^bb0(%out: i64):
      %13 = linalg.index 0 : index
      %c13 = arith.constant 13 : index
      %14 = arith.subi %c13, %13 : index
      %extracted_3 = tensor.extract %arg4[%14] : tensor<14xi64>
      linalg.yield %extracted_3 : i64
    } -> tensor<14xi64>
    %7 = dist.shard_tensor %6, #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]> : tensor<14xi64>
    %c0_i64 = arith.constant 0 : i64
    %padded_0 = tensor.pad %6 low[0] high[0] {
    ^bb0(%arg6: index):
      tensor.yield %c0_i64 : i64
    } : tensor<14xi64> to tensor<14xi64>
    %cst_1 = arith.constant dense<[2, 0, 1, 1, 3, 0, 0, 1, 2, 2, 2, 3, 0, 3, 2]> : tensor<15xi32>
    %c0 = arith.constant 0 : index
    %extracted = tensor.extract %cst_1[%c0] : tensor<15xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %c1_2 = arith.constant 1 : index
    %9 = arith.cmpi sgt, %8, %c1_2 : index
    %10:2 = scf.if %9 -> (tensor<14xi64>, tensor<i32>) {
      %13 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "reduction"]} ins(%arg5 : tensor<14x13xi64>) outs(%7 : tensor<14xi64>) {
      ^bb0(%in: i64, %out: i64):
        %14 = arith.addi %out, %in : i64
        linalg.yield %14 : i64
      } -> tensor<14xi64>
      scf.yield %13, %1 : tensor<14xi64>, tensor<i32>
    } else {
      scf.yield %7, %1 : tensor<14xi64>, tensor<i32>
    }
    %11 = tensor.empty() : tensor<8x9x8xi64>
    %12 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel", "parallel", "parallel"]} outs(%11 : tensor<8x9x8xi64>) {
    ^bb0(%out: i64):
      %c1_3 = arith.constant 1 : index
      %13 = linalg.index 0 : index
      %c2_4 = arith.constant 2 : index
      %14 = arith.muli %c1_3, %c2_4 : index
      %15 = arith.addi %14, %13 : index
      %16 = linalg.index 1 : index
      %c2_5 = arith.constant 2 : index
      %17 = arith.muli %15, %c2_5 : index
      %18 = arith.addi %17, %16 : index
      %19 = linalg.index 2 : index
      %c2_6 = arith.constant 2 : index
      %20 = arith.muli %18, %c2_6 : index
      %21 = arith.addi %20, %19 : index
      %22 = arith.index_cast %21 : index to i64
      linalg.yield %22 : i64
    } -> tensor<8x9x8xi64>
    return %12, %10#1 : tensor<8x9x8xi64>, tensor<i32>
  }
}

