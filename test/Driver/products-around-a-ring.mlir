// Rows that are gathered along a product's only parallel loop, and sums that are scattered, go around a ring: the first block
// is there at once, and the last one is sent while a block is multiplied. Runs with overlap give the same bits in each order.
// RUN: tessera explain %s --overlap | FileCheck %s
// RUN: tessera run %s --overlap --check=compiled | grep checksum > %t.threads
// RUN: for seed in 1 2 3 4 5 6 7 8; do tessera run %s --overlap --backend stub --schedule-seed $seed | grep checksum > %t.stub; diff %t.threads %t.stub || exit 1; done

// CHECK-COUNT-3: permute        @line -> line_ring [t] of 4  f32 {{.*}}overlapped: 0 µs of
// CHECK: 0 µs of {{.*}} of communication exposed
// CHECK: parallelism: tensor over t
// CHECK-NOT: stages
dist.process_mesh @line(shape = [4], dim_names = ["t"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<1024x1024xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<1024x4096xf32> {dist.name = "w", dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<1024x4096xf32> {dist.name = "y", dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<1024x4096xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x4096xf32>) outs(%zero : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %y : tensor<1024x4096xf32>
}
