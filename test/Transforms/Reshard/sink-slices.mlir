// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s --check-prefix=LOCAL

// A pipeline written as a rotating buffer stacks the results of its last stage: they are sent once, after the loop.

dist.process_mesh @m(shape = [4], dim_names = ["stage"])

// CHECK-LABEL: func.func @last_stage(
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} -> (tensor<4x8xf32>, tensor<4x9x8xf32>) {
// CHECK-NOT: dist.reshard
// CHECK: tensor.insert_slice {{.*}}[4, 1, 8] {{.*}} into tensor<4x9x8xf32>
// CHECK: } {dist.shardings = [#dist.sharding<@m, [shard(0)]>, #dist.sharding<@m, [shard(0)]>]}
// CHECK: dist.reshard %{{.*}} windows = [(0, 0, 0, 1, 1, 3, 1, 1), (1, 0, 0, 6, 1, 3, 1, 6)]
// CHECK: tensor.extract_slice %{{.*}}[3, 3, 0] [1, 6, 8]
// LOCAL-LABEL: func.func @last_stage(
// LOCAL: scf.for
// LOCAL-NOT: dist.all_gather
// LOCAL: } {dist.global_type
// LOCAL: dist.all_gather {{.*}} global_types = [tensor<1x6x8xf32>]
func.func @last_stage(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<6x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<9x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x, %ys = %zero) -> (tensor<4x8xf32>, tensor<9x8xf32>) {
    %stages = math.tanh %s : tensor<4x8xf32>
    %next = dist.shard_tensor %stages, #dist.sharding<@m, [shard(0)]> : tensor<4x8xf32>
    %y = tensor.extract_slice %next[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %ys1 = tensor.insert_slice %y into %ys[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<9x8xf32>
    scf.yield %next, %ys1 : tensor<4x8xf32>, tensor<9x8xf32>
  }
  %used = tensor.extract_slice %r#1[3, 0] [6, 8] [1, 1] : tensor<9x8xf32> to tensor<6x8xf32>
  return %used : tensor<6x8xf32>
}

// Two stages per device: one of them is stacked.
// CHECK-LABEL: func.func @stages_of_a_device(
// CHECK: tensor.expand_shape %{{.*}} output_shape [4, 2, 8]
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0] [4, 1, 8]
// CHECK: tensor.insert_slice {{.*}} into tensor<4x9x8xf32>
// CHECK: tensor.extract_slice %{{.*}}[3, 0, 0] [1, 9, 8]
func.func @stages_of_a_device(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<9x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<9x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x, %ys = %zero) -> (tensor<8x8xf32>, tensor<9x8xf32>) {
    %stages = math.tanh %s : tensor<8x8xf32>
    %next = dist.shard_tensor %stages, #dist.sharding<@m, [shard(0)]> : tensor<8x8xf32>
    %y = tensor.extract_slice %next[7, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
    %ys1 = tensor.insert_slice %y into %ys[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<9x8xf32>
    scf.yield %next, %ys1 : tensor<8x8xf32>, tensor<9x8xf32>
  }
  return %r#1 : tensor<9x8xf32>
}

// The loop also reads the slice, so it is sent in each iteration anyway.
// CHECK-LABEL: func.func @read_in_the_loop(
// CHECK: scf.for {{.*}} -> (tensor<4x8xf32>, tensor<9x8xf32>) {
func.func @read_in_the_loop(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<9x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<9x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x, %ys = %zero) -> (tensor<4x8xf32>, tensor<9x8xf32>) {
    %y = tensor.extract_slice %s[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %line = tensor.collapse_shape %y [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
    %empty = tensor.empty() : tensor<4x8xf32>
    %all = linalg.broadcast ins(%line : tensor<8xf32>) outs(%empty : tensor<4x8xf32>) dimensions = [0]
    %next = arith.addf %s, %all : tensor<4x8xf32>
    %ys1 = tensor.insert_slice %y into %ys[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<9x8xf32>
    scf.yield %next, %ys1 : tensor<4x8xf32>, tensor<9x8xf32>
  }
  return %r#1 : tensor<9x8xf32>
}

// Elements that the loop does not write come from the initial stack, which must be equal on all devices.
// CHECK-LABEL: func.func @stack_of_an_argument(
// CHECK: scf.for {{.*}} -> (tensor<4x8xf32>, tensor<9x8xf32>) {
func.func @stack_of_an_argument(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                                %begin: tensor<9x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<9x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x, %ys = %begin) -> (tensor<4x8xf32>, tensor<9x8xf32>) {
    %stages = math.tanh %s : tensor<4x8xf32>
    %next = dist.shard_tensor %stages, #dist.sharding<@m, [shard(0)]> : tensor<4x8xf32>
    %y = tensor.extract_slice %next[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %ys1 = tensor.insert_slice %y into %ys[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<9x8xf32>
    scf.yield %next, %ys1 : tensor<4x8xf32>, tensor<9x8xf32>
  }
  return %r#1 : tensor<9x8xf32>
}
