#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  dist.process_mesh @m(shape = [3, 2, 2], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<1x1xindex> {dist.range = [-1, 8]}, %arg1: tensor<1xf32>) -> (tensor<1x1xf32>, tensor<1xf32>) {
    %cst = arith.constant dense<[-1.000000e+00, 8.750000e-01, 1.250000e-01, -7.500000e-01, -6.250000e-01, -1.000000e+00, -6.250000e-01]> : tensor<7xf32>
    %gather = tensor.gather %cst[%arg0] gather_dims([0]) : (tensor<7xf32>, tensor<1x1xindex>) -> tensor<1x1xf32>
    %0 = tensor.empty() : tensor<1x1xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%gather, %arg1 : tensor<1x1xf32>, tensor<1xf32>) outs(%0 : tensor<1x1xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.subf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<1x1xf32>
    return %1, %arg1 : tensor<1x1xf32>, tensor<1xf32>
  }
}

