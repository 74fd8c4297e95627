// RUN: tessera-opt %s --codegen --codegen-write-artifact -o %t | FileCheck %s

// Both sides of a transfer are adjacent in the total order of steps.

// CHECK: "parts": [
// CHECK: "name": "first"
// CHECK: "op":"launch",{{.*}}"order":0
// CHECK: "op":"send","id":0,{{.*}}"order":1
// CHECK: "op":"launch",{{.*}}"order":3
// CHECK: "name": "second"
// CHECK: "op":"recv","id":0,{{.*}}"order":2
// CHECK: "op":"launch",{{.*}}"order":4
dist.process_mesh @s0(shape = [2], dim_names = ["x"], process_ids = [0, 1])
dist.process_mesh @s1(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @first(%x: tensor<4x4xf32> {dist.name = "x", dist.argument = 0, dist.sharding = #dist.sharding<@s0, [shard(0)]>, dist.global_type = tensor<8x4xf32>})
    -> (tensor<4x4xf32> {dist.result = 1, dist.sharding = #dist.sharding<@s0, [shard(0)]>, dist.global_type = tensor<8x4xf32>})
    attributes {dist.view = "local", dist.mesh = @s0, dist.mesh_devices = array<i64: 0, 1>, dist.part_of = "main"} {
  %y = arith.addf %x, %x : tensor<4x4xf32>
  dist.send %y to @s1 id = 0 {source = #dist.sharding<@s0, [shard(0)]>, target = #dist.sharding<@s1, [shard(1)]>, global_type = tensor<8x4xf32>} : tensor<4x4xf32>
  %e = math.exp %x : tensor<4x4xf32>
  return %e : tensor<4x4xf32>
}
func.func @second() -> (tensor<8x2xf32> {dist.name = "z", dist.result = 0, dist.sharding = #dist.sharding<@s1, [shard(1)]>, dist.global_type = tensor<8x4xf32>})
    attributes {dist.view = "local", dist.mesh = @s1, dist.mesh_devices = array<i64: 2, 3>, dist.part_of = "main"} {
  %y = dist.recv from @s0 id = 0 {source = #dist.sharding<@s0, [shard(0)]>, target = #dist.sharding<@s1, [shard(1)]>, global_type = tensor<8x4xf32>} : tensor<8x2xf32>
  %z = math.exp %y : tensor<8x2xf32>
  return %z : tensor<8x2xf32>
}
