// RUN: tessera-opt %s --verify-diagnostics --dist-insert-reshards

// Files from before op shardings have the shardings of results, but not those of ops.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  // expected-error @+1 {{'tensor.collapse_shape' has no 'dist.op_sharding'; run dist-propagate or dist-search first}}
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.shardings = [#dist.sharding<@m, [shard(0)]>]} : tensor<8x8xf32> into tensor<64xf32>
  return %0 : tensor<64xf32>
}
