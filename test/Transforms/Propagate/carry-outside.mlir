// RUN: tessera explain %s --objective bytes | FileCheck %s
// RUN: tessera run %s --check

// Page rank with cut rows. The carry is whole in the loop, where each of 6 products needs all of it:
// 6 gathers of 7/8 of 64 x 4 bytes. A cut carry would be gathered once more, after the loop.

// CHECK: total: 6 collectives, 1344 bytes on the wire

dist.process_mesh @line(shape = [8], dim_names = ["s"])

func.func @main(%a: tensor<64x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %v: tensor<64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 6 : index
  %init = arith.constant dense<0.0> : tensor<64xf32>
  %damping = arith.constant dense<0.01> : tensor<64xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%rank = %v) -> (tensor<64xf32>) {
    %p = linalg.matvec ins(%a, %rank : tensor<64x64xf32>, tensor<64xf32>)
                       outs(%init : tensor<64xf32>) -> tensor<64xf32>
    %next = arith.mulf %p, %damping : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
