// Joining two reductions keeps the first contribution live until the second is computed: 5.0 MiB
// instead of 4.1. With a smaller budget they stay separate.
// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" -o %t
// RUN: tessera-opt %t --dist-fuse-collectives | FileCheck %s --check-prefix=JOINED
// RUN: tessera-opt %t --dist-fuse-collectives=memory-budget=0.005 | FileCheck %s --check-prefix=JOINED
// RUN: tessera-opt %t --dist-fuse-collectives=memory-budget=0.0045 | FileCheck %s --check-prefix=ALONE
// RUN: not tessera-opt %t --dist-fuse-collectives=memory-budget=-1 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: dist-fuse-collectives: memory-budget -1.00 is not valid: expected a number of GiB, or 0 for no budget

// JOINED: dist.reduce_scatter %{{.*}}, %{{.*}} over
// JOINED-NOT: dist.reduce_scatter
// ALONE-COUNT-2: dist.reduce_scatter
dist.process_mesh @m(shape = [8], dim_names = ["x"])
#cut = #dist.sharding<@m, [shard(0)]>
#whole = #dist.sharding<@m, [replicate]>
#left = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<4096x512xf32> {dist.sharding = #cut}, %w: tensor<512x512xf32> {dist.sharding = #whole})
    -> (tensor<512x512xf32> {dist.sharding = #cut}, tensor<512x512xf32> {dist.sharding = #cut}) {
  %zeros = arith.constant dense<0.0> : tensor<512x512xf32>
  %none = arith.constant dense<0.0> : tensor<4096x512xf32>
  %first = linalg.contract indexing_maps = [#left, #right, #sum]
      ins(%x, %x : tensor<4096x512xf32>, tensor<4096x512xf32>) outs(%zeros : tensor<512x512xf32>) -> tensor<512x512xf32>
  %h = linalg.matmul ins(%x, %w : tensor<4096x512xf32>, tensor<512x512xf32>) outs(%none : tensor<4096x512xf32>) -> tensor<4096x512xf32>
  %t = math.tanh %h : tensor<4096x512xf32>
  %z = linalg.matmul ins(%t, %w : tensor<4096x512xf32>, tensor<512x512xf32>) outs(%none : tensor<4096x512xf32>) -> tensor<4096x512xf32>
  %second = linalg.contract indexing_maps = [#left, #right, #sum]
      ins(%x, %z : tensor<4096x512xf32>, tensor<4096x512xf32>) outs(%zeros : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %first, %second : tensor<512x512xf32>, tensor<512x512xf32>
}
