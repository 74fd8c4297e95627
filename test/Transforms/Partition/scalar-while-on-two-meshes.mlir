// RUN: tessera run %s --check=interpreter | FileCheck %s

// A loop over scalars runs wherever its result is used.
// CHECK: check result0 ok
// CHECK: check result1 ok
dist.process_mesh @p(shape = [2], dim_names = ["x"])
dist.process_mesh @q(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@p, [shard(0)]>}, %b: tensor<4xf32> {dist.sharding = #dist.sharding<@q, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c1 = arith.constant 1 : i32
  %n = arith.constant 0 : i32
  %k = arith.constant 3 : i32
  %r = scf.while (%i = %n) : (i32) -> (i32) {
    %c = arith.cmpi slt, %i, %k : i32
    scf.condition(%c) %i : i32
  } do {
  ^bb0(%i: i32):
    %i2 = arith.addi %i, %c1 : i32
    scf.yield %i2 : i32
  }
  %f = arith.sitofp %r : i32 to f32
  %t = tensor.splat %f : tensor<4xf32>
  %0 = arith.addf %a, %t : tensor<4xf32>
  %t2 = tensor.splat %f : tensor<4xf32>
  %1 = arith.addf %b, %t2 : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
