// RUN: tessera-opt %s --dist-partition --verify-diagnostics

// Partition lowers planned moves; it does not choose them.
dist.process_mesh @m(shape = [4], dim_names = ["t"])

func.func @main(%a: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  // expected-error @+1 {{'dist.reshard' has no 'dist.move'; run dist-plan-reshards first}}
  %r = dist.reshard %a to #dist.sharding<@m, [replicate]> {dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
