// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s


dist.process_mesh @m(shape = [4], dim_names = ["t"])

// The contributions of two branches are added before one reduction.
// CHECK-LABEL: func.func @branches(
// CHECK: %[[A:.*]] = linalg.matmul {{.*}}[partial(sum)]
// CHECK: %[[B:.*]] = linalg.matmul {{.*}}[partial(sum)]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]]
// CHECK: dist.reshard %[[SUM]] to
// CHECK-NOT: dist.reshard
func.func @branches(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                    %y: tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                    %v: tensor<16x8xf32>, %w: tensor<16x8xf32>)
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<8x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.matmul ins(%y, %w : tensor<8x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = arith.addf %a, %b : tensor<8x8xf32>
  return %sum : tensor<8x8xf32>
}

// A value added to contributions counts once: it becomes a contribution of device 0.
// CHECK-LABEL: func.func @smaller(
// CHECK-SAME: %{{.*}}: {{.*}}, %{{.*}}: {{.*}}, %[[S:[^:]*]]: tensor<8x8xf32>
// CHECK-DAG: %[[P:.*]] = dist.reshard %[[S]] to #dist.sharding<@m, [partial(sum)]>
// CHECK-DAG: %[[A:.*]] = linalg.matmul
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[P]]
// CHECK: %[[ROWS:.*]] = linalg.reduce ins(%[[SUM]]
// CHECK: dist.reshard %[[ROWS]] to #dist.sharding<@m, [replicate]>
func.func @smaller(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                   %v: tensor<16x8xf32>, %s: tensor<8x8xf32>)
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<8x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = arith.addf %a, %s : tensor<8x8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %rows = linalg.reduce ins(%sum : tensor<8x8xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.addf %in, %acc : f32
      linalg.yield %r : f32
    }
  return %rows : tensor<8xf32>
}

// An exponential is not linear: the reduction stays before it, although the rows are smaller.
// CHECK-LABEL: func.func @nonlinear(
// CHECK: %[[A:.*]] = linalg.matmul
// CHECK: %[[R:.*]] = dist.reshard %[[A]] to #dist.sharding<@m, [replicate]>
// CHECK: linalg.generic {{.*}} ins(%[[R]]
func.func @nonlinear(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                     %v: tensor<16x8xf32>)
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<8x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<8x8xf32>) -> tensor<8x8xf32>
  %exp = math.exp %a : tensor<8x8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %rows = linalg.reduce ins(%exp : tensor<8x8xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.addf %in, %acc : f32
      linalg.yield %r : f32
    }
  return %rows : tensor<8xf32>
}

// Both factors are contributions: one is reduced first.
// CHECK-LABEL: func.func @product(
// CHECK: %[[A:.*]] = linalg.matmul {{.*}}[partial(sum)]
// CHECK: dist.reshard %[[A]] to #dist.sharding<@m, [replicate]>
func.func @product(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                   %v: tensor<16x8xf32>)
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<8x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = arith.mulf %a, %a : tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}
