// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// The elements at both ends are a constant, which every device has.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: total: 0 collectives
func.func @main(%x: tensor<13x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<13x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %one = arith.constant dense<1.0> : tensor<1x4xf32>
  %two = arith.constant dense<2.0> : tensor<2x4xf32>
  %a = tensor.insert_slice %one into %x[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<13x4xf32>
  %b = tensor.insert_slice %two into %a[11, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<13x4xf32>
  return %b : tensor<13x4xf32>
}
