#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [3, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<2xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a1", "a2", "a0"]], priority = 1>}, %arg1: tensor<1x13x1xbf16>, %arg2: tensor<14xbf16> {dist.sharding = #dist.sharding<@m, dims = [["a0"]], open = ["a1", "a2"]>}, %arg3: tensor<13x13xf32>, %arg4: tensor<13x10xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg5: tensor<10xbf16> {dist.sharding = #dist.sharding<@m, [shard(0), replicate, shard(0)]>}, %arg6: tensor<6x9x12xbf16> {dist.sharding = #dist.sharding<@m, [?, shard(-1), shard(0)], priority = 1>}, %arg7: tensor<6x12x6xbf16> {dist.sharding = #dist.sharding<@m, [shard(2), replicate, replicate]>}) -> tensor<5x16x3xbf16> {
    %cst = arith.constant dense<[2, -1]> : tensor<2xi32>
    %0 = tensor.empty() : tensor<2xi32>
    %1 = tensor.empty() : tensor<2xi32>
    %2:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]} ins(%cst, %arg0 : tensor<2xi32>, tensor<2xi32>) outs(%0, %1 : tensor<2xi32>, tensor<2xi32>) {
    ^bb0(%in: i32, %in_4: i32, %out: i32, %out_5: i32):
      %19 = arith.addi %in, %in_4 : i32
      %20 = arith.maxsi %in, %in_4 : i32
      linalg.yield %19, %20 : i32, i32
    } -> (tensor<2xi32>, tensor<2xi32>)
    %3 = tensor.empty() : tensor<1x13x1xbf16>
    %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x13x1xbf16>) outs(%3 : tensor<1x13x1xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %19 = linalg.index 1 : index
      %c2 = arith.constant 2 : index
      %20 = arith.subi %19, %c2 : index
      %c14 = arith.constant 14 : index
      %21 = arith.cmpi ult, %20, %c14 : index
      %22 = scf.if %21 -> (bf16) {
        %extracted = tensor.extract %arg2[%20] : tensor<14xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %in : bf16
      }
      linalg.yield %22 : bf16
    } -> tensor<1x13x1xbf16>
    %c0_i32 = arith.constant 0 : i32
    %padded = tensor.pad %2#0 low[2] high[3] {
    ^bb0(%arg8: index):
      tensor.yield %c0_i32 : i32
    } : tensor<2xi32> to tensor<7xi32>
    %5 = dist.shard_tensor %4, #dist.sharding<@m, [shard(0), shard(0), shard(1)]> : tensor<1x13x1xbf16>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %6 = tensor.empty() : tensor<13x10xf32>
    %7 = linalg.fill ins(%cst_0 : f32) outs(%6 : tensor<13x10xf32>) -> tensor<13x10xf32>
    %8 = linalg.matmul ins(%arg3, %arg4 : tensor<13x13xf32>, tensor<13x10xf32>) outs(%7 : tensor<13x10xf32>) -> tensor<13x10xf32>
    %9 = tensor.empty() : tensor<1x13x1xbf16>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<1x13x1xbf16>) outs(%9 : tensor<1x13x1xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %19 = linalg.index 0 : index
      %c2 = arith.constant 2 : index
      %20 = arith.subi %19, %c2 : index
      %c10 = arith.constant 10 : index
      %21 = arith.cmpi ult, %20, %c10 : index
      %22 = scf.if %21 -> (bf16) {
        %extracted = tensor.extract %arg5[%20] : tensor<10xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %in : bf16
      }
      linalg.yield %22 : bf16
    } -> tensor<1x13x1xbf16>
    %11 = dist.shard_tensor %4, #dist.sharding<@m, dims = [[], ["a2"], []], open = ["a0"]> : tensor<1x13x1xbf16>
    %12 = arith.maximumf %10, %4 : tensor<1x13x1xbf16>
    %13 = dist.shard_tensor %12, #dist.sharding<@m, [shard(1), shard(2, order = 0), shard(2, order = 1)]> : tensor<1x13x1xbf16>
    %cst_1 = arith.constant 2.000000e+00 : bf16
    %14 = tensor.empty() : tensor<6x9x6xbf16>
    %15 = linalg.fill ins(%cst_1 : bf16) outs(%14 : tensor<6x9x6xbf16>) -> tensor<6x9x6xbf16>
    %16 = linalg.batch_matmul ins(%arg6, %arg7 : tensor<6x9x12xbf16>, tensor<6x12x6xbf16>) outs(%15 : tensor<6x9x6xbf16>) -> tensor<6x9x6xbf16>
    %17 = dist.shard_tensor %13, #dist.sharding<@m, dims = [["a1"], ["a0"], []]> : tensor<1x13x1xbf16>
    %padded_2 = tensor.pad %13 low[1, 2, 2] high[3, 1, 0] {
    ^bb0(%arg8: index, %arg9: index, %arg10: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %19 = arith.muli %arg8, %c1 : index
      %20 = arith.addi %c0, %19 : index
      %c2 = arith.constant 2 : index
      %21 = arith.muli %arg9, %c2 : index
      %22 = arith.addi %20, %21 : index
      %c3 = arith.constant 3 : index
      %23 = arith.muli %arg10, %c3 : index
      %24 = arith.addi %22, %23 : index
      %25 = arith.index_cast %24 : index to i32
      %26 = arith.sitofp %25 : i32 to bf16
      tensor.yield %26 : bf16
    } : tensor<1x13x1xbf16> to tensor<5x16x3xbf16>
    %cst_3 = arith.constant dense<6.250000e-02> : tensor<5x16x3xbf16>
    %18 = arith.mulf %padded_2, %cst_3 : tensor<5x16x3xbf16>
    return %18 : tensor<5x16x3xbf16>
  }
}

