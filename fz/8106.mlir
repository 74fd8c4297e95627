#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> ()>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0) -> ()>
module {
  dist.process_mesh @m(shape = [2, 2], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<2x15x12xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(2), replicate]>}, %arg1: tensor<i32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0"]>}, %arg2: tensor<9xf64> {dist.sharding = #dist.sharding<@m, dims = [["a1"]], open = ["a0"]>}, %arg3: tensor<9xf64>, %arg4: tensor<i64> {dist.range = [-2, 33], dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<18xf64>, tensor<f64>) {
    %cst = arith.constant dense<3> : tensor<2x15x12xi32>
    %0 = arith.muli %arg0, %cst : tensor<2x15x12xi32>
    %extracted_slice = tensor.extract_slice %arg0[0, 10, 10] [1, 2, 2] [1, 1, 1] : tensor<2x15x12xi32> to tensor<1x2x2xi32>
    %1 = tensor.empty() : tensor<2x15x12xi32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %arg1 : tensor<2x15x12xi32>, tensor<i32>) outs(%1 : tensor<2x15x12xi32>) {
    ^bb0(%in: i32, %in_4: i32, %out: i32):
      %7 = arith.minsi %in, %in_4 : i32
      linalg.yield %7 : i32
    } -> tensor<2x15x12xi32>
    %concat = tensor.concat dim(0) %arg2, %arg3, %arg3 : (tensor<9xf64>, tensor<9xf64>, tensor<9xf64>) -> tensor<27xf64>
    %3 = dist.shard_tensor %2, #dist.sharding<@m, dims = [["a1"], ["a0"], []]> : tensor<2x15x12xi32>
    %cst_0 = arith.constant 3.000000e+00 : f64
    %padded = tensor.pad %concat low[2] high[2] {
    ^bb0(%arg5: index):
      tensor.yield %cst_0 : f64
    } : tensor<27xf64> to tensor<31xf64>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f64>
    %4 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["reduction"]} ins(%concat, %concat : tensor<27xf64>, tensor<27xf64>) outs(%cst_1 : tensor<f64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %7 = arith.mulf %in, %in_4 : f64
      %8 = arith.addf %out, %7 : f64
      linalg.yield %8 : f64
    } -> tensor<f64>
    %cst_2 = arith.constant dense<1.250000e-01> : tensor<f64>
    %5 = arith.mulf %4, %cst_2 : tensor<f64>
    %extracted = tensor.extract %arg4[] : tensor<i64>
    %6 = arith.index_cast %extracted : i64 to index
    %extracted_slice_3 = tensor.extract_slice %padded[%6] [18] [1] : tensor<31xf64> to tensor<18xf64>
    return %extracted_slice_3, %5 : tensor<18xf64>, tensor<f64>
  }
}

