// RUN: tessera run %s --check=interpreter | FileCheck %s

// In a loop over two meshes, a scalar is carried on the mesh where it is computed.
// CHECK: check result0 ok
// CHECK: check result1 ok
dist.process_mesh @p(shape = [2], dim_names = ["x"])
dist.process_mesh @q(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@p, [shard(0)]>}, %b: tensor<4xf32> {dist.sharding = #dist.sharding<@q, [shard(0)]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b, %s = %z) -> (tensor<4xf32>, tensor<4xf32>, f32) {
    %e = tensor.extract %x[%c0] : tensor<4xf32>
    %s2 = arith.addf %s, %e : f32
    %x2 = math.tanh %x : tensor<4xf32>
    %y2 = math.tanh %y : tensor<4xf32>
    scf.yield %x2, %y2, %s2 : tensor<4xf32>, tensor<4xf32>, f32
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
