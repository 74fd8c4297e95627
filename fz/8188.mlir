#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  dist.process_mesh @m(shape = [8], dim_names = ["a0"])
  func.func @main(%arg0: tensor<16x7x6xf32>, %arg1: tensor<6x1x6xf32>, %arg2: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg3: tensor<1x4x1xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg4: tensor<8xi64> {dist.range = [-1, 16], dist.sharding = #dist.sharding<@m, dims = [["a0":(1)2]]>}) -> (tensor<15xf32>, tensor<16x7x6xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, tensor<16x7x6xf32>, tensor<i64>, tensor<8xi64>) {
    %0 = ext.scan dim = 0 ins(%arg0 : tensor<16x7x6xf32>) {
    ^bb0(%arg5: f32, %arg6: f32):
      %7 = arith.maximumf %arg5, %arg6 : f32
      ext.yield %7 : f32
    }
    %inserted_slice = tensor.insert_slice %arg1 into %0[10, 0, 0] [6, 1, 6] [1, 2, 1] : tensor<6x1x6xf32> into tensor<16x7x6xf32>
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %1 = scf.for %arg5 = %c3 to %c4 step %c1 iter_args(%arg6 = %arg0) -> (tensor<16x7x6xf32>) {
      %cst_2 = arith.constant 0x7F800000 : f32
      %7 = tensor.empty() : tensor<f32>
      %8 = linalg.fill ins(%cst_2 : f32) outs(%7 : tensor<f32>) -> tensor<f32>
      %reduced = linalg.reduce ins(%arg0 : tensor<16x7x6xf32>) outs(%8 : tensor<f32>) dimensions = [0, 1, 2] 
        (%in: f32, %init: f32) {
          %10 = arith.minimumf %in, %init : f32
          linalg.yield %10 : f32
        }
      %9 = arith.extf %inserted_slice : tensor<16x7x6xf32> to tensor<16x7x6xf64>
      scf.yield %arg6 : tensor<16x7x6xf32>
    }
    %2 = arith.extsi %arg2 : tensor<i32> to tensor<i64>
    %inserted_slice_0 = tensor.insert_slice %arg3 into %1[9, 0, 5] [1, 4, 1] [3, 1, 2] : tensor<1x4x1xf32> into tensor<16x7x6xf32>
    %3 = dist.shard_tensor %1, #dist.sharding<@m, [replicate]> : tensor<16x7x6xf32>
    %cst = arith.constant dense<[-6.250000e-01, 7.500000e-01, 7.500000e-01, 1.000000e+00, 7.500000e-01, 6.250000e-01, 1.000000e+00, 6.250000e-01]> : tensor<8xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %4 = tensor.empty() : tensor<15xf32>
    %5 = linalg.fill ins(%cst_1 : f32) outs(%4 : tensor<15xf32>) -> tensor<15xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "reduction"]} ins(%cst, %arg4 : tensor<8xf32>, tensor<8xi64>) outs(%5 : tensor<15xf32>) {
    ^bb0(%in: f32, %in_2: i64, %out: f32):
      %7 = linalg.index 0 : index
      %8 = arith.index_cast %7 : index to i64
      %9 = arith.cmpi eq, %8, %in_2 : i64
      %cst_3 = arith.constant 0xFF800000 : f32
      %10 = arith.select %9, %in, %cst_3 : f32
      %11 = arith.maximumf %out, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<15xf32>
    return %6, %3, %inserted_slice_0, %2, %arg4 : tensor<15xf32>, tensor<16x7x6xf32>, tensor<16x7x6xf32>, tensor<i64>, tensor<8xi64>
  }
}

