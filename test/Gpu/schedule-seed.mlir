// A seed selects a legal order of the streams; the results do not depend on it.
// RUN: tessera compile %s -o %t.tsra
// RUN: tessera-exec %t.tsra > %t.threads
// RUN: tessera-exec %t.tsra --backend stub --schedule-seed 1 > %t.one
// RUN: tessera-exec %t.tsra --backend stub --schedule-seed 2 --trace %t.json > %t.two
// RUN: diff %t.threads %t.one
// RUN: diff %t.threads %t.two
// RUN: FileCheck %s < %t.json

// CHECK: "device 3"
// CHECK: reduce_scatter

dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%a: tensor<8x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x6xf32>, tensor<6x8xf32>)
                     outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
