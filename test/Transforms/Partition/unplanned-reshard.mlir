// RUN: tessera-opt %s --split-input-file --dist-partition --verify-diagnostics

// Partition lowers planned moves; it does not choose them.
dist.process_mesh @m(shape = [4], dim_names = ["t"])

func.func @main(%a: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  // expected-error @+1 {{'dist.reshard' has no 'dist.move'; run dist-plan-reshards first}}
  %r = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// A window that a pad reads has its fill from the plan.
dist.process_mesh @m(shape = [4], dim_names = ["t"])

func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<12xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %w = dist.reshard %a to #dist.sharding<@m, dims = [["t"]], windows = [(0, 3, -2, 3)]>
      {dist.move = #dist.move<exchange>, dist.shardings = [#dist.sharding<@m, dims = [["t"]], windows = [(0, 3, -2, 3)]>]} : tensor<8xf32>
  // expected-error @+1 {{operand 0 is a window that is not filled with 0.000000e+00 : f32, as 'tensor.pad' needs it; run dist-plan-reshards first}}
  %p = tensor.pad %w low[2] high[2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } {dist.op_sharding = #dist.op_sharding<@m, factors = [["t"]]>, dist.shardings = [#dist.sharding<@m, [shard(0)]>]} : tensor<8xf32> to tensor<12xf32>
  return %p : tensor<12xf32>
}

// -----

// Contributions stay on their mesh.
dist.process_mesh @m(shape = [2], dim_names = ["t"])
dist.process_mesh @n(shape = [2], dim_names = ["t"], process_ids = [2, 3])

func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@n, [replicate]>}) {
  // expected-error @+1 {{'dist.reshard' between meshes 'm' and 'n' has contributions, #dist.sharding<@m, [partial(sum)]>; run dist-plan-reshards first, which reduces and makes them within a mesh}}
  %r = dist.reshard %a to #dist.sharding<@n, [replicate]> {dist.shardings = [#dist.sharding<@n, [replicate]>]} : tensor<8xf32>
  return %r : tensor<8xf32>
}
