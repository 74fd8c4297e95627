// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Two functions on two sets of devices; sends in a loop match receives in a loop.
dist.process_mesh @a(shape = [2], dim_names = ["x"])
dist.process_mesh @b(shape = [3], dim_names = ["y"], process_ids = [5, 3, 4])

// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<4xi32> = [6, 6, 6, 6]
// CHECK-NEXT: result1 : tensor<4xi32> = [2, 2, 2, 2]
func.func @main_a(%x: tensor<2xi32> {dist.range = [2, 3], dist.argument = 1 : i64, dist.sharding = #dist.sharding<@a, [shard(0)]>, dist.global_type = tensor<4xi32>})
    -> (tensor<2xi32> {dist.result = 1 : i64, dist.sharding = #dist.sharding<@a, [shard(0)]>, dist.global_type = tensor<4xi32>})
    attributes {dist.view = "local", dist.mesh = @a, dist.mesh_devices = array<i64: 0, 1>, dist.part_of = "main"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c3 step %c1 {
    dist.send %x to @b id = 1 {source = #dist.sharding<@a, [shard(0)]>, target = #dist.sharding<@b, [shard(0)]>, global_type = tensor<4xi32>} : tensor<2xi32>
  }
  return %x : tensor<2xi32>
}
func.func @main_b(%acc: tensor<2xi32> {dist.range = [0, 1], dist.argument = 0 : i64, dist.sharding = #dist.sharding<@b, [shard(0)]>, dist.global_type = tensor<4xi32>})
    -> (tensor<2xi32> {dist.result = 0 : i64, dist.sharding = #dist.sharding<@b, [shard(0)]>, dist.global_type = tensor<4xi32>})
    attributes {dist.view = "local", dist.mesh = @b, dist.mesh_devices = array<i64: 5, 3, 4>, dist.part_of = "main"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %acc) -> (tensor<2xi32>) {
    %v = dist.recv from @a id = 1 {source = #dist.sharding<@a, [shard(0)]>, target = #dist.sharding<@b, [shard(0)]>, global_type = tensor<4xi32>} : tensor<2xi32>
    %n = arith.addi %s, %v : tensor<2xi32>
    scf.yield %n : tensor<2xi32>
  }
  return %r : tensor<2xi32>
}
