// RUN: tessera-opt %s --interpret -o /dev/null --split-input-file --verify-diagnostics

dist.process_mesh @m(shape = [2], dim_names = ["x"])
// expected-error @+1 {{result 0 of 'differ' differs between devices 1 and 0: element [0] of their part is 1 and 0}}
func.func @differ() -> (tensor<1xindex> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.global_type = tensor<1xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %x = dist.axis_index over @m ["x"] : index
  %a = tensor.from_elements %x : tensor<1xindex>
  return %a : tensor<1xindex>
}

// -----

dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [1], dim_names = ["x"], process_ids = [9])
func.func @nothing_sent() attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  // expected-error @+1 {{on device 0: 'dist.recv' waits forever: nothing is sent with id 4}}
  %0 = dist.recv from @n id = 4 {source = #dist.sharding<@n, [replicate]>, target = #dist.sharding<@m, [replicate]>, global_type = tensor<2xf32>} : tensor<2xf32>
  return
}

// -----

dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @one_device() attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %x = dist.axis_index over @m ["x"] : index
  %a = tensor.from_elements %x : tensor<1xindex>
  %zero = arith.constant dense<0> : tensor<1xindex>
  // expected-error @+1 {{on device 1: 'check.expect_eq' fails: element [0] is 1, expected 0}}
  check.expect_eq %a, %zero : tensor<1xindex>
  return
}
