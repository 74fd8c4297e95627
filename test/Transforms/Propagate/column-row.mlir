// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s

// Column then row parallel (D4-6): the second weight is cut by rows because the first is cut by
// columns; its product is partial.
dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4096x1024xf32> {dist.sharding = #dist.sharding<@pod, [replicate, shard(0)]>}
// CHECK: linalg.matmul {dist.op_sharding = #dist.op_sharding<@pod, factors = {{\[}}["dp"], ["tp"], []]>, dist.shardings = [#dist.sharding<@pod, [shard(0), shard(1)]>]}
// CHECK: linalg.matmul {dist.op_sharding = #dist.op_sharding<@pod, factors = {{\[}}["dp"], [], ["tp"]]>, dist.shardings = [#dist.sharding<@pod, [shard(0), partial(sum)]>]}
func.func @main(%x: tensor<64x1024xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>},
                %w0: tensor<1024x4096xf32> {dist.sharding = #dist.sharding<@pod, [replicate, shard(1)]>},
                %w1: tensor<4096x1024xf32>)
    -> (tensor<64x1024xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64x4096xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %2 = linalg.matmul ins(%x, %w0 : tensor<64x1024xf32>, tensor<1024x4096xf32>) outs(%1 : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %3 = tensor.empty() : tensor<64x1024xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %5 = linalg.matmul ins(%2, %w1 : tensor<64x4096xf32>, tensor<4096x1024xf32>) outs(%4 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %5 : tensor<64x1024xf32>
}
