#map = affine_map<(d0) -> (d0)>
module {
  dist.process_mesh @m(shape = [6], dim_names = ["a0"])
  func.func @main(%arg0: tensor<7xf32>, %arg1: tensor<11x16xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %arg2: tensor<14x17x4xi64> {dist.range = [-4, 5]}, %arg3: tensor<2x4x4xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [?]>}) -> (tensor<14x9x4xi64> {dist.sharding = #dist.sharding<@m, [?]>}, tensor<11x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
    %padded = tensor.pad %arg0 low[0] high[1] {
    ^bb0(%arg4: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %8 = arith.muli %arg4, %c1 : index
      %9 = arith.addi %c0, %8 : index
      %10 = arith.index_cast %9 : index to i32
      %11 = arith.sitofp %10 : i32 to f32
      tensor.yield %11 : f32
    } : tensor<7xf32> to tensor<8xf32>
    %cst = arith.constant dense<[[-1.000000e+00, -2.500000e-01, -8.750000e-01, 8.750000e-01, 7.500000e-01, -1.000000e+00, 6.250000e-01, -3.750000e-01, -1.250000e-01, 1.250000e-01, -1.250000e-01], [1.000000e+00, -8.750000e-01, -8.750000e-01, -6.250000e-01, -8.750000e-01, -8.750000e-01, -1.250000e-01, 6.250000e-01, 3.750000e-01, 0.000000e+00, -7.500000e-01], [1.250000e-01, -5.000000e-01, 2.500000e-01, 8.750000e-01, -1.250000e-01, 2.500000e-01, 3.750000e-01, 8.750000e-01, 6.250000e-01, -8.750000e-01, -2.500000e-01], [5.000000e-01, -3.750000e-01, -7.500000e-01, 5.000000e-01, -1.250000e-01, 2.500000e-01, 5.000000e-01, 1.250000e-01, -6.250000e-01, 1.000000e+00, -3.750000e-01], [8.750000e-01, -1.250000e-01, -1.000000e+00, -1.000000e+00, -6.250000e-01, 6.250000e-01, -8.750000e-01, 0.000000e+00, 1.000000e+00, 2.500000e-01, 2.500000e-01]]> : tensor<5x11xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<5x16xf32>
    %0 = linalg.matmul ins(%cst, %arg1 : tensor<5x11xf32>, tensor<11x16xf32>) outs(%cst_0 : tensor<5x16xf32>) -> tensor<5x16xf32>
    %1 = dist.reshard %arg1 to #dist.sharding<@m, [shard(0)]> : tensor<11x16xf32>
    %cst_1 = arith.constant dense<[3, -3, -1, -1, -1, -3, -1, 1]> : tensor<8xi32>
    %2 = tensor.empty() : tensor<8xi32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%cst_1 : tensor<8xi32>) outs(%2 : tensor<8xi32>) {
    ^bb0(%in: i32, %out: i32):
      %c0_i32 = arith.constant 0 : i32
      %c12_i32 = arith.constant 12 : i32
      %8 = arith.cmpi ne, %in, %c0_i32 : i32
      %9 = scf.if %8 -> (i32) {
        %10 = arith.divsi %c12_i32, %in : i32
        scf.yield %10 : i32
      } else {
        scf.yield %c0_i32 : i32
      }
      linalg.yield %9 : i32
    } -> tensor<8xi32>
    %extracted_slice = tensor.extract_slice %arg0[0] [7] [1] : tensor<7xf32> to tensor<7xf32>
    %4 = ext.scan dim = 0 ins(%1 : tensor<11x16xf32>) {
    ^bb0(%arg4: f32, %arg5: f32):
      ext.yield %arg5 : f32
    }
    %c0_i64 = arith.constant 0 : i64
    %padded_2 = tensor.pad %arg2 low[0, 1, 0] high[0, 1, 0] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index):
      tensor.yield %c0_i64 : i64
    } : tensor<14x17x4xi64> to tensor<14x19x4xi64>
    %c0_i64_3 = arith.constant 0 : i64
    %5 = tensor.empty() : tensor<14x9x4xi64>
    %6 = linalg.fill ins(%c0_i64_3 : i64) outs(%5 : tensor<14x9x4xi64>) -> tensor<14x9x4xi64>
    %7 = linalg.conv_1d_nwc_wcf {dilations = dense<2> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>} ins(%padded_2, %arg3 : tensor<14x19x4xi64>, tensor<2x4x4xi64>) outs(%6 : tensor<14x9x4xi64>) -> tensor<14x9x4xi64>
    return %7, %4 : tensor<14x9x4xi64>, tensor<11x16xf32>
  }
}

