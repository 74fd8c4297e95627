// Values connected to an annotation are completed at the least cost, also from open annotations;
// without annotations, all values connected to arguments are decided.
// RUN: tessera-opt %s --split-input-file --dist-normalize --dist-search=mode=sharding_propagation | FileCheck %s

dist.process_mesh @grid(shape = [2, 4], dim_names = ["a", "b"])

// CHECK-LABEL: func.func @partly
// CHECK-SAME: {dist.sharding = #dist.sharding<@grid, [shard(0), shard({{[01]}})]>}
// CHECK: math.exp
func.func @partly(%x: tensor<4096x4096xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), ?]>}) -> tensor<4096x4096xf32> {
  %y = math.exp %x : tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

dist.process_mesh @grid(shape = [2, 4], dim_names = ["a", "b"])

// CHECK-LABEL: func.func @free
// CHECK: linalg.matmul {{.*}}dist.shardings = [#dist.sharding<@grid, [shard({{[01]}}), shard({{[01]}})]>]}
func.func @free(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %zero = arith.constant dense<0.0> : tensor<4096x4096xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4096x4096xf32>, tensor<4096x4096xf32>)
                     outs(%zero : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}
