// Contributions to a maximum pass through a concatenation along a cut dimension: its device program picks each element
// from one of the operands, by index alone.
// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --check

dist.process_mesh @m(shape = [2, 4], dim_names = ["a", "b"])

// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} [#dist.sharding<@m, [partial(max), shard(0)]>]
// CHECK: arith.select
func.func @main(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>},
                %y: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>})
    -> (tensor<9xf32> {dist.sharding = #dist.sharding<@m, [partial(max), shard(0)]>}) {
  %least = arith.constant dense<0xFF800000> : tensor<8xf32>
  %max = linalg.reduce ins(%x : tensor<4x8xf32>) outs(%least : tensor<8xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %m = arith.maximumf %in, %acc : f32
      linalg.yield %m : f32
    }
  %one = tensor.extract_slice %max[5] [1] [1] : tensor<8xf32> to tensor<1xf32>
  %all = tensor.concat dim(0) %one, %y : (tensor<1xf32>, tensor<8xf32>) -> tensor<9xf32>
  return %all : tensor<9xf32>
}
