// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --check

// An argument without a placement is used on two meshes, of which each has a copy. Blocks of another are looked at before.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [3], dim_names = ["y"], process_ids = [2, 3, 4])

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<12x4xf32> {{.*}}@m{{.*}}, %[[OTHER:[a-z0-9]+]]: tensor<12x4xf32> {{.*}}@n
func.func @main(%a: tensor<12x4xf32> {dist.name = "a"},
                %w: tensor<6x12xf32> {dist.name = "w", dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<6x4xf32> {dist.name = "y"}, tensor<12x4xf32> {dist.name = "z"}) {
  %zero = arith.constant dense<0.0> : tensor<6x4xf32>
  %p = dist.shard_tensor %a, #dist.sharding<@m, [?]> : tensor<12x4xf32>
  %q = dist.shard_tensor %a, #dist.sharding<@n, [shard(0)]> : tensor<12x4xf32>
  %wide = tensor.expand_shape %w [[0], [1, 2]] output_shape [6, 3, 4] : tensor<6x12xf32> into tensor<6x3x4xf32>
  %flat = tensor.collapse_shape %wide [[0], [1, 2]] : tensor<6x3x4xf32> into tensor<6x12xf32>
  %y = linalg.matmul ins(%flat, %p : tensor<6x12xf32>, tensor<12x4xf32>) outs(%zero : tensor<6x4xf32>) -> tensor<6x4xf32>
  %z = math.tanh %q : tensor<12x4xf32>
  return %y, %z : tensor<6x4xf32>, tensor<12x4xf32>
}
