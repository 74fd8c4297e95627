// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s

// Both claim axis x of the sum; the smaller priority propagates first, although its operand is second.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
// CHECK-LABEL: func.func @main(
// CHECK: linalg.generic {{.*}}dist.shardings = [#dist.sharding<@m, [shard(1)]>]
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)], priority = 1>},
                %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)], priority = 0>}) -> tensor<8x8xf32> {
  %0 = arith.addf %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
