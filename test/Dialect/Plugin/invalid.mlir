// RUN: tessera-opt %s --load-dialect-plugin=%demo_dialect --tessera-pipeline="compile-to=partitioned" --verify-diagnostics --split-input-file

// The pipeline copies and drops ops, so ops of plug-ins must not have side effects.
func.func @effect(%x: tensor<8xf32>) {
  // expected-error @+1 {{'demo.log' may have side effects; an op that implements ShardingRuleOpInterface must be Pure}}
  demo.log %x : tensor<8xf32>
  return
}

// -----

// The default clones an op, which would reduce the padding of an uneven part.
dist.process_mesh @m(shape = [4], dim_names = ["a"])
func.func @uneven(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> tensor<8xf32> {
  // expected-error @+1 {{'demo.peak' reduces 6 iterations over 4 devices, which leaves an uneven part that it does not mask; implement 'partition' of ShardingRuleOpInterface, or cut a dimension that the devices divide evenly}}
  %0 = demo.peak %x : tensor<8x6xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Forwards that the op itself does not support are rejected.
dist.process_mesh @m(shape = [4], dim_names = ["a"])
func.func @forward(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> tensor<8xf32> {
  // expected-error @+1 {{forwards sum("a") from operand 0, in which 'demo.scaled_add' is not linear; reduce it first}}
  %0 = demo.scaled_add %x, %x {scale = 0.5, dist.op_sharding = #dist.op_sharding<@m, factors = [[]], forwards = [sum("a") from [0]]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
