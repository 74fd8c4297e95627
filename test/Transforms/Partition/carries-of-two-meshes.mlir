// A loop or branch forwards values of a mesh on which it computes nothing: they pass through unchanged, change places, or are read.
// RUN: tessera run %s --function unchanged --check | FileCheck %s
// RUN: tessera run %s --function places --check | FileCheck %s
// RUN: tessera run %s --function read --check | FileCheck %s
// RUN: tessera run %s --function branch --check | FileCheck %s
// CHECK-NOT: differs
// CHECK: interpreter  ok
dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [2], dim_names = ["y"], process_ids = [2, 3])
func.func @unchanged(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                     %b: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = arith.addf %x, %x : tensor<4xf32>
    scf.yield %s, %y : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
func.func @places(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %b: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>},
                  %c: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b, %z = %c) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %s = arith.addf %x, %x : tensor<4xf32>
    scf.yield %s, %z, %y : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @read(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %b: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {
    %u = dist.reshard %y to #dist.sharding<@m, [shard(0)]> : tensor<4xf32>
    %s = arith.addf %x, %u : tensor<4xf32>
    scf.yield %s, %y : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
func.func @branch(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %b: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>},
                  %c: tensor<4xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {
    %first = arith.cmpi eq, %i, %c1 : index
    %t:2 = scf.if %first -> (tensor<4xf32>, tensor<4xf32>) {
      %s = arith.addf %x, %x : tensor<4xf32>
      scf.yield %s, %y : tensor<4xf32>, tensor<4xf32>
    } else {
      scf.yield %x, %c : tensor<4xf32>, tensor<4xf32>
    }
    scf.yield %t#0, %t#1 : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
