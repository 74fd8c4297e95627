// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (S1)
// expected-error@+1 {{argument 0: mesh 'pod' is not declared; add dist.process_mesh @pod}}
func.func @f(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(0)]>}) { return }

// -----
// (S2)
dist.process_mesh @pod(shape = [2, 2], dim_names = ["x", "y"])
// expected-error@+1 {{has 3 placements, mesh 'pod' has 2 axes; give at most one placement per axis}}
func.func @f(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), replicate, replicate]>}) { return }

// -----
// (S3) D4-12: Shard(2) and Shard(3) of a matrix
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{shard(2) of a rank-2 tensor 'tensor<2x3xf32>': the dimension must be in [-2, 2)}}
func.func @f(%x: tensor<2x3xf32> {dist.sharding = #dist.sharding<@pod, [shard(2)]>}) { return }

// -----
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{shard(3) of a rank-2 tensor}}
func.func @f(%x: tensor<2x3xf32> {dist.sharding = #dist.sharding<@pod, [shard(3)]>}) { return }

// -----
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{shard(-3) of a rank-2 tensor}}
func.func @f(%x: tensor<2x3xf32> {dist.sharding = #dist.sharding<@pod, [shard(-3)]>}) { return }

// -----
// (S4)
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{mesh axis "y" is used twice}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, dims = [["y"], ["y"]]>}) { return }

// -----
// (S4) overlapping parts
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{mesh axis "y" is used twice}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, dims = [["y":(1)2], ["y"]]>}) { return }

// -----
// (S5)
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{mesh 'pod' has no axis 'z'}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, dims = [["z"], []]>}) { return }

// -----
// (S5)
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{part (1)3 does not divide axis 'y' of extent 4}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, dims = [["y":(1)3], []]>}) { return }

// -----
// (S6)
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{the axes of dimension 0}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [shard(0, order = 1), shard(0)]>}) { return }

// -----
// (S7)
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
// expected-error@+1 {{partial over two axes with different reductions, sum and max}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [partial(sum), partial(max)]>}) { return }

// -----
// (S8)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{partial(avg) of 'tensor<8xi32>': integers have no average}}
func.func @f(%x: tensor<8xi32> {dist.sharding = #dist.sharding<@pod, [partial(avg)]>}) { return }

// -----
// (S9)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{has 1 dimensions, the tensor 'tensor<8x8xf32>' has 2}}
func.func @f(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, dims = [["x"]]>}) { return }

// -----
// (S10)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{only ranked tensors have shardings, not 'f32'}}
func.func @f(%x: f32 {dist.sharding = #dist.sharding<@pod, [replicate]>}) { return }

// -----
// (S10)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f() {
  // expected-error@+1 {{'dist.shardings' has 2 shardings, 'tensor.empty' has 1 results; give one sharding per result}}
  %0 = tensor.empty() {dist.shardings = [#dist.sharding<@pod, [replicate]>, #dist.sharding<@pod, [replicate]>]} : tensor<4xf32>
  return
}

// -----
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{shard(1) of a rank-1 tensor}}
  %0 = dist.shard_tensor %x, #dist.sharding<@pod, [shard(1)]> : tensor<4xf32>
  return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{mesh 'nowhere' is not declared}}
  %0 = dist.reshard %x to #dist.sharding<@nowhere, [shard(0)]> : tensor<4xf32>
  return
}

// -----
// expected-error@+1 {{unknown placement 'split'; expected one of replicate, shard(d), partial(op), ?}}
func.func @f(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@pod, [split(0)]>}) { return }

// -----
// expected-error@+1 {{unknown reduction 'mean'; expected one of sum, avg, max, min, prod}}
func.func @f(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@pod, [partial(mean)]>}) { return }

// -----
// (S5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
// expected-error@+1 {{part (4294967296)4294967296 does not divide axis 'x' of extent 4}}
func.func @f(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, dims = [["x":(4294967296)4294967296]]>}) { return }

// -----
// (S11)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// expected-error@+1 {{'tensor<4294967296x4294967296xf32>' has more than 2^48 elements, the maximum of a sharded tensor}}
func.func @f(%x: tensor<4294967296x4294967296xf32> {dist.sharding = #dist.sharding<@pod, [shard(0)]>}) { return }
