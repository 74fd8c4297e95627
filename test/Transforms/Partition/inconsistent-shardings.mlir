// RUN: tessera-opt %s --split-input-file --dist-partition --verify-diagnostics -o /dev/null

// The sharding of an op determines those of its operands. A file that violates this, edited by hand
// or by an older version, is rejected rather than compiled to a wrong program.

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @cut_otherwise(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %c: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) {
  // expected-error @+1 {{operand 1 has #dist.sharding<@m, [shard(1)]>, but 'linalg.matmul' needs #dist.sharding<@m, [shard(0)]> where it is distributed by #dist.op_sharding<@m, factors = [[], [], ["x"]]>; run dist-insert-reshards first}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [[], [], ["x"]]>, dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Each device would add the accumulator.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @counted_four_times(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %c: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) {
  // expected-error @+1 {{operand 2 has #dist.sharding<@m, [replicate]>, but 'linalg.matmul' needs #dist.sharding<@m, [partial(sum)]>}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [[], [], ["x"]]>, dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @whole(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %e = tensor.empty() {dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<8x8xf32>
  // expected-error @+1 {{operand 0 has #dist.sharding<@m, [partial(sum)]>, but 'linalg.exp' needs #dist.sharding<@m, [replicate]>, since it has no 'dist.op_sharding'}}
  %0 = linalg.exp {dist.shardings = [#dist.sharding<@m, [replicate]>]} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
