// Axes that no annotation distinguishes are merged for the search: a mesh of ten axes takes no longer
// than one of three, and all loops can be cut. Axes that an annotation distinguishes stay separate.
// RUN: tessera-opt %s --split-input-file --dist-normalize --dist-search="time-limit=20" | FileCheck %s

dist.process_mesh @many(shape = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2], dim_names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])

// CHECK-LABEL: func.func @product
// CHECK: linalg.matmul {{.*}}dist.shardings = [#dist.sharding<@many, [{{shard\(0.*shard\(1|shard\(1.*shard\(0}}
func.func @product(%x: tensor<16384x16384xf32>, %w: tensor<16384x16384xf32>) -> tensor<16384x16384xf32> {
  %zero = arith.constant dense<0.0> : tensor<16384x16384xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16384x16384xf32>, tensor<16384x16384xf32>)
                     outs(%zero : tensor<16384x16384xf32>) -> tensor<16384x16384xf32>
  return %y : tensor<16384x16384xf32>
}

// -----

dist.process_mesh @many(shape = [2, 2, 2, 2, 2], dim_names = ["a", "b", "c", "d", "e"])

// CHECK-LABEL: func.func @apart
// CHECK-SAME: %{{.*}}: tensor<4096x4096xf32> {dist.sharding = #dist.sharding<@many, [shard(0), replicate, shard(0), replicate, shard(1)]>}
// CHECK: linalg.generic{{.*}}[shard(0), replicate, shard(0), replicate, shard(1)]
func.func @apart(%x: tensor<4096x4096xf32> {dist.sharding = #dist.sharding<@many, [shard(0), replicate, shard(0), replicate, shard(1)]>})
    -> (tensor<4096x4096xf32> {dist.sharding = #dist.sharding<@many, [shard(0), replicate, shard(0), replicate, shard(1)]>}) {
  %y = arith.addf %x, %x : tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}
