// RUN: tessera-opt %s --verify-diagnostics --dist-schedule-pipeline

// Each mesh waits for a value that the other sends later.
dist.process_mesh @a(shape = [1], dim_names = ["x"])
dist.process_mesh @b(shape = [1], dim_names = ["x"], process_ids = [1])
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dist.mesh = @a, dist.mesh_devices = array<i64: 0>, dist.part_of = "main", dist.view = "local", dist.schedule = "1f1b"} {
  // expected-error@+1 {{mesh 'a' waits for transfer 1, which depends on a later send of mesh 'a': a cycle between stages; let each stage send a value before it receives values computed from it}}
  %0 = dist.recv from @b id = 1 {dist.micro_batch = 0 : i64, source = #dist.sharding<@b, [replicate]>, target = #dist.sharding<@a, [replicate]>, global_type = tensor<4xf32>} : tensor<4xf32>
  dist.send %x to @b id = 0 {dist.micro_batch = 0 : i64, source = #dist.sharding<@a, [replicate]>, target = #dist.sharding<@b, [replicate]>, global_type = tensor<4xf32>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main_b(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dist.mesh = @b, dist.mesh_devices = array<i64: 1>, dist.part_of = "main", dist.view = "local", dist.schedule = "1f1b"} {
  %0 = dist.recv from @a id = 0 {dist.micro_batch = 0 : i64, source = #dist.sharding<@a, [replicate]>, target = #dist.sharding<@b, [replicate]>, global_type = tensor<4xf32>} : tensor<4xf32>
  dist.send %x to @a id = 1 {dist.micro_batch = 0 : i64, source = #dist.sharding<@b, [replicate]>, target = #dist.sharding<@a, [replicate]>, global_type = tensor<4xf32>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
