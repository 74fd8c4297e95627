// The initial value of a sum is computed by another op of its kernel.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s

// CHECK: k3: {{.*}} equal
#map = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func private @k3(%arg0: tensor<11x44xf32>, %arg1: tensor<11x44xf32>, %arg2: tensor<11x44x9xf32>,
                      %arg3: tensor<11x44xf32>) -> tensor<11x44xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.empty() : tensor<11x44xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %arg1 : tensor<11x44xf32>, tensor<11x44xf32>) outs(%0 : tensor<11x44xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %4 = arith.addf %in, %in_0 : f32
    linalg.yield %4 : f32
  } -> tensor<11x44xf32>
  %2 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%arg2 : tensor<11x44x9xf32>) outs(%1 : tensor<11x44xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<11x44xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<11x44xf32>) outs(%arg3 : tensor<11x44xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.mulf %in, %in : f32
    linalg.yield %4 : f32
  } -> tensor<11x44xf32>
  return %3 : tensor<11x44xf32>
}
