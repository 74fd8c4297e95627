// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

// One function per distinct set of devices; tensors move by a send and the recv with the same id.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [2], dim_names = ["x"], process_ids = [2, 3])
// CHECK-LABEL: func.func @main(
// CHECK-SAME: dist.mesh_devices = array<i64: 0, 1>
// CHECK: dist.send %{{.*}} to @n id = 0
// CHECK-LABEL: func.func @main_n(
// CHECK-SAME: dist.mesh_devices = array<i64: 2, 3>
// CHECK: dist.recv from @m id = 0
// CHECK: linalg.generic
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<4xf32> {
  %0 = dist.reshard %x to #dist.sharding<@n, [shard(0)]> : tensor<4xf32>
  %1 = arith.addf %0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
