#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  dist.process_mesh @m(shape = [9], dim_names = ["a0"])
  func.func @main(%arg0: tensor<2x1x3xi64> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [replicate]>}, %arg1: tensor<i64> {dist.range = [-2, 5], dist.sharding = #dist.sharding<@m, dims = [], open = ["a0":(3)3, "a0":(1)3]>}, %arg2: tensor<f32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<2x1x3xi64> {dist.feeds = 0 : i64}, tensor<f32> {dist.feeds = 2 : i64, dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<2x1x3xi64>) {
    %0 = tensor.empty() : tensor<2x1x3xi64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x1x3xi64>) outs(%0 : tensor<2x1x3xi64>) {
    ^bb0(%in: i64, %out: i64):
      %c0_i64 = arith.constant 0 : i64
      %c12_i64 = arith.constant 12 : i64
      %6 = arith.cmpi ne, %in, %c0_i64 : i64
      %7 = scf.if %6 -> (i64) {
        %8 = arith.divsi %c12_i64, %in : i64
        scf.yield %8 : i64
      } else {
        scf.yield %c0_i64 : i64
      }
      linalg.yield %7 : i64
    } -> tensor<2x1x3xi64>
    %cst = arith.constant dense<3> : tensor<2x1x3xi64>
    %2 = arith.floordivsi %1, %cst : tensor<2x1x3xi64>
    %extracted = tensor.extract %arg1[] : tensor<i64>
    %3 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %2[0, 0, %3] [2, 1, 3] [1, 1, 1] : tensor<2x1x3xi64> to tensor<2x1x3xi64>
    %4 = math.erf %arg2 : tensor<f32>
    %5 = ext.scan dim = 2 reverse ins(%2 : tensor<2x1x3xi64>) {
    ^bb0(%arg3: i64, %arg4: i64):
      %6 = arith.maxsi %arg3, %arg4 : i64
      ext.yield %6 : i64
    }
    return %5, %4, %extracted_slice : tensor<2x1x3xi64>, tensor<f32>, tensor<2x1x3xi64>
  }
}

