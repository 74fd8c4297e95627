// RUN: tessera run %s --check | FileCheck %s

// The slice selects elements from 13 on of a value whose elements after the 11th are all fill.
// CHECK: check result0 ok equal
// CHECK: interpreter ok
dist.process_mesh @m(shape = [6], dim_names = ["a"])

func.func @main(%x: tensor<7x15xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %y: tensor<7x15xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<7x15xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %fill = arith.constant 2.0 : f32
  %padded = tensor.pad %x low[0, 0] high[0, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %fill : f32
  } : tensor<7x15xf32> to tensor<7x19xf32>
  %shifted = tensor.extract_slice %padded[0, 4] [7, 15] [1, 1] : tensor<7x19xf32> to tensor<7x15xf32>
  %again = tensor.pad %shifted low[0, 0] high[0, 9] {
  ^bb0(%i: index, %j: index):
    tensor.yield %fill : f32
  } : tensor<7x15xf32> to tensor<7x24xf32>
  %rest = tensor.extract_slice %again[0, 9] [7, 15] [1, 1] : tensor<7x24xf32> to tensor<7x15xf32>
  %sum = arith.addf %rest, %y : tensor<7x15xf32>
  return %sum : tensor<7x15xf32>
}
