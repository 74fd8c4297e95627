// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" --dist-lift-rows | FileCheck %s
// RUN: tessera explain %s --function circular | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function circular --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function summed --check | FileCheck %s --check-prefix=VALUE

// Pipelines written as rolls over four stages, whose last row is stored, or added up: all rows are.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// VALUE: check {{.*}} ok

// The first stage reads what the last one computed six iterations ago. A carry of the rows before the roll, which is composed with the
// insertion of the stored row; the row that is returned is sliced after the loop.
// CHECK-LABEL: func.func @circular(
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} iter_args(%[[Y:.*]] = %{{.*}}, %[[STORED:.*]] = %{{.*}}) -> (tensor<4x4x512xf32>, tensor<4x6x4x512xf32>)
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[STORED]][0, %{{.*}}, 0, 0] [4, 1, 4, 512] [1, 1, 1, 1]
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[OLD]]
// CHECK: dist.rearrange %[[ROWS]], %[[Y]] dim = 0 segments = [3, 1, 0, 1, 1, 0, 1, 1, 1, 3]
// CHECK: tensor.insert_slice %{{.*}} into %[[STORED]][0, %{{.*}}, 0, 0] [4, 1, 4, 512] [1, 1, 1, 1]
// CHECK: tensor.extract_slice %[[R]]#1[3, 0, 0, 0] [1, 6, 4, 512] [1, 1, 1, 1]
// A row is passed on in each iteration, in the first one the stored row alone; then the stored rows are sent to all.
// SENT: exchange {{.*}} 8192 on the wire /
// SENT: exchange {{.*}} 8192 on the wire x 17 trips
// SENT: all_gather {{.*}} 49152 on the wire /
// SENT: total: 19 collectives
func.func @circular(%w: tensor<4x512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                    %x: tensor<6x4x512xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<6x4x512xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c18 = arith.constant 18 : index
  %none = arith.constant dense<0.0> : tensor<4x4x512xf32>
  %scale = arith.constant dense<0.04> : tensor<4x4x512xf32> // else rounding errors grow in each iteration
  %r:2 = scf.for %i = %c0 to %c18 step %c1 iter_args(%h = %none, %s = %x) -> (tensor<4x4x512xf32>, tensor<6x4x512xf32>) {
    %at = arith.remui %i, %c6 : index
    %old = tensor.extract_slice %s[%at, 0, 0] [1, 4, 512] [1, 1, 1] : tensor<6x4x512xf32> to tensor<1x4x512xf32>
    %in = tensor.insert_slice %old into %h[0, 0, 0] [1, 4, 512] [1, 1, 1] : tensor<1x4x512xf32> into tensor<4x4x512xf32>
    %sums = linalg.batch_matmul ins(%in, %w : tensor<4x4x512xf32>, tensor<4x512x512xf32>) outs(%none : tensor<4x4x512xf32>) -> tensor<4x4x512xf32>
    %scaled = arith.mulf %sums, %scale : tensor<4x4x512xf32>
    %y = math.tanh %scaled : tensor<4x4x512xf32>
    %last = tensor.extract_slice %y[3, 0, 0] [1, 4, 512] [1, 1, 1] : tensor<4x4x512xf32> to tensor<1x4x512xf32>
    %others = tensor.extract_slice %y[0, 0, 0] [3, 4, 512] [1, 1, 1] : tensor<4x4x512xf32> to tensor<3x4x512xf32>
    %next = tensor.concat dim(0) %last, %others : (tensor<1x4x512xf32>, tensor<3x4x512xf32>) -> tensor<4x4x512xf32>
    %stored = tensor.insert_slice %last into %s[%at, 0, 0] [1, 4, 512] [1, 1, 1] : tensor<1x4x512xf32> into tensor<6x4x512xf32>
    scf.yield %next, %stored : tensor<4x4x512xf32>, tensor<6x4x512xf32>
  }
  return %r#1 : tensor<6x4x512xf32>
}

// The squares of the last row are added up for each stage.
// CHECK-LABEL: func.func @summed(
// CHECK: scf.for {{.*}} -> (tensor<4x4x8xf32>, tensor<4x4x8xf32>)
// CHECK: tensor.extract_slice %{{.*}}#1[3, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x8xf32>
func.func @summed(%w: tensor<4x8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                  %x: tensor<1x4x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %none = arith.constant dense<0.0> : tensor<4x4x8xf32>
  %no_sum = arith.constant dense<0.0> : tensor<4x8xf32>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %none, %sum = %no_sum) -> (tensor<4x4x8xf32>, tensor<4x8xf32>) {
    %in = tensor.insert_slice %x into %h[0, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<1x4x8xf32> into tensor<4x4x8xf32>
    %sums = linalg.batch_matmul ins(%in, %w : tensor<4x4x8xf32>, tensor<4x8x8xf32>) outs(%none : tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
    %y = math.tanh %sums : tensor<4x4x8xf32>
    %last = tensor.extract_slice %y[3, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x4x8xf32> to tensor<1x4x8xf32>
    %others = tensor.extract_slice %y[0, 0, 0] [3, 4, 8] [1, 1, 1] : tensor<4x4x8xf32> to tensor<3x4x8xf32>
    %next = tensor.concat dim(0) %last, %others : (tensor<1x4x8xf32>, tensor<3x4x8xf32>) -> tensor<4x4x8xf32>
    %row = tensor.collapse_shape %last [[0, 1], [2]] : tensor<1x4x8xf32> into tensor<4x8xf32>
    %square = arith.mulf %row, %row : tensor<4x8xf32>
    %more = arith.addf %sum, %square : tensor<4x8xf32>
    scf.yield %next, %more : tensor<4x4x8xf32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
