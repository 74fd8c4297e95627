// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// 5 over 4 is 2,2,1,0: a contraction reads zeros in the padding, in both operands.
// CHECK-LABEL: func.func @contraction(
// CHECK-SAME: tensor<7x2xf32>
// CHECK-COUNT-2: arith.select
// CHECK: linalg.matmul {{.*}} ins(%{{.*}}, %{{.*}} : tensor<7x2xf32>, tensor<2x3xf32>)
// CHECK: dist.all_reduce
func.func @contraction(%x: tensor<7x5xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                       %w: tensor<5x3xf32>) -> (tensor<7x3xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %z = arith.constant dense<0.0> : tensor<7x3xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<7x5xf32>, tensor<5x3xf32>) outs(%z : tensor<7x3xf32>) -> tensor<7x3xf32>
  return %0 : tensor<7x3xf32>
}

// Other reductions mask in their body: the padding does not change the accumulator.
// CHECK-LABEL: func.func @maximum(
// CHECK: dist.axis_index over @m ["x"]
// CHECK: linalg.generic
// CHECK: %[[M:.*]] = arith.maximumf
// CHECK: arith.cmpi slt
// CHECK: arith.select %{{.*}}, %[[M]], %{{.*}}
func.func @maximum(%x: tensor<7x5xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                   %init: tensor<7xf32>) -> (tensor<7xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %0 = linalg.reduce ins(%x : tensor<7x5xf32>) outs(%init : tensor<7xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %m = arith.maximumf %a, %b : f32 linalg.yield %m : f32 }
  return %0 : tensor<7xf32>
}

// An index in a body is global. An integer division may read padding: it is defined for all numbers.
// CHECK-LABEL: func.func @indices(
// CHECK: linalg.index 0
// CHECK: arith.addi
// CHECK-NOT: arith.select
// CHECK: arith.divsi
func.func @indices(%x: tensor<7xi64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<7xi64> {
  %e = tensor.empty() : tensor<7xi64>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<7xi64>) outs(%e : tensor<7xi64>) {
  ^bb0(%in: i64, %out: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %d = arith.divsi %j, %in : i64
    linalg.yield %d : i64
  } -> tensor<7xi64>
  return %0 : tensor<7xi64>
}
