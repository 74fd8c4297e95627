// RUN: tessera-opt %s --split-input-file --tessera-pipeline | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera-pipeline --interpret -o /dev/null

// Two arrangements of the same devices are one local function: a value moves between them by an
// exchange, not by a send to the same device.
dist.process_mesh @a(shape = [4], dim_names = ["x"])
dist.process_mesh @b(shape = [2, 2], dim_names = ["y", "z"], process_ids = [3, 1, 0, 2])

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.send
// CHECK: dist.exchange %{{.*}} from #dist.sharding<@a, [shard(0)]> to #dist.sharding<@b, [replicate, shard(0)]>
// CHECK-NOT: func.func
func.func @main(%p: tensor<8xf32> {dist.sharding = #dist.sharding<@a, [shard(0)]>}) -> tensor<8xf32> {
  %q = dist.reshard %p to #dist.sharding<@b, [replicate, shard(0)]> : tensor<8xf32>
  %0 = arith.addf %q, %q : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Elements that every device already holds are not moved.
dist.process_mesh @a(shape = [4], dim_names = ["x"])
dist.process_mesh @b(shape = [2, 2], dim_names = ["y", "z"])

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.exchange
// CHECK: linalg.generic
func.func @main(%p: tensor<8xf32> {dist.sharding = #dist.sharding<@a, [shard(0)]>}) -> tensor<8xf32> {
  %q = dist.reshard %p to #dist.sharding<@b, [shard(0), shard(0)]> : tensor<8xf32>
  %0 = arith.addf %q, %q : tensor<8xf32>
  return %0 : tensor<8xf32>
}
