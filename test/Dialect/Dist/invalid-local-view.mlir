// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (L1)
// expected-error@+1 {{mesh 'm' is not declared; add dist.process_mesh @m}}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 3, 4095>} {
  return %a : tensor<4xf32>
}

// -----
// (L1)
// expected-error@+1 {{'dist.mesh' must be the name of a mesh, on a function, got "m"}}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> attributes {dist.view = "local", dist.mesh = "m"} {
  return %a : tensor<4xf32>
}

// -----
// (L2)
dist.process_mesh @m(shape = [2], dim_names = ["x"])
// expected-error@+1 {{'dist.mesh_devices' is [0, 1]; expected array<i64: …> with at least one process id, on a function}}
func.func @f(%a: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = [0, 1]} { return }

// -----
// (L2)
// expected-error@+1 {{'dist.mesh_devices' has process id 9223372036854775807; ids must be in [0, 1048576)}}
func.func @f(%a: tensor<4xf32>) attributes {dist.view = "local", dist.mesh_devices = array<i64: 0, 9223372036854775807>} { return }

// -----
// (L2)
// expected-error@+1 {{'dist.mesh_devices' has duplicate process id 1}}
func.func @f(%a: tensor<4xf32>) attributes {dist.view = "local", dist.mesh_devices = array<i64: 1, 1>} { return }

// -----
// (L2)
dist.process_mesh @m(shape = [2], dim_names = ["x"])
// expected-error@+1 {{'dist.mesh_devices' is array<i64: 0, 2>, mesh 'm' has other process ids; list those of the mesh}}
func.func @f(%a: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 2>} { return }

// -----
// (L3)
// expected-error@+1 {{argument 0: dist.argument = 9223372036854775807 : i64 is not a valid position; expected an i64 in [0, 1048576)}}
func.func @f(%a: tensor<4xf32> {dist.argument = 9223372036854775807 : i64}) attributes {dist.view = "local"} { return }

// -----
// (L3)
// expected-error@+1 {{result 0: dist.result = "x" is not a valid position; expected an i64 in [0, 1048576)}}
func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32> {dist.result = "x"}) attributes {dist.view = "local"} {
  return %a : tensor<4xf32>
}

// -----
// (L4)
dist.process_mesh @m(shape = [2], dim_names = ["x"])
// expected-error@+1 {{argument 0 is 'tensor<4xf32>', but #dist.sharding<@m, [shard(0)]> of dist.global_type 'tensor<6xf32>' gives devices 'tensor<3xf32>'}}
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.global_type = tensor<6xf32>}) attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} { return }

// -----
// (L4)
// expected-error@+1 {{argument 0: dist.global_type is tensor<?xf32>, not a tensor of static shape}}
func.func @f(%a: tensor<4xf32> {dist.global_type = tensor<?xf32>}) attributes {dist.view = "local"} { return }

// -----
// (L5)
// expected-error@+1 {{'dist.part_of' is 1 : i64, not a string}}
func.func @f(%a: tensor<4xf32>) attributes {dist.view = "local", dist.part_of = 1} { return }
