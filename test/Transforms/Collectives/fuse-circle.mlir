// RUN: tessera-opt %s --dist-fuse-collectives | FileCheck %s

// The two buckets would depend on each other, so only one is joined.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: func.func @circle(
// CHECK-COUNT-3: dist.all_reduce
// CHECK-NOT: dist.all_reduce
// CHECK: return
func.func @circle(
    %p: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), partial(sum)]>, dist.global_type = tensor<4xf32>},
    %q: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), partial(sum)]>, dist.global_type = tensor<4xf32>})
    -> (tensor<4xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<4xf32>},
        tensor<4xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<4xf32>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %a1 = dist.all_reduce %p over @m ["x"] reduction = sum {dist.global_type = tensor<4xf32>, dist.shardings = [#dist.sharding<@m, [replicate, partial(sum)]>], sources = [#dist.sharding<@m, [partial(sum), partial(sum)]>], targets = [#dist.sharding<@m, [replicate, partial(sum)]>], global_types = [tensor<4xf32>]} : tensor<4xf32>
  %b1 = dist.all_reduce %a1 over @m ["y"] reduction = sum {dist.global_type = tensor<4xf32>, dist.shardings = [#dist.sharding<@m, [replicate, replicate]>], sources = [#dist.sharding<@m, [replicate, partial(sum)]>], targets = [#dist.sharding<@m, [replicate, replicate]>], global_types = [tensor<4xf32>]} : tensor<4xf32>
  %b2 = dist.all_reduce %q over @m ["y"] reduction = sum {dist.global_type = tensor<4xf32>, dist.shardings = [#dist.sharding<@m, [partial(sum), replicate]>], sources = [#dist.sharding<@m, [partial(sum), partial(sum)]>], targets = [#dist.sharding<@m, [partial(sum), replicate]>], global_types = [tensor<4xf32>]} : tensor<4xf32>
  %a2 = dist.all_reduce %b2 over @m ["x"] reduction = sum {dist.global_type = tensor<4xf32>, dist.shardings = [#dist.sharding<@m, [replicate, replicate]>], sources = [#dist.sharding<@m, [partial(sum), replicate]>], targets = [#dist.sharding<@m, [replicate, replicate]>], global_types = [tensor<4xf32>]} : tensor<4xf32>
  return %b1, %a2 : tensor<4xf32>, tensor<4xf32>
}
