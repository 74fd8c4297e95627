// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

// The init of a partial product counts once: coordinate 0 keeps it, the others start from zero.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
// CHECK-LABEL: func.func @main(
// CHECK: %[[INIT:.*]] = dist.make_partial %arg2 over @m ["x"] reduction = sum
// CHECK: linalg.matmul {{.*}} outs(%[[INIT]]
// CHECK: dist.all_reduce
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %b: tensor<8x8xf32>, %c: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %0 = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
