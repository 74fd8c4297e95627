// RUN: tessera explain %s --objective bytes | FileCheck %s
// RUN: tessera run %s --check
// RUN: tessera-opt %s --dist-normalize --dist-propagate=mark-recuts | FileCheck %s --check-prefix=MARK
// RUN: tessera-opt %s --dist-normalize --dist-propagate="mark-recuts recuts=false" | FileCheck %s --check-prefix=NONE

// A recurrence along a cut dimension. All rows would be gathered for it, 7/8 of 64 x 4 x 2 x 2 x 4
// bytes; instead they move to the batch and the features, 1/8 of that, and the results move back.
// Neither the batch nor the features divide alone: the batch is cut in 4, the features in 2.

// MARK: module attributes {dist.recut}
// NONE: module {
// CHECK: total: 2 collectives, 896 bytes on the wire

dist.process_mesh @line(shape = [8], dim_names = ["s"])

func.func @main(%xs: tensor<64x4x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x4x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %init = arith.constant dense<0.0> : tensor<1x4x4xf32>
  %stack = arith.constant dense<0.0> : tensor<64x4x4xf32>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%h = %init, %ys = %stack)
      -> (tensor<1x4x4xf32>, tensor<64x4x4xf32>) {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<64x4x4xf32> to tensor<1x4x4xf32>
    %sum = arith.addf %h, %x : tensor<1x4x4xf32>
    %next = math.tanh %sum : tensor<1x4x4xf32>
    %ys1 = tensor.insert_slice %next into %ys[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<64x4x4xf32>
    scf.yield %next, %ys1 : tensor<1x4x4xf32>, tensor<64x4x4xf32>
  }
  return %r#1 : tensor<64x4x4xf32>
}
