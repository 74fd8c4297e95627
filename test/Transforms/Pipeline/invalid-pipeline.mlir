// RUN: tessera-opt %s --split-input-file --verify-diagnostics --tessera-pipeline

// A micro-batch returns to a stage before the last stage.
dist.process_mesh @a(shape = [1], dim_names = ["x"])
dist.process_mesh @b(shape = [1], dim_names = ["x"], process_ids = [1])
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.reshard %x to #dist.sharding<@b, [replicate]> : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  // expected-error@+1 {{a micro-batch comes to mesh 'a' as its stage 2 of 3, a cycle between stages; it visits its 2 meshes in turn}}
  %2 = dist.reshard %1 to #dist.sharding<@a, [replicate]> : tensor<4xf32>
  %3 = math.exp %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> tensor<4xf32> attributes {dist.schedule = "1f1b"} {
  %0 = func.call @f(%x) {dist.micro_batch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @a(shape = [1], dim_names = ["x"])
// expected-error@+1 {{unknown schedule '2f2b'; schedules are sequential, gpipe, 1f1b, interleaved, zb-h1, auto}}
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> tensor<4xf32> attributes {dist.schedule = "2f2b"} {
  %0 = math.exp %x {dist.micro_batch = 0 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @a(shape = [1], dim_names = ["x"])
// expected-error@+1 {{schedule 'interleaved' needs several stages per mesh, and meshes have one; use 1f1b}}
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> tensor<4xf32> attributes {dist.schedule = "interleaved"} {
  %0 = math.exp %x {dist.micro_batch = 0 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @a(shape = [1], dim_names = ["x"])
dist.process_mesh @b(shape = [1], dim_names = ["x"], process_ids = [1])
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> tensor<4xf32> attributes {dist.schedule = "gpipe"} {
  // expected-note@+1 {{computed here}}
  %0 = math.exp %x {dist.micro_batch = 1 : i64} : tensor<4xf32>
  // expected-error@+1 {{reads a value of a later micro-batch, which a pipeline computes later; compute shared values before or after all micro-batches}}
  %1 = math.exp %0 {dist.micro_batch = 0 : i64} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Two meshes with the same stage.
dist.process_mesh @a(shape = [1], dim_names = ["x"])
dist.process_mesh @b(shape = [1], dim_names = ["x"], process_ids = [1])
dist.process_mesh @c(shape = [1], dim_names = ["x"], process_ids = [2])
func.func @main(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> (tensor<4xf32>, tensor<4xf32>) attributes {dist.schedule = "gpipe"} {
  %0 = math.exp %x {dist.micro_batch = 0 : i64} : tensor<4xf32>
  %1 = dist.reshard %0 to #dist.sharding<@b, [replicate]> {dist.micro_batch = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{meshes 'b' and 'c' are both stage 1 of the pipeline; stages must form a chain, reshard from each mesh to the next}}
  %2 = dist.reshard %0 to #dist.sharding<@c, [replicate]> {dist.micro_batch = 0 : i64} : tensor<4xf32>
  %3 = math.exp %1 {dist.micro_batch = 0 : i64} : tensor<4xf32>
  %4 = math.exp %2 {dist.micro_batch = 0 : i64} : tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{'dist.schedule' must be the name of a schedule, on a function, got 3 : i64}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {dist.schedule = 3 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.micro_batch' is -1 : i64; expected the number of a micro-batch, an i64 from 0}}
  %0 = math.exp %x {dist.micro_batch = -1 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'dist.rolled_pipelines' must be a list of dictionaries, on a module, got 3 : i64}}
module attributes {dist.rolled_pipelines = 3 : i64} {
}
