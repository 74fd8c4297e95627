// RUN: tessera-opt %s --tessera-pipeline --interpret > /dev/null
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s

// Windows shifted by one element: a device's buffer begins with its first window, so the local map adds no offset.
dist.process_mesh @m(shape = [2], dim_names = ["d"])

// CHECK-DAG: affine_map<(d0, d1) -> (d0 * 2 + d1)>
// CHECK-NOT: d0 * 2 + d1 + 1
func.func @main() {
  %x = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]> : tensor<12xf32>
  %w = arith.constant dense<[1.0, 10.0]> : tensor<2xf32>
  %zero = arith.constant dense<0.0> : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(o, k) -> (o * 2 + k + 1)>, affine_map<(o, k) -> (k)>, affine_map<(o, k) -> (o)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<12xf32>, tensor<2xf32>) outs(%zero : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %z = dist.shard_tensor %y, #dist.sharding<@m, [shard(0)]> : tensor<5xf32>
  %expected = arith.constant dense<[21.0, 43.0, 65.0, 87.0, 109.0]> : tensor<5xf32>
  check.expect_eq %z, %expected : tensor<5xf32>
  return
}
