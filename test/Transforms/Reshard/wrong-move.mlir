// RUN: tessera-opt %s --split-input-file --verify-diagnostics --dist-partition

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @leads_elsewhere(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  // expected-error @+1 {{'dist.move' is 'all_to_all', which does not lead from #dist.sharding<@m, [shard(0)]> to #dist.sharding<@m, [replicate]>}}
  %0 = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.move = "all_to_all", dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_kind(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'dist.move' is the name of a collective and stands on dist.reshard, found "teleport"}}
  %0 = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.move = "teleport"} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
