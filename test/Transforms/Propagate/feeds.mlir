// RUN: tessera-opt %s --dist-normalize --dist-propagate --split-input-file --verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera-pipeline --codegen 2>/dev/null | FileCheck %s --check-prefix=STEPS

// A result that feeds an argument has the argument's sharding, whatever its operands have.
dist.process_mesh @pod(shape = [2], dim_names = ["x"])

// CHECK-LABEL: func @annotated_argument
// CHECK-SAME: -> (tensor<8x8xf32> {dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@pod, [replicate]>})
// STEPS: rt.program @annotated_argument
func.func @annotated_argument(
    %w: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [replicate]>},
    %g: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [shard(0)]>})
    -> (tensor<8x8xf32> {dist.feeds = 0}) {
  %0 = arith.mulf %g, %g : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// The annotation of a result reaches the argument that it feeds.
dist.process_mesh @pod(shape = [2], dim_names = ["x"])

// CHECK-LABEL: func @annotated_result
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [shard(1)]>}
// STEPS: rt.program @annotated_result
func.func @annotated_result(%w: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {dist.feeds = 0, dist.sharding = #dist.sharding<@pod, [shard(1)]>}) {
  %0 = linalg.matmul ins(%w, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Both are annotated: the next step needs the argument with its annotation.
dist.process_mesh @pod(shape = [2], dim_names = ["x"])

// CHECK-LABEL: func @both
// CHECK-SAME: dist.feeds = 0 : i64, dist.sharding = #dist.sharding<@pod, [shard(0)]>
// STEPS: rt.program @both
// expected-remark @below {{result 'result0' has the sharding of argument 'arg0' that it feeds}}
func.func @both(%w: tensor<8x8xf32> {dist.sharding = #dist.sharding<@pod, [shard(0)]>})
    -> (tensor<8x8xf32> {dist.feeds = 0, dist.sharding = #dist.sharding<@pod, [shard(1)]>}) {
  %0 = arith.mulf %w, %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
