// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// One reshard serves both uses, and constraints are erased.
// CHECK-LABEL: func.func @shared(
// CHECK-COUNT-1: dist.reshard %{{.*}} to #dist.sharding<@m, [shard(1)]>
// CHECK-NOT: dist.reshard
// CHECK-NOT: = dist.shard_tensor
// CHECK: return
func.func @shared(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
        tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = dist.shard_tensor %a, #dist.sharding<@m, [shard(1)]> : tensor<8x8xf32>
  return %0, %a : tensor<8x8xf32>, tensor<8x8xf32>
}

// A partial value with uses of different shardings is reduced once.
// CHECK-LABEL: func.func @reduced_once(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[R:.*]] = dist.reshard %[[P]] to #dist.sharding<@m, [replicate]> {dist.reason = "partial sums reduced: required by several uses"
// CHECK: dist.reshard %[[R]] to #dist.sharding<@m, [shard(0)]>
func.func @reduced_once(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                        %b: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
        tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %z = arith.constant dense<0.0> : tensor<8x8xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}
