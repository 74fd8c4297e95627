// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
dist.process_mesh @n(shape = [2], dim_names = ["z"], process_ids = [4, 5])

// The cotangent has the sharding of the value; the cotangent of a sum over devices is equal on all
// devices; that of a value moved to another mesh comes back from there.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<4x4xf64> {dist.name = "d_result0"})
// CHECK: %[[BACK:.*]] = dist.shard_tensor %{{.*}}, #dist.sharding<@n, [shard(0)]>
// CHECK: dist.reshard %[[BACK]] to #dist.sharding<@m, [replicate, shard(1)]>
// CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@m, [replicate, shard(1)]>
// CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@m, [shard(0), replicate]>
func.func @main(%x: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %a = math.sin %x : tensor<4x4xf64>
  %b = dist.shard_tensor %a, #dist.sharding<@m, [shard(0), partial(sum)]> : tensor<4x4xf64>
  %c = dist.shard_tensor %b, #dist.sharding<@m, [replicate, shard(1)]> : tensor<4x4xf64>
  %d = dist.reshard %c to #dist.sharding<@n, [shard(0)]> : tensor<4x4xf64>
  %e = math.cos %d : tensor<4x4xf64>
  return %e : tensor<4x4xf64>
}
