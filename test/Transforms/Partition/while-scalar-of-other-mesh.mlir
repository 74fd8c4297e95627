// RUN: tessera run %s --check=interpreter | FileCheck %s

// A loop does not carry a value on a mesh that does not need it.
// CHECK: check result0 ok
// CHECK: check result1 ok
dist.process_mesh @p(shape = [2], dim_names = ["x"])
dist.process_mesh @q(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@p, [shard(0)]>}, %b: tensor<4xf32> {dist.sharding = #dist.sharding<@q, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %n = arith.constant 0 : i32
  %k = arith.constant 3 : i32
  %e = tensor.extract %a[%c0] : tensor<4xf32>
  %r:3 = scf.while (%y = %b, %i = %n, %s = %e) : (tensor<4xf32>, i32, f32) -> (tensor<4xf32>, i32, f32) {
    %c = arith.cmpi slt, %i, %k : i32
    scf.condition(%c) %y, %i, %s : tensor<4xf32>, i32, f32
  } do {
  ^bb0(%y: tensor<4xf32>, %i: i32, %s: f32):
    %y2 = math.tanh %y : tensor<4xf32>
    %i2 = arith.addi %i, %c1 : i32
    scf.yield %y2, %i2, %s : tensor<4xf32>, i32, f32
  }
  %0 = math.tanh %a : tensor<4xf32>
  return %0, %r#0 : tensor<4xf32>, tensor<4xf32>
}
