// RUN: tessera-opt %s --tessera-pipeline --interpret -o /dev/null | FileCheck %s

// The product is a contribution of each device, and stays one only if the kept elements of the init
// are contributions, too: otherwise the init would be added three times.
dist.process_mesh @m(shape = [3], dim_names = ["x"])

// CHECK: result0 : tensor<5x2xf32> = {{\[}}[10, 20], [6, 12], [30, 40], [15, 30], [50, 60]]
func.func @main() -> tensor<5x2xf32> {
  %a = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = arith.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  %init = arith.constant dense<[[10.0, 20.0], [0.0, 0.0], [30.0, 40.0], [0.0, 0.0], [50.0, 60.0]]> : tensor<5x2xf32>
  %cut = dist.shard_tensor %a, #dist.sharding<@m, [shard(1)]> : tensor<2x3xf32>
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %p = linalg.matmul ins(%cut, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%zero : tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0 * 2 + 1, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<2x2xf32>) outs(%init : tensor<5x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}
