// The plan respects annotations at any cost; open placements are chosen.
// RUN: tessera-opt %s --dist-normalize --dist-search | FileCheck %s

dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])

// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.*}}: tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [shard(1), replicate]>}
// CHECK-SAME: %{{.*}}: tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [replicate, {{[a-z0-9()]+}}]>}
// CHECK-SAME: -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), shard(1)]>})
func.func @main(%x: tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [shard(1), replicate]>},
                %w: tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [replicate, ?]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), shard(1)]>}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@pod, [replicate, shard(1)]>
  %c = dist.shard_tensor %m, #dist.sharding<@pod, [replicate, shard(1)]> : tensor<64x64xf32>
  %y = math.exp %c : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
