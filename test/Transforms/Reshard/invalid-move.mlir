// RUN: tessera-opt %s --split-input-file --verify-diagnostics

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @leads_elsewhere(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  // expected-error @+1 {{'dist.move' is #dist.move<all_to_all over ["x"] split_dim = 1 concat_dim = 0>, which does not convert #dist.sharding<@m, [shard(0)]> to #dist.sharding<@m, [replicate]>; leave it out and run dist-plan-reshards}}
  %0 = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.move = #dist.move<all_to_all over ["x"] split_dim = 1 concat_dim = 0>, dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Older files have only the kind.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @old(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'dist.move' must be a #dist.move, on a dist.reshard, got "all_gather"; leave it out and run dist-plan-reshards}}
  %0 = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.move = "all_gather"} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_kind(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{unknown move 'teleport'; expected the name of a collective or 'make_partial'}}
  %0 = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.move = #dist.move<teleport>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
